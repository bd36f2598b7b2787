"""Parts of a tool's way that the joints can not follow, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector
from arm_dynamics.kinematics import jacobian
from arm_dynamics.kinematics.inverse import Solution
from arm_dynamics.model.arm_model import ArmModel

TOLERANCE = 1e-4
"""Distance [m] and angle [rad] that count as reached."""
SINGULAR = 1e-2
"""Least share of the smallest in the largest singular value of a regular Jacobian."""
NEAR = 0.01
"""Distance [rad or m] from a limit at which a joint is said to be there."""


@dataclass(frozen=True, slots=True)
class Part:
    """What goes wrong from ``begin`` to ``end`` [s], and its worst ``amount`` at time ``at``.

    ``kind``: "out of reach" [m, or rad where only the rotation is missed], "too fast" (the share
    of a velocity limit) or "singular" (σ_min / σ_max of the Jacobian).
    """

    kind: str
    begin: float
    end: float
    at: float
    amount: float
    text: str


def reached(solution: Solution) -> bool:
    """Whether a pose is met."""
    return max(solution.missed, solution.turned) <= TOLERANCE


def runs(wrong: list[bool]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    padded = np.diff(np.concatenate([[0], np.asarray(wrong, dtype=int), [0]]))
    firsts, ends = np.flatnonzero(padded == 1), np.flatnonzero(padded == -1)
    return [(int(a), int(b) - 1) for a, b in zip(firsts, ends, strict=True)]


def out_of_reach(arm: ArmModel, begin: float, end: float, at: float, solution: Solution) -> Part:
    """The part from ``begin`` to ``end`` that is missed, the most ``at`` a time [s]."""
    far = solution.missed > TOLERANCE
    amount = solution.missed if far else solution.turned
    stuck = [
        f"'{joint.name}'"
        for joint, x in zip(arm.joints, solution.q.tolist(), strict=True)
        if min(x - joint.lower, joint.upper - x) < NEAR
    ]
    hint = f", with {', '.join(stuck)} at its limit" if stuck else ""
    text = (
        f"the tool can not follow from {begin:.3f} s to {end:.3f} s: it misses by"
        f" {amount:.4g} {'m' if far else 'rad'} at {at:.3f} s{hint}"
    )
    return Part("out of reach", begin, end, at, amount, text)


def too_fast(arm: ArmModel, times: Vector, q: Vector, there: NDArray[np.bool_]) -> list[Part]:
    """Runs of intervals, both ends ``there``, in which a joint had to turn faster than it can."""
    speed = np.diff(q, axis=0) / np.diff(times)[:, None]
    share = np.abs(speed) / np.maximum(arm.velocity_limit, 1e-9)
    share[~(there[1:] & there[:-1])] = 0.0
    parts = []
    for first, last in runs(list(share.max(axis=1) > 1 + 1e-6)):
        k, i = np.unravel_index(int(share[first : last + 1].argmax()), (last + 1 - first, arm.nv))
        k, at = k + first, float(times[k + first : k + first + 2].mean())
        text = (
            f"joint '{arm.joint_names[i]}': velocity {speed[k, i]:.4g} rad/s at {at:.3f} s exceeds"
            f" the limit {arm.velocity_limit[i]:.6g}"
        )
        begin, end = float(times[first]), float(times[last + 1])
        parts.append(Part("too fast", begin, end, at, float(share[k, i]), text))
    return parts


def singular(arm: ArmModel, times: Vector, q: Vector, rows: NDArray[np.bool_]) -> list[Part]:
    """Runs of samples at which the ``rows`` of the Jacobian that count are nearly dependent."""
    values = [np.linalg.svd(jacobian(arm, row)[rows], compute_uv=False) for row in q]
    share = np.array([s[-1] / s[0] if s[0] > 0 else 0.0 for s in values])
    parts = []
    for first, last in runs(list(share < SINGULAR)):
        k = first + int(share[first : last + 1].argmin())
        at, least = float(times[k]), float(share[k])
        text = f"the arm is nearly singular at {at:.3f} s: σ_min / σ_max = {least:.3g}"
        parts.append(Part("singular", float(times[first]), float(times[last]), at, least, text))
    return parts
