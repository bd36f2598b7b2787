"""Options of the commands that simulate or control an arm, and the objects built from them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from arm_dynamics.batch.stability.stability_report import LINEAR_CONTROLLERS
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.scene_files import load_scene
from arm_dynamics.control.config import (
    PERIOD,
    build_controller,
    controller_name,
    warn_of_thin_margin,
)
from arm_dynamics.control.controller_choice import joint_controller_classes
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.number_option import MAX_NUMBER, Number, seconds
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm

ALL = ("lock", "payload", "configuration", "gains", "controller", "dt")
KERNELS = ("pid_gravity", "pid")
"""Controllers that ``rollout`` simulates in generated kernels."""
DT = 1e-4
"""Time step [s] of a simulation."""
LOCK_HELP = "joint to lock; repeat the option for each joint (--lock J1 --lock J2)"
CONFIGURATION_HELP = (
    "initial configuration: initial, zero or Q1,Q2,... [rad; m]; --configuration=-1,0 if the first"
    " number is negative (default: initial)"
)


def path_argument(text: str) -> Path:
    """Return ``text`` as a path; the ``type`` of an argparse argument.

    Raises
    ------
    argparse.ArgumentTypeError
        If ``text`` is empty, which would be the current folder.

    """
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r}; expected the path of a file or folder")
    return Path(text)


def named_values(option: str, texts: Sequence[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """Return the values of a repeated option by name; raise ConfigError unless all are ``form``."""
    values = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise ConfigError(f"{option} = {text}; expected {form}")
        values[name] = value
    return values


def require_new_file(option: str, file: Path | None) -> None:
    """Raise ConfigError if the given file of an option exists already, or its folder does not."""
    if file is not None and file.exists():
        raise ConfigError(f"{option} = {file}, which exists already; expected a new file")
    if file is not None and not file.absolute().parent.is_dir():
        raise ConfigError(f"{option} = {file}; expected a file in a folder that exists")


def add_arm(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the positional argument ARM, and --tool-frame."""
    text = "bundled arm or path of a URDF, xacro or MJCF file"
    if default is None:
        parser.add_argument("arm", metavar="ARM", help=text)
    else:
        text = f"{text} (default: {default})"
        parser.add_argument("arm", metavar="ARM", nargs="?", default=default, help=text)
    add_tool_frame(parser)


def add_tool_frame(parser: argparse.ArgumentParser) -> None:
    """Add the option --tool-frame of every command with an arm."""
    text = (
        "link that is the tool frame (default: that of the URDF, else selected by the names and the"
        " order of its links; the command audit prints it)"
    )
    parser.add_argument("--tool-frame", metavar="LINK", help=text)


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
    """Add the options named in ``only`` to the parser of a command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Parser of the command.
    only : collection of str
        Names of the options, from ALL.
    controllers : callable, optional
        Function that returns the accepted names of controllers; all registered ones by default.
    modeled : bool
        Default of --payload-modeled.
    dt : float or None
        Default of --dt [s]; None if the command computes it.
    gains : str
        First words of the help of --gains.
    usual : str
        Controller of the command if the parameter file names none that it accepts.

    """
    add = parser.add_argument
    if "lock" in only:
        add("--lock", action="append", default=[], metavar="JOINT", help=LOCK_HELP)
    if "payload" in only:
        kg = Number("--payload", 0, MAX_NUMBER, "kg")
        text = "point mass at the tool [kg] (default: 0)"
        add("--payload", type=kg, default=0.0, metavar="KG", help=text)
        usually = "yes" if modeled else "no"
        text = f"whether the controller's model contains the payload (default: {usually})"
        yes_no = argparse.BooleanOptionalAction
        add("--payload-modeled", action=yes_no, default=modeled, help=text)
    if "configuration" in only:
        add("--configuration", metavar="NAME|Q1,Q2,...", default="initial", help=CONFIGURATION_HELP)
    if "gains" in only:
        text = f"{gains} (default: config/<arm>.yaml, if any)"
        add("--gains", "--params-file", type=path_argument, metavar="FILE", help=text)
    if "controller" in only:
        accepted = controllers() if controllers else plugins.registered_names("controllers")
        text = f"controller: {', '.join(accepted)} (default: the parameter file's, else {usual})"
        add("--controller", type=_ControllerName(accepted), metavar="NAME", help=text)
    if "dt" in only:
        text = f"time step [s] (default: {DT:g})"
        add("--dt", type=seconds("--dt"), default=dt, metavar="S", help=text)


def add_excitation(parser: argparse.ArgumentParser) -> None:
    """Add the option --excitation of commands that move an arm."""
    text = "excitation trajectory: a file of arm-dynamics excite; the arm moves to its start first"
    parser.add_argument("--excitation", type=path_argument, metavar="FILE", help=text)


def add_scene(parser: argparse.ArgumentParser) -> None:
    """Add the option --scene of commands that move an arm."""
    text = (
        "objects around the arm, which its links do not touch: table, ground, or a YAML or URDF"
        " file (default: none)"
    )
    parser.add_argument("--scene", metavar="NAME|FILE", help=text)


def scene_of(args: argparse.Namespace) -> Scene:
    """Return the scene of --scene."""
    return EMPTY_SCENE if args.scene is None else load_scene(args.scene)


def build_arm(args: argparse.Namespace) -> ArmModel:
    """Load the arm ARM with --lock, --tool-frame and --configuration.

    Returns
    -------
    ArmModel
        The arm without its locked joints; its initial configuration is that of --configuration.

    Raises
    ------
    ArmDynamicsError
        If the URDF is not a valid arm, or has no such configuration.

    """
    arm = load_arm(args.arm, args.lock, tool_frame=args.tool_frame)
    text = getattr(args, "configuration", "initial")
    if text == "initial":
        return arm
    return arm.with_initial(read_configuration(arm, "--configuration", text))


def with_payload(arm: ArmModel, args: argparse.Namespace) -> ArmModel:
    """Return ``arm`` with the payload of --payload."""
    return arm.with_payload(args.payload) if args.payload else arm


def controller_of(
    arm: ArmModel, args: argparse.Namespace, among: Collection[str] | None = None
) -> Controller:
    """Build the controller of --controller and --gains; its model is that of --payload-modeled.

    Warns of thin stability margins at --period, computed for the arm with its payload.

    Parameters
    ----------
    arm : ArmModel
        The arm without payload.
    args : argparse.Namespace
        Options of the command.
    among : collection of str, optional
        Names of the controllers that the command runs; all registered ones by default.

    Raises
    ------
    ArmDynamicsError
        If the arm or the command does not accept the controller, or its gains are invalid.

    """
    require_accepted(arm, controller_name(arm, args.controller, args.gains), among)
    controller = build_controller(arm, args.controller, args.gains, period=None)
    if args.payload and args.payload_modeled:
        controller.set_model(with_payload(arm, args))
    period = getattr(args, "period", None)
    warn_of_thin_margin(controller, with_payload(arm, args), PERIOD if period is None else period)
    return controller


def read_configuration(arm: ArmModel, option: str, text: str) -> Vector:
    """Return the configuration q (nv,) [rad; m] with the name ``text``, or its numbers "Q1,Q2".

    Raises
    ------
    ArmDynamicsError
        If the arm has no such configuration; the message names ``option``.

    """
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError as error:
        if "," not in text:
            return arm.configuration(text)
        raise ConfigError(f"{option} = {text}: {error}") from error
    return arm.check_position(option, numbers)


def tuned_controllers() -> tuple[str, ...]:
    """Return the names of the controllers of tune: joint-space, with effort commands."""
    every = joint_controller_classes("effort").items()
    return tuple(name for name, kind in every if kind.tracks_reference)


def linear_controllers() -> tuple[str, ...]:
    """Return the names of the controllers that stability linearizes."""
    every = plugins.loadable_classes("controllers").items()
    return tuple(name for name, kind in every if issubclass(kind, LINEAR_CONTROLLERS))


def joint_controllers() -> tuple[str, ...]:
    """Return the names of the joint-space controllers."""
    return tuple(joint_controller_classes())


def kernel_controller_name(arm: ArmModel, args: argparse.Namespace) -> str:
    """Return the name of a controller for a command that simulates with kernels.

    It is that of --controller or --gains, else that of the arm's parameter file if it is one of
    KERNELS, else the first of KERNELS.
    """
    name = controller_name(arm, args.controller, args.gains)
    named = args.controller or args.gains or name in KERNELS
    return name if named else KERNELS[0]


def require_accepted(arm: ArmModel, name: str, among: Collection[str] | None = None) -> None:
    """Raise an error unless the command and the arm's actuators accept a controller.

    Raises
    ------
    ConfigError
        If an actuator does not accept the controller's command interface.
    UnknownName
        If the controller is not ``among`` those of the command.

    """
    if among is not None and name not in among:
        raise UnknownName("controller", name, tuple(among))
    every = plugins.loadable_classes("controllers")
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
            f"--controller {name}: command interface = {interface}; expected"
            f" {', '.join(actuator.interfaces)} (actuator of joint '{actuator.joint}');"
            f" controllers of this arm: {', '.join(accepted) or 'none'}"
        )


class _ControllerName:
    """``type`` of --controller: raises UnknownName unless the command accepts the name."""

    def __init__(self, accepted: tuple[str, ...]) -> None:
        self._accepted = accepted

    def __call__(self, text: str) -> str:
        if text not in self._accepted:
            raise UnknownName("controller", text, self._accepted)
        return text
