"""Raw values of STS servos in SI at the output shaft, and back.

    q = (position - 2048) 2π / 4096,   V = PWM / 1000 · V_supply,   τ = k_t i sign(LOAD)

The current is measured (in steps of 6.5 mA, its sign only by some firmware), the torque is not:
it is reckoned from it, the friction of a gear of 1:345 left out. LOAD is no torque either, but
the duty that is applied (in thousandths): where the current has no sign it gives the direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, isfinite, pi

from arm_dynamics.core.errors import CommandRejected
from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.motor_bus import MotorCommand, Reading

STEP = 2 * pi / table.STEPS
"""[rad]"""
CURRENT_UNIT = 6.5e-3
"""[A]"""
SUPPLY_UNIT = 0.1
"""[V]"""
SLOW_UNIT = 50
"""Steps a second in a unit of speed where PHASE says so."""
START = table.TORQUE.address
SIZE = table.CURRENT.address + table.CURRENT.size - START
"""What is read in every cycle: from the torque switch to the current."""


@dataclass
class TurnCounter:
    """Counts the turns of a motor that tells its angle within one: the nearest of all.

    The first position is taken as it is, between -π and π.
    """

    count: int = 0
    last: int | None = None

    def unwrap(self, raw: int) -> int:
        """``raw`` [steps] with the turns since the first one."""
        if self.last is not None:
            self.count -= round((raw - self.last) / table.STEPS)
        self.last = raw
        return raw + self.count * table.STEPS


def to_reading(data: bytes, error: int, steps: int, phase: int, kt: float, time: float) -> Reading:
    """The block of a cycle in SI; ``steps`` is its unwrapped position, ``kt`` in N·m/A."""
    load, current = table.LOAD.unpack(data, START), table.CURRENT.unpack(data, START)
    speed = table.SPEED.unpack(data, START)
    return Reading(
        time,
        (steps - table.CENTRE) * STEP,
        speed * STEP * (1 if phase & table.FAST_UNIT else SLOW_UNIT),
        kt * CURRENT_UNIT * (current if current < 0 else copysign(current, load)),
        float(table.TEMPERATURE.unpack(data, START)),
        table.SUPPLY.unpack(data, START) * SUPPLY_UNIT,
        table.fault_text(table.STATUS.unpack(data, START) | error),
        table.TORQUE.unpack(data, START) != 0,
    )


def raw_position(goal: MotorCommand, turns: int, phase: int) -> int:
    """Steps of a goal [rad], at an end of the motor's turn where it lies beyond.

    Raises CommandRefused where it is not finite.
    """
    _require_finite(goal)
    if phase & table.MULTI_TURN:
        lower, upper, whole = -0x7FFF, 0x7FFF, 0
    else:
        lower, upper, whole = 0, table.STEPS - 1, turns * table.STEPS
    return round(max(lower, min(upper, goal.value / STEP + table.CENTRE - whole)))


def raw_pwm(goal: MotorCommand, supply: float) -> int:
    """Duty of a goal [V] at ``supply`` [V]; 0 where the supply is not known.

    Raises CommandRefused where the goal is not finite.
    """
    _require_finite(goal)
    duty = goal.value / supply * table.FULL_PWM if supply > 0 else 0.0
    return round(max(-table.FULL_PWM, min(table.FULL_PWM, duty)))


def _require_finite(goal: MotorCommand) -> None:
    if not isfinite(goal.value):
        raise CommandRejected(f"{goal.interface} goal {goal.value}: not finite")
