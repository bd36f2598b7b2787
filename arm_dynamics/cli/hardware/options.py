"""Options of the hardware commands: driver, port, settings; advice for ports that do not open."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arm_dynamics.cli import arm_options
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.hardware.build import WITHOUT_MOTORS, build_bus, build_driver
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info

PORTS = ("ttyUSB*", "ttyACM*", "serial/by-id/*")
DENIED = "permit it to your user: sudo usermod -aG dialout $USER; then log in again"
BUSY = "another program has it open (a hardware node?); end that program first"
NOT_SERIAL = "expected a serial port"
ADVICE = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), DENIED),
    **dict.fromkeys((errno.EAGAIN, errno.EBUSY), BUSY),
    **dict.fromkeys((errno.ENOTTY, errno.EINVAL, errno.EISDIR), NOT_SERIAL),
}
"""Advice by the number of an error of the system."""
NO_MOTORS = "name the motor of each joint in the URDF: docs/hardware.md, 'Drivers'"


def with_advice(error: DriverFault) -> DriverFault:
    """Return a fault with advice appended where an error of the system is among its causes.

    Parameters
    ----------
    error : DriverFault
        A fault with its chain of causes.

    Returns
    -------
    DriverFault
        ``error`` itself, or a new fault "<message>; <advice>".

    """
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        first = cause.args[0] if cause.args else None  # termios.error has no errno
        number = getattr(cause, "errno", first)
        advice = ADVICE.get(number, "") if isinstance(number, int) else ""
        if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
            found = [str(p) for name in PORTS for p in sorted(Path("/dev").glob(name))]
            advice = "serial ports of this machine: "
            advice += ", ".join(found) or "none; is the adapter connected?"
        if advice:
            return DriverFault(f"{error}; {advice}")
        cause = cause.__cause__ or cause.__context__
    return error


def make_parser(
    command: str,
    description: str | None,
    default_port: str = "the URDF's",
    default_baud: str = "the URDF's",
    others: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Return the parser of a hardware command, with the options of the driver.

    Parameters
    ----------
    command : str
        Name of the sub-command.
    description : str or None
        First text of the help.
    default_port, default_baud : str
        Texts about the default values of --port and --baud.
    others : sequence of str
        Drivers without motors that the command accepts.

    """
    parser = SuggestingParser(
        prog=f"arm-dynamics hardware {command}", description=description, allow_abbrev=False
    )
    names = plugins.registered_names("drivers")
    drivers = ", ".join(name for name in names if name not in WITHOUT_MOTORS)
    drivers += "".join(f"; or {name}, without motors" for name in others)
    add = parser.add_argument
    add("--driver", metavar="NAME", help=f"driver of the motors: {drivers}")
    add("--port", help=f"serial device or CAN channel (default: {default_port})")
    add("--baud", help=f"rate of the port [bit/s] (default: {default_baud})")
    text = "setting of the driver; repeat the option for each setting (--set interface=slcan)"
    add("--set", action="append", default=[], metavar="NAME=VALUE", help=text)
    return parser


def add_arm(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument ARM and --lock."""
    arm_options.add_arm(parser)
    arm_options.add_options(parser, only=("lock",))


def settings(args: argparse.Namespace) -> dict[str, str]:
    """Return the driver settings of --port, --baud and --set, which override the URDF's.

    Raises
    ------
    ConfigError
        If the argument of a --set is not NAME=VALUE.

    """
    named = {"port": args.port, "baud": args.baud}
    given = {name: value for name, value in named.items() if value is not None}
    return given | arm_options.named_values("--set", args.set)


def arm_with_hardware(args: argparse.Namespace) -> ArmModel:
    """Load the arm of ARM without its locked joints.

    Raises
    ------
    ConfigError
        If the URDF names no motors.

    """
    arm = arm_options.build_arm(args)
    try:
        read_hardware_info(arm)
    except ConfigError as error:
        raise ConfigError(f"arm '{arm.name}': {error}; {NO_MOTORS}") from error
    return arm


def driver_name(args: argparse.Namespace, arm: ArmModel) -> str:
    """Return the driver of --driver, else the URDF's.

    Raises
    ------
    ConfigError
        If neither names a driver.

    """
    name: str = args.driver or read_hardware_info(arm).settings.get("driver", "")
    if not name:
        raise ConfigError(f"--driver is required, because the URDF of '{arm.name}' names no driver")
    return name


def motors(args: argparse.Namespace, arm: ArmModel) -> MotorBus:
    """Return the bus of the arm's motors, not yet opened."""
    return build_bus(arm, driver_name(args, arm), settings(args))


def build_motor_driver(args: argparse.Namespace, arm: ArmModel, **options: Any) -> MotorBusDriver:
    """Build the driver of the arm's motors.

    Parameters
    ----------
    args : argparse.Namespace
        Options of the command.
    arm : ArmModel
        The arm.
    **options
        Further arguments of ``build_driver``.

    Raises
    ------
    ConfigError
        If the driver has no motors.

    """
    name = driver_name(args, arm)
    driver = build_driver(arm, name, settings(args), **options)
    if not isinstance(driver, MotorBusDriver):
        raise ConfigError(f"--driver = {name}; expected a driver of motors")
    return driver


def require_output_folder(output: Path) -> None:
    """Raise ConfigError if a file cannot be written at the path of --output."""
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise ConfigError(f"--output = {output}; expected a file in a folder that exists")


def comma_list(names: Sequence[str], none: str = "none") -> str:
    """Return the names separated by commas, or ``none`` for an empty list."""
    return ", ".join(names) or none
