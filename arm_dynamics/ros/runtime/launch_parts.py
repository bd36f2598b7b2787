"""Common arguments and nodes of the launch files, and selection of the controller."""

from __future__ import annotations

import sys
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

from arm_dynamics.collision.scene_files import load_scene
from arm_dynamics.control.config import NAMELESS, controller_name, node_parameters, parameter_file
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, did_you_mean
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.state import MIXED
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.robot_description import check_frame_prefix
from arm_dynamics.ros.parameters.arm_parameters import without_arm_warnings
from arm_dynamics.viewer.rviz import check_rviz_prefix, rviz_config

Argument = tuple[str, str, str, "list[str] | None"]
"""Name, default, description and choices."""

SWITCH = ["true", "false"]
ARM: Argument = ("arm", "five_dof", "bundled arm or URDF file", None)
LOCK: Argument = ("lock", "", "locked joints, separated by commas", None)
TOOL_FRAME: Argument = (
    "tool_frame",
    "",
    "link that is the tool frame; empty: that of the URDF, else selected by the names of its links",
    None,
)
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
    "move to a target dragged in RViz when the mouse button is released; false: by its menu",
    SWITCH,
)
STATE_PUBLISHER = "robot_state_publisher"
"""Package and node that publishes /tf and, where it is installed, robot_description."""
SCENE: Argument = (
    "scene",
    "",
    "objects around the arm, which its links do not touch: table, ground, or a YAML or URDF file;"
    " empty: none",
    None,
)
LOG_LEVEL: Argument = (
    "log_level",
    "info",
    "minimum severity in the log of this package's nodes",
    ["debug", "info", "warn", "error", "fatal"],
)
RESPAWN: Argument = (
    "respawn",
    "false",
    "start a node of this package again when it has ended; torque stays disabled until a user"
    " activates the node hardware",
    SWITCH,
)
RESPAWN_DELAY = 2.0
"""Time [s] from the end of a node to its new start."""
COMMON = (ARM, LOCK, TOOL_FRAME, NAMESPACE, FRAME_PREFIX, RVIZ, RVIZ_CONFIG, LOG_LEVEL, RESPAWN)
"""Arguments of every launch file."""
PACKAGE, SIMILAR = "arm_dynamics", 0.75
"""Package of the launch files, and the similarity of a misspelled argument."""
PARAMS_FILE: Argument = (
    "params_file",
    "",
    "ROS parameters; empty: the arm's config/<arm>.yaml, if any",
    None,
)


def description(
    arguments: Iterable[Argument],
    nodes: Callable[[dict[str, str]], list[Any]],
    *included: Path,
    **fixed: str,
) -> LaunchDescription:
    """Return a launch description.

    Parameters
    ----------
    arguments : iterable of Argument
        Declared launch arguments.
    nodes : callable
        Returns the actions for the values of the arguments; an ArmDynamicsError that it raises
        ends the launch.
    *included : Path
        Other launch files.
    **fixed : str
        Arguments of the other launch files that a user cannot choose. With any, ``--show-args``
        lists none of the other files' arguments.

    """
    declared = list(arguments)
    files = [
        IncludeLaunchDescription(str(file), launch_arguments=list(fixed.items()))
        for file in included
    ]

    def function(context: Any) -> list[Any]:
        _check_names([name for name, *_ in declared])
        values = {name: LaunchConfiguration(name).perform(context) for name, *_ in declared}
        check_frame_prefix(values[FRAME_PREFIX[0]])
        check_rviz(values)
        return [*nodes(values), *(files if fixed else ())]

    actions = [
        DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)
        for name, default, text, choices in declared
    ]
    listed = [] if fixed else files  # --show-args does not look into a function
    return LaunchDescription([*actions, OpaqueFunction(function=function), *listed])


def _check_names(declared: Sequence[str]) -> None:
    """Raise ConfigError for a misspelled argument: ``ros2 launch`` ignores unknown ones."""
    if PACKAGE not in sys.argv:  # another package includes the launch file
        return
    for name in (word.partition(":=")[0] for word in sys.argv if ":=" in word):
        hint = "" if name in declared else did_you_mean(name, declared, SIMILAR)
        if hint:
            raise ConfigError(f"launch argument '{name}'{hint}")


def node(executable: str, arguments: Mapping[str, str], *parameters: Any, **more: Any) -> Node:
    """Return a node of this package; later parameters override earlier ones.

    The launch file prints the warnings of the arm: the node does not repeat them.
    """
    if arguments[RESPAWN[0]] == "true":
        more = {"respawn": True, "respawn_delay": RESPAWN_DELAY, **more}
    return Node(
        package="arm_dynamics",
        executable=executable,
        namespace=arguments["namespace"],
        parameters=list(parameters),
        ros_arguments=["--log-level", arguments["log_level"]],
        additional_env=without_arm_warnings(),
        output="screen",
        **more,
    )


def required_node(executable: str, arguments: Mapping[str, str], *parameters: Any) -> Node:
    """Return a node whose end also ends the launch, unless it is started again."""
    ends = {} if arguments[RESPAWN[0]] == "true" else {"on_exit": _arm_ended}
    return node(executable, arguments, *parameters, **ends)


def model_parameters(arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of every node that loads the arm, such as URDF and locked joints."""
    named = {name: arguments[name] for name, *_ in (TOOL_FRAME, FRAME_PREFIX)}
    optional = {"lock": locked(arguments), **named}
    return {"arm": arguments["arm"], **{name: value for name, value in optional.items() if value}}


def scene_parameters(arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the scene of the arm's node, of controllers and pages; none if not given.

    Raises the errors of ``load_scene``.
    """
    scene = arguments[SCENE[0]]
    if not scene:
        return {}
    load_scene(scene)
    return {"scene": str(Path(scene).absolute()) if Path(scene).is_file() else scene}


def locked(arguments: Mapping[str, str]) -> list[str]:
    """Return the names of the locked joints."""
    return arguments["lock"].replace(",", " ").split()


def loaded_arm(arguments: Mapping[str, str]) -> ArmModel:
    """Load the arm with locked joints and tool frame; raise the errors of ``load_arm``."""
    return load_arm(
        arguments["arm"], locked(arguments), tool_frame=arguments[TOOL_FRAME[0]] or None
    )


def description_parameters() -> dict[str, Any]:
    """Return the parameters of a node that replaces a missing robot_state_publisher."""
    installed = has_resource("packages", STATE_PUBLISHER)
    return {"publish_robot_description": False} if installed else {}


def check_rviz(arguments: Mapping[str, str]) -> None:
    """Raise for a missing RViz configuration or a prefix that RViz cannot show.

    Every launch file checks this before its first node: launch does not stop a node that starts
    when the included view fails.
    """
    if arguments[RVIZ[0]] != "true":
        return
    own = arguments[RVIZ_CONFIG[0]]
    if not own:
        check_rviz_prefix(arguments[FRAME_PREFIX[0]])
    elif not Path(own).is_file():
        raise ConfigError(f"rviz_config = {own}; expected an existing file")


def rviz_file(arguments: Mapping[str, str], arm: ArmModel) -> str:
    """Return the RViz configuration: the given file, or a new one in the folder of the log."""
    own = arguments[RVIZ_CONFIG[0]]
    if own:
        return own
    config = rviz_config(arm, arguments[FRAME_PREFIX[0]])
    folder = launch_config.log_dir
    with NamedTemporaryFile(
        "w", dir=folder, prefix="arm_", suffix=".rviz", delete=False, encoding="utf-8"
    ) as file:
        file.write(config)
    return file.name


def default_controller(arguments: Mapping[str, str], files: Sequence[str]) -> dict[str, str]:
    """Return the default controller of an arm without parameter file and argument."""
    if files or arguments["controller"]:
        return {}
    return {"controller": controller_name(loaded_arm(arguments))}


def controller_parameters(arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a controller node, with ``controller`` only if given."""
    controller = {"controller": arguments["controller"]} if arguments["controller"] else {}
    return {**model_parameters(arguments), **scene_parameters(arguments), **controller}


def params_files(arguments: Mapping[str, str]) -> list[str]:
    """Return the parameter file as a list, empty without argument and file of the arm.

    Raise ConfigError for a missing file, and the errors of ``load_arm``.
    """
    loaded_arm(arguments)
    file = arguments["params_file"]
    if file and not Path(file).is_file():
        raise ConfigError(f"params_file = {file}; expected an existing file")
    chosen = file or parameter_file(arguments["arm"])
    return [str(chosen)] if chosen else []


def positive_argument(name: str, text: str) -> float:
    """Return the positive number of an argument; raise ConfigError for other text."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ConfigError(f"{name} = '{text}'; expected a positive number")
    return number


def viewer_node(
    executable: str, arguments: Mapping[str, str], shows: str, **more: Any
) -> Node | LogInfo:
    """Return a node with a browser page, or a message about missing packages.

    Parameters
    ----------
    executable : str
        Executable of this package.
    arguments : mapping of str to str
        Launch arguments.
    shows : str
        Name of the page in the message.
    **more
        Parameters of the node.

    Raises
    ------
    ConfigError
        For an invalid port.

    """
    if find_spec("viser") is None or find_spec("yourdfpy") is None:
        return LogInfo(msg=f"viser is not installed: no {shows} ({to_install('viewer')})")
    port = arguments["viewer_port"]
    if not (port.isascii() and port.isdecimal()):
        raise ConfigError(f"viewer_port = '{port}'; expected an integer")
    scene = scene_parameters(arguments) if SCENE[0] in arguments else {}
    parameters = {**model_parameters(arguments), **scene, "port": int(port), **more}
    return node(executable, arguments, parameters)


def _arm_ended(event: Any, context: Any) -> Any:
    """End the launch with the arm's node, and fail if that failed."""
    if context.is_shutdown:
        return None
    if event.returncode != 0:
        raise RuntimeError(f"{event.process_name} ended with code {event.returncode}")
    return Shutdown(reason="the arm's node ended")


SIMULATED = "simulated"
FALLBACKS = (NAMELESS, "position")
"""Controllers that replace one with an unavailable command interface."""


def select_controller(arguments: Mapping[str, str], files: Sequence[str]) -> tuple[str, str]:
    """Return the controller of an arm, by its command interfaces.

    A physical arm uses the given controller; a simulated one may have other interfaces than the
    motors.

    Parameters
    ----------
    arguments : mapping of str to str
        Launch arguments: arm, driver, command_interface, controller and more.
    files : sequence of str
        Parameter file, if any.

    Returns
    -------
    name, message : tuple of str
        Name of the controller, "" for the parameter file's; and why it differs from the given or
        default one, else "".

    Raises
    ------
    UnknownName
        For an unregistered controller.
    ConfigError
        For an unreadable parameter file.

    """
    requested, simulated = arguments["controller"], arguments["driver"] == SIMULATED
    if requested and not simulated:
        return requested, ""
    default = controller_name(loaded_arm(arguments), file=files[0] if files else None)
    if simulated:  # the command interfaces of all joints
        first, *others = (actuator.interfaces for actuator in loaded_arm(arguments).actuators)
        accepted = tuple(one for one in first if all(one in other for other in others))
    else:
        settings = node_parameters(files[0], "hardware") if files else {}
        interface = settings.get("command_interface", "effort")
        accepted = (arguments["command_interface"] or str(interface),)
    preferred = requested or default
    usable = (
        name for name in (preferred, default, *FALLBACKS) if _commands(name) in (*accepted, MIXED)
    )
    selected = next(usable, preferred)
    if selected == preferred:
        return requested or ("" if files else default), ""
    arm = "simulated arm accepts" if simulated else "motors accept"
    return selected, (
        f"command interface of {preferred} = {_commands(preferred)};"
        f" the {arm} {', '.join(accepted)};"
        f" using controller {selected}"
    )


def _commands(controller: str) -> str:
    interface: str = plugins.load_class("controllers", controller).interface
    return interface
