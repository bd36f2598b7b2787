"""A file or folder as an argument: an empty one would mean the present folder.

Options of every command that simulates or controls an arm, and what is built from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path

from arm_dynamics.batch.stability.stability_report import LINEAR_CONTROLLERS
from arm_dynamics.control.config import (
    PERIOD,
    build_controller,
    controller_name,
    warn_of_thin_margin,
)
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seconds
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm


def path_argument(text: str) -> Path:
    """``text`` as a path; argparse refuses an empty one, naming the argument."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r}: the path of a file or folder is expected")
    return Path(text)


ALL = ("lock", "payload", "configuration", "gains", "controller", "dt")
KERNELS = ("pid_gravity", "pid")
"""Controllers that the kernels of ``rollout`` run."""
DT = 1e-4
"""Time step [s] of a simulation."""
LOCK_HELP = "joint to hold still; repeat the option for each joint (--lock J1 --lock J2)"
CONFIGURATION_HELP = (
    "initial configuration: initial, zero or Q1,Q2,... [rad; m]; write --configuration=-1,0"
)


def add_arm(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the positional argument ARM."""
    text = "bundled arm or path of a URDF"
    if default is None:
        parser.add_argument("arm", metavar="ARM", help=text)
    else:
        text = f"{text} (default: {default})"
        parser.add_argument("arm", metavar="ARM", nargs="?", default=default, help=text)


def add_options(
    parser: argparse.ArgumentParser,
    only: Collection[str] = ALL,
    *,
    controllers: Callable[[], tuple[str, ...]] | None = None,
    modeled: bool = False,
    dt: float | None = DT,
    gains: str = "parameter file with gains",
    usual: str = "computed_torque",
) -> None:
    """Add the options named in ``only``.

    ``controllers`` returns the names that the command accepts; ``modeled`` is whether the
    controller's model contains the payload unless the user says otherwise; without ``dt`` the
    command has its own default; ``gains`` begins the help of that option; ``usual`` is the
    controller where the parameter file names none that the command runs.
    """
    add = parser.add_argument
    if "lock" in only:
        add("--lock", action="append", default=[], metavar="JOINT", help=LOCK_HELP)
    if "payload" in only:
        kg = Number("--payload", 0, MAX_NUMBER, "kg")
        add("--payload", type=kg, default=0.0, metavar="KG", help="mass at the tool [kg] (0)")
        add(
            "--payload-modeled",
            action=argparse.BooleanOptionalAction,
            default=modeled,
            help=f"the controller's model contains the payload ({'yes' if modeled else 'no'})",
        )
    if "configuration" in only:
        add("--configuration", metavar="NAME|Q1,Q2,...", default="initial", help=CONFIGURATION_HELP)
    if "gains" in only:
        text = f"{gains} (default: config/<arm>.yaml, if any)"
        add("--gains", "--params-file", type=path_argument, metavar="FILE", help=text)
    if "controller" in only:
        accepted = controllers() if controllers else plugins.registered_names("controllers")
        text = f"{', '.join(accepted)} (default: the parameter file's, else {usual})"
        add("--controller", type=_ControllerName(accepted), metavar="NAME", help=text)
    if "dt" in only:
        text = f"time step [s] ({DT:g})"
        add("--dt", type=seconds("--dt"), default=dt, metavar="S", help=text)


def build_arm(given: argparse.Namespace) -> ArmModel:
    """Load the arm with its joints locked; its initial pose is that of --configuration.

    Raises what ``load_arm`` raises, and ConfigError or InvalidValue for a pose that is not one.
    """
    arm = load_arm(given.arm, given.lock)
    text = getattr(given, "configuration", "initial")
    return (
        arm
        if text == "initial"
        else arm.with_initial(read_configuration(arm, "--configuration", text))
    )


def loaded(arm: ArmModel, given: argparse.Namespace) -> ArmModel:
    """Return ``arm`` with the payload of --payload."""
    return arm.with_payload(given.payload) if given.payload else arm


def controller_of(
    arm: ArmModel, given: argparse.Namespace, among: Collection[str] | None = None
) -> Controller:
    """Build the controller; its model contains the payload where --payload-modeled says so.

    Warns of thin stability margins on the arm with the payload, at --period. Raises what
    ``build_controller`` and ``require_accepted`` raise.
    """
    require_accepted(arm, controller_name(arm, given.controller, given.gains), among)
    controller = build_controller(arm, given.controller, given.gains, period=None)
    if given.payload and given.payload_modeled:
        controller.set_model(loaded(arm, given))
    period = getattr(given, "period", None)
    warn_of_thin_margin(controller, loaded(arm, given), PERIOD if period is None else period)
    return controller


def read_configuration(arm: ArmModel, option: str, text: str) -> Vector:
    """Return the configuration (nv,) of a named pose, or of numbers separated by commas."""
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError as error:
        if "," not in text:
            return arm.configuration(text)
        raise ConfigError(f"{option} {text}: {error}") from error
    return arm.check_position(option, numbers)


def tuned_controllers() -> tuple[str, ...]:
    """Names of the controllers that tune runs: joints' efforts along a joint-space reference."""
    every = plugins.sound("controllers").items()
    return tuple(
        name
        for name, kind in every
        if kind.interface == "effort"
        and kind.tracks_reference
        and not issubclass(kind, TaskSpaceController)
    )


def linear_controllers() -> tuple[str, ...]:
    """Names of the controllers that stability linearizes."""
    every = plugins.sound("controllers").items()
    return tuple(name for name, kind in every if issubclass(kind, LINEAR_CONTROLLERS))


def joint_controllers() -> tuple[str, ...]:
    """Names of the controllers that the joint controller node runs: not those of task space."""
    every = plugins.sound("controllers").items()
    return tuple(name for name, kind in every if not issubclass(kind, TaskSpaceController))


def controller_of_kernels(arm: ArmModel, given: argparse.Namespace) -> str:
    """Return the controller of a command that runs it in kernels: --controller, or the default.

    The arm's own parameter file may name one without a kernel: then it is the first of KERNELS.
    """
    name = controller_name(arm, given.controller, given.gains)
    named = given.controller or given.gains or name in KERNELS
    return name if named else KERNELS[0]


def require_accepted(arm: ArmModel, name: str, among: Collection[str] | None = None) -> None:
    """Raise ConfigError for a controller whose commands the arm's actuators do not accept.

    Raises UnknownName for one that is not ``among`` those that the command runs.
    """
    if among is not None and name not in among:
        raise UnknownName("controller", name, tuple(among))
    every = plugins.sound("controllers")
    accepted = [
        other
        for other in every
        if (among is None or other in among)
        and all(every[other].interface in actuator.interfaces for actuator in arm.actuators)
    ]
    if name in every and name not in accepted:
        interface = every[name].interface
        actuator = next(a for a in arm.actuators if interface not in a.interfaces)
        raise ConfigError(
            f"--controller {name} commands {interface}; the actuator of joint '{actuator.joint}'"
            f" accepts {', '.join(actuator.interfaces)}; controllers of this arm:"
            f" {', '.join(accepted) or 'none'}"
        )


class _ControllerName:
    """``type`` of --controller: rejects every other name, with the list, before work begins."""

    def __init__(self, accepted: tuple[str, ...]) -> None:
        self._accepted = accepted

    def __call__(self, text: str) -> str:
        if text not in self._accepted:
            raise UnknownName("controller", text, self._accepted)
        return text
