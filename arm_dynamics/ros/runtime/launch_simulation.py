"""Simulator, controller and viewer of one arm: launch arguments and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.ros.parameters.arm_parameters import lockstep_by_default
from arm_dynamics.ros.runtime.launch_parts import (
    PARAMS_FILE,
    SCENE,
    SWITCH,
    Argument,
    description_parameters,
    model_parameters,
    node,
    positive_argument,
    required_node,
    scene_parameters,
    viewer_node,
)

USE_SIM_TIME: Argument = (
    "use_sim_time",
    "true",
    "the simulator is the source of /clock; robot_state_publisher and RViz follow it",
    SWITCH,
)
SIMULATION = (
    (
        "rate",
        "",
        "control cycles per simulated second [Hz]; empty: the parameter file's or 500",
        None,
    ),
    (
        "real_time_factor",
        "",
        "simulated seconds per second; empty: the parameter file's or 1",
        None,
    ),
    (
        "lockstep",
        "",
        "the simulator waits for the command that replies to each state, so that a busy machine"
        " slows simulated time down and delays no command; empty: the parameter file's, else true"
        " with use_sim_time",
        ["", *SWITCH],
    ),
    USE_SIM_TIME,
    (
        "publish_clock",
        "",
        "publish /clock; empty: as use_sim_time; with several arms true for only one of them: the"
        " others follow its /clock",
        ["", *SWITCH],
    ),
    SCENE,
    ("composed", "false", "simulator and controller in one process", SWITCH),
    ("viewer", "false", "show the arm on a browser page on this machine", SWITCH),
    ("viewer_port", "8080", "port of that page; the next free one if in use", None),
    PARAMS_FILE,
)
"""Arguments of the launch files that simulate an arm and its controller."""


def simulated_arm(
    arguments: Mapping[str, str],
    files: Sequence[str],
    executables: tuple[str, str],
    controller: Mapping[str, Any],
    *,
    controls: bool,
) -> list[Any]:
    """Return simulator, controller and viewer for the arguments SIMULATION.

    Parameters
    ----------
    arguments : mapping of str to str
        Launch arguments.
    files : sequence of str
        Parameter file, if any.
    executables : tuple of str
        The controller, and the executable of both nodes in one process.
    controller : mapping of str to Any
        Parameters of the controller.
    controls : bool
        Whether the page can move the arm.

    Raises
    ------
    ConfigError
        For arguments that exclude each other.

    """
    simulator = simulator_parameters(arguments) | lockstep(arguments, files)
    shown = arguments["viewer"] == "true"
    page_nodes = [viewer_node("viewer", arguments, "page", controls=controls)] if shown else []
    controller_node, composed = executables
    if arguments["composed"] == "true":
        return [required_node(composed, arguments, *files, simulator, controller), *page_nodes]
    # Controller and viewer use the stamps of the states: following /clock would load a core.
    return [
        required_node("simulator", arguments, *files, simulator),
        node(controller_node, arguments, *files, controller),
        *page_nodes,
    ]


def simulator_parameters(arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a simulator: its clock, model and rates.

    Raise ConfigError for arguments that exclude each other.
    """
    simulated = arguments["use_sim_time"] == "true"
    source = arguments["publish_clock"] == "true" if arguments["publish_clock"] else simulated
    if source and not simulated:
        raise ConfigError("use_sim_time = false; expected true with publish_clock:=true")
    if arguments["real_time_factor"] and simulated and not source:
        raise ConfigError(
            "real_time_factor: publish_clock = false; expected true; set the real_time_factor of"
            " the arm that publishes /clock"
        )
    numbers = {"rate": "update_rate", "real_time_factor": "real_time_factor"}
    return {
        **model_parameters(arguments),
        **scene_parameters(arguments),
        **description_parameters(),
        "publish_clock": source,
        "use_sim_time": simulated and not source,  # else it would wait for its own /clock
        **{
            parameter: positive_argument(argument, arguments[argument])
            for argument, parameter in numbers.items()
            if arguments[argument]
        },
    }


def lockstep(arguments: Mapping[str, str], files: Sequence[str]) -> dict[str, Any]:
    """Return whether the simulator waits for commands: the argument, the file's value, or true.

    Lockstep requires simulated time; raise ConfigError without.
    """
    requested, simulated = arguments["lockstep"], arguments["use_sim_time"] == "true"
    if requested == "true" and not simulated:
        raise ConfigError("use_sim_time = false; expected true with lockstep:=true")
    default = lockstep_by_default(files[0] if files else None) and simulated
    return {"lockstep": requested == "true" if requested else default}
