"""Frames of MIT-mode CAN motors: encoding and decoding of eight data bytes.

A quantity x in [low, high] is sent as the integer u = (x - low) / (high - low) (2^n - 1): n = 16
bits for the position, 12 for velocity, kp, kd and torque. Ranges of position, velocity and torque
are symmetric, and 2^n - 1 is odd: **no code means exactly zero**. Zero becomes half a step above
it, T / 4095 of torque: 13.2 mN·m for a DM8009, 2.4 mN·m for a DM4310.

References
----------
Damiao, DM-J4310-2EC user manual (control and feedback frames); CubeMars, AK series actuator driver
manual V1.0.8, section 5.3; Katz, MIT mini cheetah motor controller (2018).

"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import floor, isfinite

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.hardware.motor_bus import MotorCommand

CanFrame = tuple[int, bytes]
"""Identifier and data of a standard CAN frame."""

POSITION_BITS, BITS = 16, 12
ENABLE, DISABLE, ZERO, CLEAR_FAULT = 0xFC, 0xFD, 0xFE, 0xFB
MARK = b"\xff" * 7
"""First bytes of an instruction; no command begins with them."""
BROADCAST = 0x7FF
READ, WRITE, REFRESH = 0x33, 0x55, 0xCC

COMMUNICATION_LOST = "communication lost"
"""Fault of a Damiao motor after its TIMEOUT."""
DAMIAO_FAULTS = {
    0x8: "over-voltage",
    0x9: "under-voltage",
    0xA: "over-current",
    0xB: "drive over-temperature",
    0xC: "rotor over-temperature",
    0xD: COMMUNICATION_LOST,
    0xE: "overload",
}
CUBEMARS_FAULTS = {
    1: "rotor over-temperature",
    2: "over-current",
    3: "over-voltage",
    4: "under-voltage",
    5: "encoder",
    6: "drive over-temperature",
    7: "rotor locked",
}


@dataclass(frozen=True, slots=True)
class Ranges:
    """Limits of position [rad], velocity [rad/s], torque [N·m], kp [N·m/rad], kd [N·m·s/rad]."""

    position: float
    velocity: float
    torque: float
    kp: float = 500.0
    kd: float = 5.0


@dataclass(frozen=True, slots=True)
class MitFeedback:
    """Reply of a motor, at its output shaft; temperatures of drive and rotor [°C].

    ``fault`` is "" for none. ``enabled`` is ``None`` and the drive's temperature NaN if the
    manufacturer's reply does not contain them.
    """

    position: float
    velocity: float
    torque: float
    fault: str
    enabled: bool | None
    drive_temperature: float
    rotor_temperature: float


def encode(value: float, low: float, high: float, bits: int) -> int:
    """Return floor((x - low) / (high - low) (2^n - 1) + 1/2), x limited to its range.

    Raises InvalidValue if x is not finite.
    """
    if not isfinite(value):
        raise InvalidValue(f"CAN frame: value = {value}; expected a finite value")
    held = min(max(value, low), high)
    return floor((held - low) / (high - low) * ((1 << bits) - 1) + 0.5)


def decode(code: int, low: float, high: float, bits: int) -> float:
    """Return x = low + u / (2^n - 1) (high - low)."""
    return low + code / ((1 << bits) - 1) * (high - low)


def encode_command(
    ranges: Ranges,
    position: float = 0.0,
    velocity: float = 0.0,
    kp: float = 0.0,
    kd: float = 0.0,
    torque: float = 0.0,
) -> bytes:
    """Return the data of the command kp (q - q_m) + kd (v - v_m) + τ, limited to the ranges.

    The one command that equals an instruction, with all values at the upper limits, is sent with
    the velocity one step lower.

    Parameters
    ----------
    ranges : Ranges
        Ranges of the motor's frames.
    position, velocity : float
        q [rad] and v [rad/s].
    kp, kd : float
        Stiffness [N·m/rad] and damping [N·m·s/rad].
    torque : float
        τ [N·m].

    Raises
    ------
    InvalidValue
        A value is not finite.

    """
    p = encode(position, -ranges.position, ranges.position, POSITION_BITS)
    v = encode(velocity, -ranges.velocity, ranges.velocity, BITS)
    stiffness = encode(kp, 0.0, ranges.kp, BITS)
    damping = encode(kd, 0.0, ranges.kd, BITS)
    t = encode(torque, -ranges.torque, ranges.torque, BITS)
    data = (p << 48 | v << 36 | stiffness << 24 | damping << 12 | t).to_bytes(8, "big")
    if data.startswith(MARK):
        return data[:2] + b"\xff\xef" + data[4:]
    return data


def encode_instruction(code: int) -> bytes:
    """Return the data of ENABLE, DISABLE, ZERO or CLEAR_FAULT."""
    return MARK + bytes((code,))


def refresh(id: int) -> CanFrame:
    """Request the feedback of a Damiao motor; changes nothing in any state."""
    return BROADCAST, struct.pack("<HBB4x", id, REFRESH, 0)


def read_register(id: int, register: int) -> CanFrame:
    """Request a register of a Damiao motor."""
    return BROADCAST, struct.pack("<HBB4x", id, READ, register)


def write_register(id: int, register: int, value: int) -> CanFrame:
    """Write an integer register of a Damiao motor, until power-off."""
    return BROADCAST, struct.pack("<HBBI", id, WRITE, register, value)


def register_reply(data: bytes, register: int) -> tuple[int, bytes] | None:
    """Return the motor id and the four bytes of ``register``; None for another frame."""
    if len(data) != 8 or data[2] not in (READ, WRITE) or data[3] != register:
        return None
    return int.from_bytes(data[:2], "little"), data[4:]


def parse_damiao(data: bytes, ranges: Ranges) -> MitFeedback | None:
    """Decode state and id, position, velocity, torque, two temperatures; None if no feedback.

    The upper four bits of the first byte are 0 disabled, 1 enabled, else a fault. The reply of a
    register looks like a position within 0.4 % of the lower limit and is discarded.
    """
    if len(data) != 8 or (data[1] == 0 and data[2] in (READ, WRITE)):
        return None
    state = data[0] >> 4
    fault = "" if state < 2 else DAMIAO_FAULTS.get(state, f"fault 0x{state:X}")
    q, v, tau = _motion(data, ranges)
    return MitFeedback(q, v, tau, fault, state == 1, float(data[6]), float(data[7]))


def parse_cubemars(data: bytes, ranges: Ranges) -> MitFeedback | None:
    """Decode id, position, velocity, torque, temperature + 40, error; None if no feedback."""
    if len(data) != 8:
        return None
    error = data[7]
    fault = "" if error == 0 else CUBEMARS_FAULTS.get(error, f"fault {error}")
    q, v, tau = _motion(data, ranges)
    return MitFeedback(q, v, tau, fault, None, float("nan"), data[6] - 40.0)


def _motion(data: bytes, ranges: Ranges) -> tuple[float, float, float]:
    word = int.from_bytes(data[1:6], "big")
    return (
        decode(word >> 24, -ranges.position, ranges.position, POSITION_BITS),
        decode(word >> 12 & 0xFFF, -ranges.velocity, ranges.velocity, BITS),
        decode(word & 0xFFF, -ranges.torque, ranges.torque, BITS),
    )


MitCommand = tuple[float, float, float, float, float]
"""q, v, kp, kd and τ of kp (q - q_m) + kd (v - v_m) + τ, at the output shaft."""


def mit_command(goal: MotorCommand, kp: float, kd: float) -> MitCommand:
    """Return the command of a goal.

    Effort: τ. Velocity: kd (v - v_m) + τ. Position: kp (q - q_m) - kd v_m + τ.
    """
    if goal.interface == "effort":
        return 0.0, 0.0, 0.0, 0.0, goal.value
    if goal.interface == "velocity":
        return 0.0, goal.value, 0.0, kd, goal.feedforward_effort
    return goal.value, 0.0, kp, kd, goal.feedforward_effort


def commanded_torque(command: MitCommand, q: float, v: float) -> float:
    """Return the torque [N·m] of a command at q_m [rad] and v_m [rad/s]."""
    position, velocity, kp, kd, torque = command
    return kp * (position - q) + kd * (velocity - v) + torque
