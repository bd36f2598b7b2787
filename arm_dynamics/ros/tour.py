"""A slow walk of an arm around its initial pose, for something to look at."""

from __future__ import annotations

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.conversions import doubles
from arm_dynamics.walk import walk


class Tour:
    """Sends one round after the other to ``joint_controller``."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._message = JointTrajectory(joint_names=list(arm.joint_names))
        points = walk(arm)
        for waypoint in points:
            assert waypoint.v is not None
            point = JointTrajectoryPoint(
                positions=doubles(waypoint.q), velocities=doubles(waypoint.v)
            )
            seconds = round(waypoint.time * 1e9)
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(seconds, 10**9)
            self._message.points.append(point)
        self._length = points[-1].time
        self._next = 0.0
        self._publisher = node.create_publisher(
            JointTrajectory, "joint_controller/joint_trajectory", 1
        )

    def go_on(self, simulated: float) -> None:
        """Send the next round when the last one is over; ``simulated`` time in [s]."""
        if simulated >= self._next and self._publisher.get_subscription_count() > 0:
            self._publisher.publish(self._message)
            self._next = simulated + self._length
