"""Sign and offset of a joint from shaft positions of its motor at known joint positions.

q = s m / N + b  with the shaft at m [rad], the mechanical reduction N, the sign s and the offset b.
With shaft positions m_a and m_b at q_a < q_b:  s = sign(m_b - m_a);  b = q_a - s m_a / N.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import copysign, isfinite, pi

from arm_dynamics.model.arm_model import Joint
from arm_dynamics.model.hardware_info import JointMotor

MIN_SHAFT_TURN = 0.05
"""Turn of a shaft [rad] below which it tells no sign."""
TOLERANCE = 0.1
"""Difference between ends and limits [rad or m] that is no matter."""


@dataclass(frozen=True, slots=True)
class CalibrationPoints:
    """Where the shaft stood [rad], None for what was left out.

    ``zero``: the joint at 0; ``lower``, ``upper``: at its ends; ``positive``: turned on from its
    zero in its positive direction.
    """

    zero: float | None = None
    lower: float | None = None
    upper: float | None = None
    positive: float | None = None


def calibrate(motor: JointMotor, joint: Joint, marks: CalibrationPoints) -> JointMotor:
    """The motor with the sign and the offset that ``marks`` tell; the rest is kept."""
    known = _places(joint, marks)
    sign = _sign(known, marks) or motor.sign
    offsets = [place - sign * shaft / motor.mechanical_reduction for place, shaft in known]
    if marks.zero is not None:
        offset = -sign * marks.zero / motor.mechanical_reduction
    else:
        offset = sum(offsets) / len(offsets) if offsets else motor.offset
    return replace(motor, sign=sign, offset=round(offset, 6) + 0.0)


def calibration_warnings(
    motor: JointMotor, joint: Joint, marks: CalibrationPoints
) -> Iterator[str]:
    """What does not fit together, in words; ``motor`` is the calibrated one."""
    for name, limit, shaft in (
        ("lower", joint.lower, marks.lower),
        ("upper", joint.upper, marks.upper),
    ):
        found = limit if shaft is None else motor.position(shaft)
        if isfinite(limit) and abs(found - limit) > TOLERANCE:
            yield f"{name} end at {found:.2f} {joint.unit}, the URDF's limit is {limit:.2f}"
    if marks.zero is not None and marks.lower is not None and marks.upper is not None:
        below, above = sorted((marks.lower, marks.upper))
        slack = TOLERANCE * motor.mechanical_reduction
        if not below - slack <= marks.zero <= above + slack:
            yield "the zero mark is not between the ends: one of the three is wrong"
    told = (marks.zero, marks.lower, marks.upper, marks.positive)
    far = max((abs(shaft) for shaft in told if shaft is not None), default=0.0)
    if far > pi:
        yield (
            f"the motor's shaft is {far:.2f} rad from its zero, beyond half a turn: a motor that"
            " forgets its turns with the power is a turn off then; mount its horn anew"
        )


def _places(joint: Joint, marks: CalibrationPoints) -> list[tuple[float, float]]:
    """Joint positions that are known, rising, and the shaft's there."""
    told = ((joint.lower, marks.lower), (0.0, marks.zero), (joint.upper, marks.upper))
    return sorted((place, m) for place, m in told if m is not None and isfinite(place))


def _sign(known: list[tuple[float, float]], marks: CalibrationPoints) -> float:
    """1 or -1, 0 where nothing tells it."""
    if marks.positive is not None and marks.zero is not None:
        turn = marks.positive - marks.zero
    elif len(known) > 1 and known[-1][0] > known[0][0]:
        turn = known[-1][1] - known[0][1]
    else:
        return 0.0
    return copysign(1.0, turn) if abs(turn) > MIN_SHAFT_TURN else 0.0
