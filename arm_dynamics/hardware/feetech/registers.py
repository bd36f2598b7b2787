"""Memory table of Feetech's STS servos: registers, units, models.

q = (position - 2048) 2π / 4096,   V = PWM / 1000 · V_supply,   τ = k_t |i| sign(V - k_e q̇)

Signed values are a magnitude and a sign bit. Values up to address 39 survive a loss of power if
they are written while LOCK is 0. The current is measured in steps of 6.5 mA, the torque is not: it
is computed from the current, without the friction of the 1:345 gear. Its direction is not measured:
LOAD is the applied duty in thousandths, and a sign of the current, if the firmware has one, is that
of the duty. While the motor brakes, its back-EMF exceeds the applied voltage, and the current flows
against it. The direction is therefore that of the voltage V - k_e q̇ at the winding's resistance.

References
----------
Feetech, STS series memory table; SCServo SDK (sign bits).

"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, isfinite, pi

from arm_dynamics.core.errors import CommandRejected, UnknownName
from arm_dynamics.hardware.motor_bus import MotorCommand, Reading
from arm_dynamics.hardware.register_protocol import Register

POSITION_MODE, PWM_MODE = 0, 2
FULL_PWM = 1000
"""Duty of 1: the supply voltage."""
STEPS = 4096
"""Steps per turn."""
CENTER = 2048
"""Position of 0 rad, to which a servo is homed."""
FAST_UNIT, MULTI_TURN = 0x04, 0x10
"""Bits of PHASE: velocity in 1 steps/s, not 50 steps/s; position includes turns."""


@dataclass(frozen=True, slots=True)
class SignedRegister(Register):
    """Register whose value is a magnitude and a sign bit, counted from 0."""

    sign_bit: int = 15

    def pack(self, value: int) -> bytes:
        """Return ``value`` as bytes."""
        sign = 1 << self.sign_bit if value < 0 else 0
        return (abs(value) | sign).to_bytes(self.size, "little")

    def unpack(self, data: bytes, start: int | None = None) -> int:
        """Return the value in ``data``, which begins at address ``start``, by default its own."""
        value, sign = Register.unpack(self, data, start), 1 << self.sign_bit
        return -(value & sign - 1) if value & sign else value


FIRMWARE = Register(0, 2)
MODEL = Register(3, 2)
MIN_POSITION = Register(9, 2)
MAX_POSITION = Register(11, 2)
PHASE = Register(18, 1)
HOMING_OFFSET = SignedRegister(31, 2, sign_bit=11)
MODE = Register(33, 1)
TORQUE = Register(40, 1)
ACCELERATION = Register(41, 1)
GOAL_POSITION = SignedRegister(42, 2)
GOAL_PWM = SignedRegister(44, 2, sign_bit=10)
LOCK = Register(55, 1)
POSITION = SignedRegister(56, 2)
SPEED = SignedRegister(58, 2)
LOAD = SignedRegister(60, 2, sign_bit=10)
SUPPLY = Register(62, 1)
TEMPERATURE = Register(63, 1)
STATUS = Register(65, 1)
CURRENT = SignedRegister(69, 2)

FAULTS = {
    0x01: "supply voltage",
    0x02: "position sensor",
    0x04: "overheating",
    0x08: "overcurrent",
    0x20: "overload",
}
"""Bits of STATUS and of the error byte of every reply."""

NUMBERS = {"sts3215": 777, "sts3250": 2825}
"""Value of MODEL by the servo's name."""


def model_number(name: str) -> int:
    """Return the value of MODEL of a servo; raises UnknownName listing the names."""
    if name.lower() not in NUMBERS:
        raise UnknownName("Feetech servo", name, tuple(NUMBERS))
    return NUMBERS[name.lower()]


def model_name(number: int) -> str:
    """Return the name of a value of MODEL."""
    names = {value: name for name, value in NUMBERS.items()}
    return names.get(number, f"unknown (model number {number})")


def fault_text(status: int) -> str:
    """Return the names of the fault bits; "" for none."""
    faults = [name for bit, name in FAULTS.items() if status & bit]
    rest = status & ~sum(FAULTS)
    return ", ".join([*faults, *([f"status {rest:#04x}"] if rest else [])])


STEP = 2 * pi / STEPS
"""[rad]"""
CURRENT_UNIT = 6.5e-3
"""[A]"""
SUPPLY_UNIT = 0.1
"""[V]"""
SLOW_UNIT = 50
"""Unit of velocity [steps/s] without FAST_UNIT."""
BLOCK_START = TORQUE.address
BLOCK_SIZE = CURRENT.address + CURRENT.size - BLOCK_START
"""All registers of a reading: from the torque switch to the current."""
MEASURED_SIZE = CURRENT.address + CURRENT.size - POSITION.address
"""Registers from the position to the current: all that are measured."""


@dataclass
class TurnCounter:
    """Count the turns of a servo that reports its angle within one turn: the nearest position.

    The first position is taken as it is, between -π and π.
    """

    count: int = 0
    last: int | None = None

    def unwrap(self, raw: int) -> int:
        """Return ``raw`` [steps] with the turns since the first position."""
        if self.last is not None:
            self.count -= round((raw - self.last) / STEPS)
        self.last = raw
        return raw + self.count * STEPS


def to_reading(
    data: bytes, error: int, steps: int, phase: int, kt: float, ke: float, time: float
) -> Reading:
    """Return the block of a cycle in SI units at the output shaft.

    Parameters
    ----------
    data : bytes
        Registers from BLOCK_START on.
    error : int
        Error bits of the reply.
    steps : int
        Unwrapped position [steps].
    phase : int
        Register PHASE.
    kt : float
        Torque constant [N·m/A].
    ke : float
        Back-EMF constant [V·s/rad].
    time : float
        Arrival [s].

    """
    current = CURRENT.unpack(data, BLOCK_START)
    supply = SUPPLY.unpack(data, BLOCK_START) * SUPPLY_UNIT
    unit = STEP * (1 if phase & FAST_UNIT else SLOW_UNIT)
    velocity = SPEED.unpack(data, BLOCK_START) * unit
    voltage = LOAD.unpack(data, BLOCK_START) / FULL_PWM * supply - ke * velocity
    return Reading(
        time,
        (steps - CENTER) * STEP,
        velocity,
        kt * CURRENT_UNIT * copysign(current, voltage),
        float(TEMPERATURE.unpack(data, BLOCK_START)),
        supply,
        fault_text(STATUS.unpack(data, BLOCK_START) | error),
        TORQUE.unpack(data, BLOCK_START) != 0,
    )


def raw_position(goal: MotorCommand, turns: int, phase: int) -> int:
    """Return the steps of a position command [rad], limited to the range of the register.

    Raises CommandRejected if it is not finite.
    """
    _require_finite(goal)
    if phase & MULTI_TURN:
        lower, upper, whole = -0x7FFF, 0x7FFF, 0
    else:
        lower, upper, whole = 0, STEPS - 1, turns * STEPS
    return round(max(lower, min(upper, goal.value / STEP + CENTER - whole)))


def raw_pwm(goal: MotorCommand, supply: float) -> int:
    """Return the duty of a voltage command [V] at ``supply`` [V]; 0 if the supply is not known.

    Raises CommandRejected if it is not finite.
    """
    _require_finite(goal)
    duty = goal.value / supply * FULL_PWM if supply > 0 else 0.0
    return round(max(-FULL_PWM, min(FULL_PWM, duty)))


def _require_finite(goal: MotorCommand) -> None:
    if not isfinite(goal.value):
        raise CommandRejected(f"{goal.interface} command = {goal.value}; expected a finite value")
