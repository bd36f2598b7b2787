"""Who is on the line: the motors that should be there, or all that answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose
from struct import unpack

from arm_dynamics.hardware.mit_can.can_frames import Ranges
from arm_dynamics.hardware.mit_can.motors import MitMotor, model_with_torque_range
from arm_dynamics.hardware.mit_can.registers import (
    MASTER_ID,
    POSITION_RANGE,
    TORQUE_RANGE,
    VELOCITY_RANGE,
    VERSION,
    Registers,
)
from arm_dynamics.hardware.mit_can.torque import MAX_ATTEMPTS
from arm_dynamics.hardware.motor_bus import DiscoveredMotor

SILENT, HALF = "does not answer", "does not tell its ranges"


@dataclass(frozen=True, slots=True)
class MotorIdentity:
    """What a Damiao motor says of itself: CAN id of its answers, ranges of its frames."""

    reply_id: int
    ranges: Ranges


def identify(
    registers: Registers, models: Mapping[int, MitMotor]
) -> tuple[dict[int, MotorIdentity], list[str]]:
    """What each Damiao motor says of itself, and in words what is wrong with any.

    Its torque range tells the model; its other ranges are taken as they are set. Two motors with
    one id are told by two answers to every question; on a wire, equal answers sent at once are
    one frame, and such a pair is told as soon as anything of their answers differs.
    """
    found: dict[int, MotorIdentity] = {}
    faults: list[str] = []
    for id, model in models.items():
        fault, said = _identity(registers, id, model)
        if fault:
            faults.append(f"motor {id} ({model.name}) {fault}")
        elif said is not None:
            found[id] = said
    return found, faults


def scan_bus(registers: Registers, ids: Iterable[int], bitrate: int) -> list[DiscoveredMotor]:
    """Every Damiao motor that answers, with the model that its torque range tells."""
    found = []
    for id in ids:
        told = [unpack("<f", data)[0] for _, data in registers.replies(id, TORQUE_RANGE)]
        version = registers.read_int(id, VERSION) if told else None
        firmware = "" if version is None else str(version)
        found += [
            DiscoveredMotor(id, model_with_torque_range(torque), firmware, bitrate)
            for torque in told
        ]
    return found


def _identity(registers: Registers, id: int, model: MitMotor) -> tuple[str, MotorIdentity | None]:
    rounds = [answers for _ in range(MAX_ATTEMPTS) if (answers := registers.replies(id, MASTER_ID))]
    if not rounds:
        return SILENT, None
    if len(rounds) > 1 and min(map(len, rounds)) > 1:
        return f"answers {len(rounds[0])} times: two motors have this id", None
    p, v, t = (registers.read_float(id, r) for r in (POSITION_RANGE, VELOCITY_RANGE, TORQUE_RANGE))
    if p is None or v is None or t is None:
        return HALF, None
    if not isclose(t, model.ranges.torque, rel_tol=1e-6):
        return (
            f"has a torque range of {t:g} N·m ({model_with_torque_range(t)}), not {model.ranges.torque:g}",
            None,
        )
    if p <= 0.0 or v <= 0.0:
        return f"has ranges of {p:g} rad, {v:g} rad/s: both must be above 0", None
    return "", MotorIdentity(rounds[0][0][0], Ranges(p, v, t))
