"""What the launch files share: arguments, this package's nodes, and the end of the arm's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from ament_index_python.resources import has_resource
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    Shutdown,
)
from launch.logging import launch_config
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from arm_dynamics.control.config import controller_name, parameter_file
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.viewer.rviz import rviz_config

Argument = tuple[str, str, str, "list[str] | None"]
"""Name, default, description and choices."""

SWITCH = ["true", "false"]
ARM: Argument = ("arm", "five_dof", "bundled arm or URDF file", None)
LOCK: Argument = ("lock", "", "joints to hold still, with commas between them", None)
RVIZ: Argument = ("rviz", "true", "show the arm in RViz", SWITCH)
NAMESPACE: Argument = ("namespace", "", "ROS namespace of all nodes, one for each arm", None)
FRAME_PREFIX: Argument = (
    "frame_prefix",
    "",
    "prefix of all frames on /tf and in messages, one for each arm, such as left/",
    None,
)
RVIZ_CONFIG: Argument = (
    "rviz_config",
    "",
    "RViz configuration; empty: config/arm.rviz with camera, grid and axes fitted to the arm",
    None,
)
MOVE_ON_RELEASE: Argument = (
    "move_on_release",
    "true",
    "what is dragged in RViz moves when the mouse button is released; false: by its menu",
    SWITCH,
)
STATE_PUBLISHER = "robot_state_publisher"
"""Package and node that publishes /tf and, where it is installed, robot_description."""
LOG_LEVEL: Argument = (
    "log_level",
    "info",
    "least severity that this package's nodes log",
    ["debug", "info", "warn", "error", "fatal"],
)
COMMON = (ARM, LOCK, NAMESPACE, FRAME_PREFIX, RVIZ, RVIZ_CONFIG, LOG_LEVEL)
"""Arguments of every launch file."""
PARAMS_FILE: Argument = (
    "params_file",
    "",
    "ROS parameters; empty: the arm's config/<arm>.yaml, if any",
    None,
)


def description(
    arguments: Iterable[Argument], nodes: Callable[[dict[str, str]], list[Any]], *included: Path
) -> LaunchDescription:
    """The arguments, what ``nodes`` makes of those given, and other launch files.

    An error that ``nodes`` raises (a subclass of ArmDynamicsError) ends the launch.
    """
    known = list(arguments)

    def function(context: Any) -> list[Any]:
        return nodes({name: LaunchConfiguration(name).perform(context) for name, *_ in known})

    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, default, text, choices in known
    ]
    files = [IncludeLaunchDescription(str(file)) for file in included]
    return LaunchDescription([*declared, OpaqueFunction(function=function), *files])


def node(executable: str, given: Mapping[str, str], *parameters: Any, **more: Any) -> Node:
    """A node of this package; the later one of its parameters wins."""
    return Node(
        package="arm_dynamics",
        executable=executable,
        namespace=given["namespace"],
        parameters=list(parameters),
        ros_arguments=["--log-level", given["log_level"]],
        output="screen",
        **more,
    )


def required_node(executable: str, given: Mapping[str, str], *parameters: Any) -> Node:
    """A node with whose end that of the launch has come."""
    return node(executable, given, *parameters, on_exit=_arm_ended)


def model_parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of every node that loads the arm: URDF, locked joints, names of frames."""
    optional = {"lock": locked(given), FRAME_PREFIX[0]: given[FRAME_PREFIX[0]]}
    return {"arm": given["arm"], **{name: value for name, value in optional.items() if value}}


def locked(given: Mapping[str, str]) -> list[str]:
    """Names of the locked joints."""
    return given["lock"].replace(",", " ").split()


def given_arm(given: Mapping[str, str]) -> ArmModel:
    """Load the arm with its joints locked; raises what ``load_arm`` raises."""
    return load_arm(given["arm"], locked(given))


def description_parameters() -> dict[str, Any]:
    """Those of a node that publishes robot_description where robot_state_publisher is missing."""
    installed = has_resource("packages", STATE_PUBLISHER)
    return {"publish_robot_description": False} if installed else {}


def rviz_file(given: Mapping[str, str], arm: ArmModel) -> str:
    """The configuration of RViz: the given one, or a new one for ``arm`` in the log's folder.

    Raises ConfigError for a file that is not there and for a prefix that RViz cannot show.
    """
    own = given[RVIZ_CONFIG[0]]
    if own:
        if not Path(own).is_file():
            raise ConfigError(f"rviz_config {own}: no such file")
        return own
    config = rviz_config(arm, given[FRAME_PREFIX[0]])
    folder = launch_config.log_dir
    with NamedTemporaryFile(
        "w", dir=folder, prefix="arm_", suffix=".rviz", delete=False, encoding="utf-8"
    ) as file:
        file.write(config)
    return file.name


def usual_controller(given: Mapping[str, str], files: Sequence[str]) -> dict[str, str]:
    """The argument ``controller`` of an arm that has no parameter file, where none is given."""
    if files or given["controller"]:
        return {}
    return {"controller": controller_name(given_arm(given))}


def controller_parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Those of a controller; a law that is not given is left to the parameter file."""
    law = {"controller": given["controller"]} if given["controller"] else {}
    return {**model_parameters(given), **law}


def params_files(given: Mapping[str, str]) -> list[str]:
    """The parameter file to use, as a list: none where none is given and the arm has none.

    Raises ConfigError for a file that is not there, and what ``load_arm`` raises for a bad arm.
    """
    given_arm(given)
    file = given["params_file"]
    if file and not Path(file).is_file():
        raise ConfigError(f"params_file {file}: no such file")
    found = file or parameter_file(given["arm"])
    return [str(found)] if found else []


def positive_argument(name: str, text: str) -> float:
    """The number that an argument's text stands for; raises ConfigError for another text."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ConfigError(f"{name} '{text}': a positive number is expected")
    return number


def viewer_node(
    executable: str, given: Mapping[str, str], shows: str, **more: Any
) -> Node | LogInfo:
    """A node with a page for a browser, or a word on what it needs; ConfigError for a bad port.

    ``more`` are parameters of the node.
    """
    if find_spec("viser") is None or find_spec("yourdfpy") is None:
        return LogInfo(msg=f"viser is not installed: no {shows} ({to_install('viewer')})")
    port = given["port"]
    if not (port.isascii() and port.isdecimal()):
        raise ConfigError(f"port '{port}': a whole number is expected")
    return node(executable, given, {**model_parameters(given), "port": int(port), **more})


def _arm_ended(event: Any, context: Any) -> Any:
    """Without the arm there is nothing left to do; its failure is that of the launch."""
    if context.is_shutdown:
        return None
    if event.returncode != 0:
        raise RuntimeError(f"{event.process_name} ended with code {event.returncode}")
    return Shutdown(reason="the arm's node ended")
