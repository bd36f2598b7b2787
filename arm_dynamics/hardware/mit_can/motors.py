"""MIT-mode motors: ranges of their frames, format of their replies, and settings of a CAN bus.

References
----------
Damiao, default PMAX, VMAX, TMAX of DM-J4310-2EC, DM-J4340-2EC, DM-J8009-2EC (user manuals; Enactic,
openarm_can); CubeMars, AK series actuator driver manual V1.0.8, section 5.3.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.hardware.mit_can.can_frames import (
    MitFeedback,
    Ranges,
    parse_cubemars,
    parse_damiao,
)

REPLY_TIMEOUT = Parameter("reply_timeout", 3e-3, "s", "longest gap between replies", above=0.0)
REPLY_ID_OFFSET = Parameter("reply_id_offset", 16, "1", "reply id minus motor id", lower=0)
BITRATE = Parameter("bitrate", 1e6, "bit/s", "of the CAN bus", above=0.0)
BAUD = Parameter("baud", 1e6, "bit/s", "of the serial port to an slcan adapter", above=0.0)
SETTING_NAMES = (
    *("interface", "channel", "codec", "sleep_after_open", "udp_port", "kp", "kd"),
    *(parameter.name for parameter in (REPLY_TIMEOUT, REPLY_ID_OFFSET, BITRATE)),
)
"""Names of all settings in addition to ``port`` and ``baud``."""


def number(settings: Mapping[str, str], parameter: Parameter, owner: str = "CAN") -> float:
    """Return the setting ``parameter``, else its default; raises ConfigError if out of range."""
    try:
        text = settings.get(parameter.name, parameter.default)
        return parameter.check(owner, text)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error


def gains(settings: Mapping[str, str], id: int, model: MitMotor) -> tuple[float, float]:
    """Return kp [N·m/rad] and kd [N·m·s/rad] of motor ``id``.

    ``kp_3`` overrides ``kp`` for motor 3, which overrides the value of the table. Raises
    ConfigError if out of range. kd must be above 0: without damping, a motor that holds a position
    oscillates (Damiao's manual).
    """
    kp = Parameter("kp", model.kp, "N·m/rad", "stiffness", lower=0.0, upper=model.ranges.kp)
    kd = Parameter("kd", model.kd, "N·m·s/rad", "damping", above=0.0, upper=model.ranges.kd)
    motor_gains = {
        p.name: settings[f"{p.name}_{id}"] for p in (kp, kd) if f"{p.name}_{id}" in settings
    }
    merged = {**settings, **motor_gains}
    return number(merged, kp, f"motor {id}"), number(merged, kd, f"motor {id}")


@dataclass(frozen=True, slots=True)
class Vendor:
    """Common properties of a manufacturer's motors.

    Attributes
    ----------
    name : str
        Name of the manufacturer.
    has_registers : bool
        Whether feedback and ranges can be requested without a command, the enabled state is
        reported, and a watchdog exists (register TIMEOUT).
    parse : callable
        Decodes a feedback frame.

    """

    name: str
    has_registers: bool
    parse: Callable[[bytes, Ranges], MitFeedback | None]


@dataclass(frozen=True, slots=True)
class MitMotor:
    """Model with its default ranges, and position gains that suit most loads."""

    name: str
    vendor: Vendor
    ranges: Ranges
    kp: float
    kd: float


DAMIAO = Vendor("Damiao", True, parse_damiao)
CUBEMARS = Vendor("CubeMars", False, parse_cubemars)

MOTORS = MappingProxyType(
    {
        motor.name: motor
        for motor in (
            MitMotor("DM4310", DAMIAO, Ranges(12.5, 30.0, 10.0), kp=10.0, kd=0.5),
            MitMotor("DM4340", DAMIAO, Ranges(12.5, 10.0, 28.0), kp=30.0, kd=1.0),
            MitMotor("DM8009", DAMIAO, Ranges(12.5, 45.0, 54.0), kp=50.0, kd=2.0),
            MitMotor("AK60-6", CUBEMARS, Ranges(12.5, 45.0, 15.0), kp=15.0, kd=0.5),
            MitMotor("AK80-9", CUBEMARS, Ranges(12.5, 50.0, 18.0), kp=20.0, kd=1.0),
        )
    }
)


def find_motor(name: str) -> MitMotor:
    """Return the motor called ``name``; raises UnknownName listing the table."""
    if name not in MOTORS:
        raise UnknownName("MIT motor", name, tuple(MOTORS))
    return MOTORS[name]


def model_with_torque_range(torque: float) -> str:
    """Return the Damiao model with this torque range [N·m], "unknown" for none."""
    matching = (m.name for m in MOTORS.values() if m.vendor is DAMIAO and m.ranges.torque == torque)
    return next(matching, "unknown")
