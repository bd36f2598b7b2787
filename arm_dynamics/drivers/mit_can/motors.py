"""Table of MIT-mode motors: ranges of their frames, how they answer, and what they are able to.

Sources: Damiao, default PMAX, VMAX, TMAX of DM-J4310-2EC, DM-J4340-2EC, DM-J8009-2EC (user
manuals; Enactic, openarm_can); CubeMars, AK series actuator driver manual V1.0.8, section 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from arm_dynamics.drivers.mit_can.frames import Feedback, Ranges, parse_cubemars, parse_damiao
from arm_dynamics.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Maker:
    """What a maker's motors have in common.

    ``registers``: they can be asked for feedback and for their ranges without being commanded,
    tell whether they are enabled, and stop by themselves after a silence (register TIMEOUT).
    """

    name: str
    registers: bool
    parse: Callable[[bytes, Ranges], Feedback | None]


@dataclass(frozen=True, slots=True)
class MitMotor:
    """A model with its default ranges, and gains of position control that suit most loads."""

    name: str
    maker: Maker
    ranges: Ranges
    kp: float
    kd: float


DAMIAO = Maker("Damiao", True, parse_damiao)
CUBEMARS = Maker("CubeMars", False, parse_cubemars)

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


def motor(name: str) -> MitMotor:
    """The motor called ``name``; raises UnknownName listing the table."""
    if name not in MOTORS:
        raise UnknownName("MIT motor", name, tuple(MOTORS))
    return MOTORS[name]


def named(torque: float) -> str:
    """The Damiao model with this torque range [N·m], "unknown" for none."""
    fitting = (m.name for m in MOTORS.values() if m.maker is DAMIAO and m.ranges.torque == torque)
    return next(fitting, "unknown")
