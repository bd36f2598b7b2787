#!/bin/bash
# Drive the simulated so101 and an emulated one through controller_manager, in the image of the Dockerfile.
set -eo pipefail
apt-get update
apt-get install -y --no-install-recommends ros-"$ROS_DISTRO"-ros2-control ros-"$ROS_DISTRO"-ros2-controllers \
    ros-"$ROS_DISTRO"-joint-state-topic-hardware-interface python3-serial
cd "$(mktemp -d)"
arm="ros2 run arm_dynamics arm-dynamics"
controller=/joint_trajectory_controller

# Wait at most 300 s (the first start compiles) until a command prints a text.
until_prints() {
    for _ in $(seq 100); do
        "${@:2}" 2>&1 | grep -q "$1" && return
        sleep 3
    done
    echo "no '$1' from: ${*:2}"
    return 1
}

# Start the launch file of a folder, send a goal, and compare the last position with it.
drive() {
    ros2 launch "$1/ros2_control.launch.py" "${@:2}" &
    local launch=$!
    until_prints "joint_trajectory_controller .*active" ros2 control list_controllers
    if [[ $* == *port:=* ]]; then
        until_prints "Transitioning successful" ros2 lifecycle set /hardware activate
    fi
    timeout 60 ros2 action send_goal $controller/follow_joint_trajectory \
        control_msgs/action/FollowJointTrajectory "{trajectory: {joint_names: [shoulder_pan],
        points: [{positions: [0.3], time_from_start: {sec: 3}}]}}" | tee goal.txt
    grep -q "status: SUCCEEDED" goal.txt
    kill -INT $launch
    wait $launch || true
}

$arm ros2-control so101
drive so101_ros2_control

$arm ros2-control so101 --command-interface position --output servos
$arm hardware emulate so101 --link so101.tty > emulated.txt &
until_prints next cat emulated.txt
drive servos "port:=$PWD/so101.tty"
echo "joint_trajectory_controller moved the simulated and the emulated arm"
