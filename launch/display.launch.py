"""Any arm with joint sliders, without physics: a browser page, or joint_state_publisher_gui."""

from importlib.util import find_spec
from pathlib import Path

from ament_index_python.resources import has_resource
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
)
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from arm_dynamics.errors import ConfigError

SWITCH = ["true", "false"]
ARGUMENTS = (
    ("arm", "five_dof", "bundled arm or URDF file", None),
    ("rviz", "true", "show the arm in RViz", SWITCH),
    ("port", "8080", "port of the page with the sliders; the next free one if taken", None),
    ("gui", "false", "joint_state_publisher_gui instead of the page", SWITCH),
)
GUI = "joint_state_publisher_gui"


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, default, text, choices in ARGUMENTS
    ]
    view = Path(__file__).with_name("view.launch.py")
    return LaunchDescription(
        [*declared, IncludeLaunchDescription(str(view)), OpaqueFunction(function=_sliders)]
    )


def _sliders(context):
    """The sliders that were asked for; those of the page where the others are missing."""
    wanted = LaunchConfiguration("gui").perform(context) == "true"
    if wanted and has_resource("packages", GUI):
        return [Node(package=GUI, executable=GUI, output="screen")]
    missing = [LogInfo(msg=f"{GUI} is not installed: the sliders are on a page")] if wanted else []
    return [*missing, _page(context)]


def _page(context):
    if find_spec("viser") is None or find_spec("yourdfpy") is None:
        return LogInfo(
            msg="viser is not installed: no sliders (pip install viser yourdfpy, or gui:=true)"
        )
    arm, port = (LaunchConfiguration(name).perform(context) for name in ("arm", "port"))
    if not port.isdecimal():
        raise ConfigError(f"port '{port}': a whole number is expected")
    return Node(
        package="arm_dynamics",
        executable="joint_sliders",
        parameters=[{"arm": arm, "port": int(port)}],
        output="screen",
    )
