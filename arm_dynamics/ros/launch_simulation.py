"""Simulator, controller and page of one arm: their launch arguments and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.ros.launch_parts import (
    PARAMS_FILE,
    SWITCH,
    Argument,
    description_parameters,
    model_parameters,
    node,
    positive_argument,
    required_node,
    viewer_node,
)
from arm_dynamics.ros.simulation_parameters import lockstep_by_default

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
        "joint states and commands per simulated second [Hz]; empty: the parameter file's or 500",
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
        "the simulator waits for the command that answers each state, so that a busy machine slows"
        " time down and delays no command; empty: as the parameter file says, else true with"
        " use_sim_time",
        ["", *SWITCH],
    ),
    USE_SIM_TIME,
    (
        "publish_clock",
        "",
        "be the source of /clock; empty: as use_sim_time; false for every arm but one: the others"
        " follow that arm's /clock",
        ["", *SWITCH],
    ),
    ("composed", "false", "simulator and controller in one process", SWITCH),
    ("viewer", "false", "show the arm on a page for a browser on this machine", SWITCH),
    ("port", "8080", "port of that page; the next free one if taken", None),
    PARAMS_FILE,
)
"""Arguments of the launch files that simulate an arm and its controller."""


def simulated_arm(
    given: Mapping[str, str],
    files: Sequence[str],
    executables: tuple[str, str],
    controller: Mapping[str, Any],
    *,
    controls: bool,
) -> list[Any]:
    """Simulator, controller and page, as the arguments of SIMULATION say.

    ``executables`` are the controller's and the one that has both nodes in one process;
    ``controls`` are those of the page. Raises ConfigError for arguments that exclude each other.
    """
    simulator = simulator_parameters(given) | lockstep(given, files)
    shown = given["viewer"] == "true"
    page_nodes = [viewer_node("viewer", given, "page", controls=controls)] if shown else []
    apart, composed = executables
    if given["composed"] == "true":
        return [required_node(composed, given, *files, simulator, controller), *page_nodes]
    # Controller and page go by the stamps of the states: following /clock would cost a core.
    return [
        required_node("simulator", given, *files, simulator),
        node(apart, given, *files, controller),
        *page_nodes,
    ]


def simulator_parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Those of a simulator that is the source of /clock, follows it, or has the computer's time.

    Raises ConfigError for arguments that exclude each other.
    """
    simulated = given["use_sim_time"] == "true"
    source = given["publish_clock"] == "true" if given["publish_clock"] else simulated
    if source and not simulated:
        raise ConfigError("publish_clock:=true needs use_sim_time:=true: /clock is simulated time")
    if given["real_time_factor"] and simulated and not source:
        raise ConfigError(
            "real_time_factor with publish_clock:=false: that of the arm that publishes /clock"
            " counts; give it there"
        )
    numbers = ("rate", "real_time_factor")
    return {
        **model_parameters(given),
        **description_parameters(),
        "publish_clock": source,
        "use_sim_time": simulated and not source,  # its own /clock it would wait for
        **{name: positive_argument(name, given[name]) for name in numbers if given[name]},
    }


def lockstep(given: Mapping[str, str], files: Sequence[str]) -> dict[str, Any]:
    """Whether the simulator waits for commands: as given, else as the file says, else it does.

    Without simulated time it cannot; ConfigError where it should.
    """
    asked, simulated = given["lockstep"], given["use_sim_time"] == "true"
    if asked == "true" and not simulated:
        raise ConfigError("lockstep:=true needs use_sim_time:=true: commands answer by that time")
    usual = lockstep_by_default(files[0] if files else None) and simulated
    return {"lockstep": asked == "true" if asked else usual}
