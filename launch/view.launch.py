"""robot_state_publisher and RViz for an arm whose joint_states another node publishes."""

import os

from ament_index_python.resources import has_resource
from launch.actions import LogInfo
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from arm_dynamics.model.robot_description import robot_description
from arm_dynamics.ros.runtime import launch_parts as parts

ARGUMENTS = (
    *parts.COMMON,
    parts.MOVE_ON_RELEASE,
    ("use_sim_time", "false", "use the time of /clock", parts.SWITCH),
)


def generate_launch_description():
    return parts.description(ARGUMENTS, _viewed)


def _viewed(arguments):
    """Return the nodes; an arm that cannot be loaded ends the launch."""
    arm = parts.loaded_arm(arguments)
    time = {"use_sim_time": arguments["use_sim_time"] == "true"}
    # Without its type, launch would read the text as YAML.
    description = ParameterValue(robot_description(arm), value_type=str)
    actions = [
        _if_installed(
            parts.STATE_PUBLISHER,
            "no /tf",
            Node(
                package=parts.STATE_PUBLISHER,
                executable=parts.STATE_PUBLISHER,
                namespace=arguments["namespace"],
                parameters=[
                    time,
                    {
                        "robot_description": description,
                        "frame_prefix": arguments["frame_prefix"],
                    },
                ],
                output="screen",
            ),
        )
    ]
    if arguments["rviz"] == "true":
        rviz = Node(
            package="rviz2",
            executable="rviz2",
            namespace=arguments["namespace"],
            arguments=["-d", parts.rviz_file(arguments, arm)],
            parameters=[time],
            output="screen",
        )
        release = {"move_on_release": arguments["move_on_release"] == "true"}
        controls = parts.node(
            "rviz_controls", arguments, {**parts.model_parameters(arguments), **release}
        )
        actions += [
            _if_installed("rviz2", "no RViz", rviz),
            *([controls] if has_resource("packages", "rviz2") else []),
        ]
    return actions


def _if_installed(package, otherwise, action):
    """Return the action, or a message with the missing package and its installation."""
    if has_resource("packages", package):
        return action
    name = f"ros-{os.environ.get('ROS_DISTRO', '<distro>')}-{package.replace('_', '-')}"
    return LogInfo(msg=f"{package} is not installed: {otherwise} (sudo apt install {name})")
