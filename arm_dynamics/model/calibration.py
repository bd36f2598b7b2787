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
"""Turn of a shaft [rad] below which its sign is not evaluated."""
TOLERANCE = 0.1
"""Difference between end stops and limits [rad or m] below which no warning is given."""


@dataclass(frozen=True, slots=True)
class CalibrationPoints:
    """Shaft positions [rad] at known joint positions; None if not measured.

    ``zero``: the joint at 0; ``lower``, ``upper``: at its end stops; ``positive``: turned from its
    zero in its positive direction.
    """

    zero: float | None = None
    lower: float | None = None
    upper: float | None = None
    positive: float | None = None


def calibrate(motor: JointMotor, joint: Joint, marks: CalibrationPoints) -> JointMotor:
    """Return the motor with the sign and offset that follow from ``marks``.

    s = sign(m_b - m_a);  b = q_a - s m_a / N: of the zero mark, else the mean of the end stops

    Parameters
    ----------
    motor : JointMotor
        The motor with its mechanical reduction N, and with sign and offset to keep if ``marks``
        do not determine them.
    joint : Joint
        The joint with its position limits [rad or m].
    marks : CalibrationPoints
        Measured shaft positions [rad].

    Returns
    -------
    JointMotor
        The calibrated motor; its offset is rounded to 1e-6 rad.

    """
    points = ((joint.lower, marks.lower), (0.0, marks.zero), (joint.upper, marks.upper))
    known = sorted((q, shaft) for q, shaft in points if shaft is not None and isfinite(q))
    turn = 0.0
    if marks.positive is not None and marks.zero is not None:
        turn = marks.positive - marks.zero
    elif len(known) > 1 and known[-1][0] > known[0][0]:
        turn = known[-1][1] - known[0][1]
    sign = copysign(1.0, turn) if abs(turn) > MIN_SHAFT_TURN else motor.sign
    offsets = [q - sign * shaft / motor.mechanical_reduction for q, shaft in known]
    if marks.zero is not None:
        offset = -sign * marks.zero / motor.mechanical_reduction
    else:
        offset = sum(offsets) / len(offsets) if offsets else motor.offset
    return replace(motor, sign=sign, offset=round(offset, 6) + 0.0)


def calibration_warnings(
    motor: JointMotor, joint: Joint, marks: CalibrationPoints
) -> Iterator[str]:
    """Yield the inconsistencies between ``marks``, the limits and the calibrated ``motor``.

    Parameters
    ----------
    motor : JointMotor
        The calibrated motor.
    joint : Joint
        The joint with its position limits [rad or m].
    marks : CalibrationPoints
        Measured shaft positions [rad].

    Yields
    ------
    str
        One warning.

    """
    if marks.positive is not None:
        if marks.zero is None:
            yield (
                "zero mark = not measured; expected it with the positive rotation: the sign is"
                " kept; measure both"
            )
        elif abs(turn := marks.positive - marks.zero) <= MIN_SHAFT_TURN:
            yield (
                f"rotation from zero = {turn:.3f} rad of the motor; expected more than"
                f" {MIN_SHAFT_TURN:g} rad: the sign is kept; measure again, turned further"
            )
    for name, limit, shaft in (
        ("lower", joint.lower, marks.lower),
        ("upper", joint.upper, marks.upper),
    ):
        end = limit if shaft is None else motor.position(shaft)
        if isfinite(limit) and abs(end - limit) > TOLERANCE:
            yield f"{name} end at {end:.2f} {joint.unit}, the URDF's limit is {limit:.2f}"
    if marks.zero is not None and marks.lower is not None and marks.upper is not None:
        below, above = sorted((marks.lower, marks.upper))
        slack = TOLERANCE * motor.mechanical_reduction
        if not below - slack <= marks.zero <= above + slack:
            yield "the zero mark is not between the ends: one of the three is wrong"
    measured = (marks.zero, marks.lower, marks.upper)
    far = max((abs(shaft) for shaft in measured if shaft is not None), default=0.0)
    if far > pi:
        yield (
            f"the motor's shaft is {far:.2f} rad from its zero, beyond half a turn: a motor that"
            " loses its turns without power is a turn off then; mount its horn again"
        )
