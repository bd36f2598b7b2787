"""Numbers among the settings of a CAN line, given as text.

Table of MIT-mode motors: ranges of their frames, how they answer, and what they are able to.

Sources: Damiao, default PMAX, VMAX, TMAX of DM-J4310-2EC, DM-J4340-2EC, DM-J8009-2EC (user
manuals; Enactic, openarm_can); CubeMars, AK series actuator driver manual V1.0.8, section 5.3.
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

QUIET = Parameter("reply_timeout", 3e-3, "s", "longest silence that is waited for", above=0.0)
OFFSET = Parameter("reply_offset", 16, "1", "from a motor's id to that of its answers", lower=0)
BITRATE = Parameter("bitrate", 1e6, "bit/s", "of the CAN line", above=0.0)
BAUD = Parameter("baud", 1e6, "bit/s", "of the serial port to an slcan adapter", above=0.0)
NAMES = (
    *("interface", "channel", "codec", "sleep_after_open", "udp_port", "kp", "kd"),
    *(parameter.name for parameter in (QUIET, OFFSET, BITRATE)),
)
"""All that a CAN line is told, beside ``port`` and ``baud``."""


def number(settings: Mapping[str, str], parameter: Parameter, owner: str = "CAN") -> float:
    """The setting ``parameter``, else its default; raises ConfigError for one out of range."""
    try:
        text = settings.get(parameter.name, parameter.default)
        return parameter.check(owner, text)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error


def gains(settings: Mapping[str, str], id: int, model: MitMotor) -> tuple[float, float]:
    """kp [N·m/rad], kd [N·m·s/rad] of motor ``id``: ``kp_3`` before ``kp`` before the table's.

    Raises ConfigError for one out of range. kd must be above 0: undamped, a motor that holds a
    position oscillates, as Damiao's manual warns.
    """
    kp = Parameter("kp", model.kp, "N·m/rad", "stiffness", lower=0.0, upper=model.ranges.kp)
    kd = Parameter("kd", model.kd, "N·m·s/rad", "damping", above=0.0, upper=model.ranges.kd)
    own = {p.name: settings[f"{p.name}_{id}"] for p in (kp, kd) if f"{p.name}_{id}" in settings}
    given = {**settings, **own}
    return number(given, kp, f"motor {id}"), number(given, kd, f"motor {id}")


@dataclass(frozen=True, slots=True)
class Vendor:
    """What a maker's motors have in common.

    ``registers``: they can be asked for feedback and for their ranges without being commanded,
    tell whether they are enabled, and stop by themselves after a silence (register TIMEOUT).
    """

    name: str
    registers: bool
    parse: Callable[[bytes, Ranges], MitFeedback | None]


@dataclass(frozen=True, slots=True)
class MitMotor:
    """A model with its default ranges, and gains of position control that suit most loads."""

    name: str
    maker: Vendor
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
    """The motor called ``name``; raises UnknownName listing the table."""
    if name not in MOTORS:
        raise UnknownName("MIT motor", name, tuple(MOTORS))
    return MOTORS[name]


def model_with_torque_range(torque: float) -> str:
    """The Damiao model with this torque range [N·m], "unknown" for none."""
    fitting = (m.name for m in MOTORS.values() if m.maker is DAMIAO and m.ranges.torque == torque)
    return next(fitting, "unknown")
