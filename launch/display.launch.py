"""Any arm with joint sliders, without physics: a browser page, or joint_state_publisher_gui."""

from pathlib import Path

from ament_index_python.resources import has_resource
from launch.actions import LogInfo
from launch_ros.actions import Node

from arm_dynamics.ros.runtime import launch_parts as parts

ARGUMENTS = (
    *parts.COMMON,
    ("viewer_port", "8080", "port of the page with the sliders; the next free one if in use", None),
    ("gui", "false", "joint_state_publisher_gui instead of the page", parts.SWITCH),
)
GUI = "joint_state_publisher_gui"


def generate_launch_description():
    view = Path(__file__).with_name("view.launch.py")
    return parts.description(ARGUMENTS, _sliders, view, use_sim_time="false")


def _sliders(arguments):
    """Return the requested sliders; those of the page if the others are not installed."""
    gui = arguments["gui"] == "true"
    if gui and has_resource("packages", GUI):
        return [
            Node(package=GUI, executable=GUI, namespace=arguments["namespace"], output="screen")
        ]
    missing = [LogInfo(msg=f"{GUI} is not installed: the sliders are on a page")] if gui else []
    return [
        *missing,
        parts.viewer_node("joint_sliders", arguments, "sliders", **parts.description_parameters()),
    ]
