"""What to do about a port that cannot be opened.

Options that name a driver and its line, and the motors of an arm behind them.
"""

from __future__ import annotations

import argparse
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from arm_dynamics.cli import arm_options
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.hardware.build import WITHOUT_MOTORS, build_bus
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info

PORTS = ("ttyUSB*", "ttyACM*", "serial/by-id/*")
DENIED = "allow it to your user: sudo usermod -aG dialout $USER, then log in anew"
BUSY = "another program has it open (a hardware node?): end that one first"


def with_advice(error: DriverFault) -> DriverFault:
    """The same fault, followed by advice where its cause is known."""
    advice = next((words for number in _numbers(error) if (words := _advice(number))), "")
    return DriverFault(f"{error}; {advice}") if advice else error


def ports() -> list[str]:
    """The serial adapters of this machine."""
    return [str(found) for name in PORTS for found in sorted(Path("/dev").glob(name))]


def _numbers(error: BaseException | None) -> Iterator[int]:
    """Numbers of the system's errors that led to this one."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        first = error.args[0] if error.args else None  # termios.error has no errno
        number = getattr(error, "errno", first)
        if isinstance(number, int):
            yield number
        error = error.__cause__ or error.__context__


def _advice(number: int) -> str:
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"serial ports of this machine: {', '.join(ports()) or 'none; is it plugged in?'}"
    if number in (errno.EACCES, errno.EPERM):
        return DENIED
    if number in (errno.EAGAIN, errno.EBUSY):
        return BUSY
    return "that is no serial port" if number in (errno.ENOTTY, errno.EINVAL, errno.EISDIR) else ""


NO_WIRING = "the URDF must say which motor moves which joint: docs/hardware.md, 'Which motors'"


def make_parser(
    command: str, description: str | None, default: str = "the URDF's"
) -> argparse.ArgumentParser:
    """A parser with the options of the line; ``default`` is what port and rate are else."""
    made = argparse.ArgumentParser(
        prog=f"arm-dynamics hardware {command}", description=description, allow_abbrev=False
    )
    drivers = ", ".join(
        name for name in plugins.registered_names("drivers") if name not in WITHOUT_MOTORS
    )
    add = made.add_argument
    add("--driver", metavar="NAME", help=drivers)
    add("--port", help=f"serial device or CAN channel; default: {default}")
    add("--baud", help=f"rate of the port [bit/s]; default: {default}")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the driver; give it once for each (--set interface=slcan)",
    )
    return made


def add_arm(made: argparse.ArgumentParser) -> None:
    """The arm, and joints of it that are not driven."""
    arm_options.add_arm(made)
    arm_options.add_options(made, only=("lock",))


def settings(given: argparse.Namespace) -> dict[str, str]:
    """What the options say over the URDF's hardware params."""
    named = {"port": given.port, "baud": given.baud}
    found = {name: value for name, value in named.items() if value is not None}
    return found | dict(map(_pair, given.set))


def arm_with_hardware(given: argparse.Namespace) -> ArmModel:
    """The arm without its locked joints, whose motors stay as they are.

    Raises ConfigError where the URDF names no motors.
    """
    arm = arm_options.build_arm(given)
    try:
        read_hardware_info(arm)
    except ConfigError as error:
        raise ConfigError(f"arm '{arm.name}': {error}; {NO_WIRING}") from error
    return arm


def driver_name(given: argparse.Namespace, arm: ArmModel) -> str:
    """The driver that is asked for, else the URDF's; raises ConfigError without any."""
    name: str = given.driver or read_hardware_info(arm).settings.get("driver", "")
    if not name:
        raise ConfigError(f"--driver: none is given, and the URDF of '{arm.name}' names none")
    return name


def motors(given: argparse.Namespace, arm: ArmModel) -> MotorBus:
    """The arm's motors; nothing is opened yet."""
    return build_bus(arm, driver_name(given, arm), settings(given))


def comma_list(names: Sequence[str], none: str = "none") -> str:
    """Names with commas between."""
    return ", ".join(names) or none


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise ConfigError(f"--set {text}: NAME=VALUE is expected")
    return name, value
