"""An arm simulated and led by its tool: poses, velocities, wrenches and paths; in RViz, or not."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from arm_dynamics import resources
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.load import find_urdf, load_arm

SWITCH = ["true", "false"]
ARGUMENTS = (
    ("arm", "five_dof", "bundled arm or URDF file", None),
    (
        "controller",
        "",
        "law of the tool; empty: the parameter file's, else task_space",
        ["", "task_space", "resolved_rate", "impedance"],
    ),
    ("rviz", "true", "show the arm, the reference and its axes in RViz", SWITCH),
    (
        "use_sim_time",
        "true",
        "the simulator is the source of /clock; robot_state_publisher and RViz follow it",
        SWITCH,
    ),
    ("params_file", "", "ROS parameters; empty: the arm's config/<arm>.yaml, if any", None),
)


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, default, text, choices in ARGUMENTS
    ]
    view = Path(__file__).with_name("view.launch.py")
    return LaunchDescription(
        [*declared, OpaqueFunction(function=_nodes), IncludeLaunchDescription(str(view))]
    )


def _nodes(context):
    """The nodes of this package; input that they would refuse ends the launch here."""
    given = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    load_arm(given["arm"])
    files = _params_files(given["params_file"], given["arm"])
    simulator = {
        "arm": given["arm"],
        "publish_clock": given["use_sim_time"] == "true",
        "use_sim_time": False,  # it would wait for its own /clock
    }
    controller = {"arm": given["arm"]}
    if given["controller"]:
        controller["controller"] = given["controller"]
    return [
        _node("simulator", [*files, simulator], on_exit=_simulator_ended),
        _node("task_space_controller", [*files, controller]),
    ]


def _node(executable, parameters, **more):
    return Node(
        package="arm_dynamics",
        executable=executable,
        parameters=parameters,
        output="screen",
        **more,
    )


def _params_files(given, arm):
    """The file to use, as a list: none where none is given and the arm has none."""
    bundled = resources.folder("config") / f"{find_urdf(arm).stem}.yaml"
    if given and not Path(given).is_file():
        raise ConfigError(f"params_file {given}: no such file")
    return [given] if given else [str(bundled)] * bundled.is_file()


def _simulator_ended(event, context):
    """Without the arm there is nothing left to do; its failure is that of the launch."""
    if context.is_shutdown:
        return None
    if event.returncode != 0:
        raise RuntimeError(f"{event.process_name} ended with code {event.returncode}")
    return Shutdown(reason="the simulator ended")
