"""What the driver is told of its line: port, baud, latency, and the servos' torque constant."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.hardware.serial_port import Port

SETTINGS = (
    Parameter("baud", 1e6, "bit/s", "rate of the serial line", above=0),
    Parameter("latency", 8e-3, "s", "of adapter and system, before an answer counts as lost", 0.0),
    Parameter("kt", 1.08, "N·m/A", "torque a current makes at the shaft; default: 12 V", above=0),
)


def read_settings(settings: Mapping[str, str]) -> dict[str, float]:
    """The numbers of SETTINGS; raises ConfigError for one that is none or out of range."""
    names = {parameter.name for parameter in SETTINGS}
    given = {name: text for name, text in settings.items() if name in names}
    try:
        return with_defaults("driver feetech", SETTINGS, given)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error


def serial_port(settings: Mapping[str, str], baud: float) -> Port:
    """The serial port that ``port`` names; raises ConfigError where it names none."""
    from arm_dynamics.hardware.serial_port import SerialPort  # noqa: PLC0415 - POSIX alone

    if not settings.get("port"):
        raise ConfigError("driver feetech: port is missing; for example port:=/dev/ttyACM0")
    return SerialPort(settings["port"], int(baud))
