"""Whether the joints can follow a motion of the tool: found before it starts, with time and amount.

The joints are led along by inverse kinematics from sample to sample, within their limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector, frozen, scalar, vector
from arm_dynamics.errors import TrajectoryRefused
from arm_dynamics.inverse_kinematics import Solution, nearest_reachable
from arm_dynamics.joint_moves import smooth
from arm_dynamics.kinematics import jacobian
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import TaskReference
from arm_dynamics.tool_motion import controlled_axes
from arm_dynamics.trajectory import JointTrajectory, Trajectory

PERIOD = 0.02
"""Longest time [s] between two samples."""
FEWEST = 32
"""Samples of a short way."""
TOLERANCE = 1e-4
"""Distance [m] and angle [rad] that count as reached."""
SINGULAR = 1e-2
"""Least share of the smallest in the largest singular value of a regular Jacobian."""
NEAR = 0.01
"""Distance [rad or m] from a limit at which a joint is said to be there."""
EDGE = 1e-3
"""Time [s] to which the edge of a part out of reach is found."""
FINE = 1e-8
"""What inverse kinematics aims at [m, rad]."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Following:
    """Joints q (n, nv) at ``times`` (n,) [s], ``missed`` [m] and ``turned`` [rad] (n,) there.

    ``parts`` in the order of time; those of kind "singular" need not be faults.
    """

    times: Vector
    q: Vector
    missed: Vector
    turned: Vector
    parts: tuple[Part, ...]

    @property
    def faults(self) -> tuple[Part, ...]:
        """The parts that the arm can not follow."""
        return tuple(part for part in self.parts if part.kind != "singular")

    def joints(self) -> JointTrajectory:
        """The joints' motion as a smooth spline; raises TrajectoryRefused for a fault."""
        for part in self.faults:
            raise TrajectoryRefused(part.text)
        return smooth(list(self.q), self.times)


def check(arm: ArmModel, trajectory: Trajectory, weights: Vector | None = None) -> None:
    """Raise TrajectoryRefused telling the first part that ``follow`` finds at fault."""
    for part in follow(arm, trajectory, weights).faults:
        raise TrajectoryRefused(part.text)


def follow(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    period: float = PERIOD,
) -> Following:
    """Lead the joints along a trajectory of TaskReferences, from its start's posture.

    ``weights`` (6,) of inverse kinematics say which axes count; None: those that the arm
    controls. What is nearest is followed where a pose is out of reach. ``period`` [s] is the
    longest time between samples; the edges of parts out of reach are found to 1 ms.
    """
    leader = _Leader(arm, trajectory, weights)
    span = trajectory.end - trajectory.start
    count = max(ceil(span / scalar("period [s]", period, above=0)), FEWEST if span > 0 else 1)
    times = trajectory.start + span * np.arange(count + 1) / count
    found = [leader.first(float(times[0]))]
    for time in times[1:]:
        found.append(leader.at(float(time), found[-1].q))
    q = np.array([solution.q for solution in found])
    missed, turned = (np.array([getattr(s, n) for s in found]) for n in ("missed", "turned"))
    parts = [
        *leader.unreached(times, found),
        *_too_fast(arm, times, q, np.maximum(missed, turned) <= TOLERANCE),
        *leader.singular(times, q),
    ]
    parts.sort(key=lambda part: part.begin)
    return Following(frozen(times), frozen(q), frozen(missed), frozen(turned), tuple(parts))


class _Leader:
    """Inverse kinematics along one trajectory."""

    def __init__(self, arm: ArmModel, trajectory: Trajectory, weights: Vector | None) -> None:
        self.arm, self.trajectory = arm, trajectory
        axes = np.array(controlled_axes(arm), dtype=float)
        self.weights = axes if weights is None else vector("weights", weights, 6)

    def target(self, time: float) -> TaskReference:
        """What the tool should do; raises TrajectoryRefused for a motion of joints."""
        asked = self.trajectory.at(time)
        if not isinstance(asked, TaskReference):
            raise TrajectoryRefused("this trajectory is one of joints: one of the tool is expected")
        return asked

    def first(self, time: float) -> Solution:
        """From the posture; from elsewhere too where that fails."""
        posture = self.target(time).q
        found = self.at(time, posture)
        return found if _reached(found) else self.at(time, posture, restarts=10)

    def at(self, time: float, q: Vector, restarts: int = 0) -> Solution:
        """From ``q`` to what is asked at ``time``, or the nearest to it."""
        asked = self.target(time)
        rotation = asked.rotation if self.weights[3:].any() else None
        return nearest_reachable(
            self.arm, asked.position, rotation, start=q, weights=self.weights,
            tolerance=FINE, restarts=restarts,
        )  # fmt: skip

    def unreached(self, times: Vector, found: list[Solution]) -> list[Part]:
        """Runs of samples that were missed."""
        parts = []
        for first, last in _runs([not _reached(s) for s in found]):
            worst = max(range(first, last + 1), key=lambda k: max(found[k].missed, found[k].turned))
            begin = self._edge(times, found, first, first - 1)
            end = self._edge(times, found, last, last + 1)
            parts.append(_out_of_reach(self.arm, begin, end, float(times[worst]), found[worst]))
        return parts

    def _edge(self, times: Vector, found: list[Solution], bad: int, good: int) -> float:
        """Time between a missed sample and its neighbour from which on it is reached."""
        if not 0 <= good < len(times):
            return float(times[bad])
        out, inside, q = float(times[bad]), float(times[good]), found[good].q
        while abs(out - inside) > EDGE:
            middle = (out + inside) / 2
            solution = self.at(middle, q)
            out, inside = (out, middle) if _reached(solution) else (middle, inside)
        return out

    def singular(self, times: Vector, q: Vector) -> list[Part]:
        """Runs of samples at which the axes that count are nearly dependent."""
        rows = self.weights > 0
        values = [np.linalg.svd(jacobian(self.arm, row)[rows], compute_uv=False) for row in q]
        share = np.array([s[-1] / s[0] if s[0] > 0 else 0.0 for s in values])
        parts = []
        for first, last in _runs(list(share < SINGULAR)):
            k = first + int(share[first : last + 1].argmin())
            at, least = float(times[k]), float(share[k])
            text = f"the arm is nearly singular at {at:.3f} s: σ_min / σ_max = {least:.3g}"
            parts.append(Part("singular", float(times[first]), float(times[last]), at, least, text))
        return parts


def _reached(solution: Solution) -> bool:
    return max(solution.missed, solution.turned) <= TOLERANCE


def _runs(wrong: list[bool]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    padded = np.diff(np.concatenate([[0], np.asarray(wrong, dtype=int), [0]]))
    firsts, ends = np.flatnonzero(padded == 1), np.flatnonzero(padded == -1)
    return [(int(a), int(b) - 1) for a, b in zip(firsts, ends, strict=True)]


def _out_of_reach(arm: ArmModel, begin: float, end: float, at: float, solution: Solution) -> Part:
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


def _too_fast(arm: ArmModel, times: Vector, q: Vector, reached: NDArray[np.bool_]) -> list[Part]:
    """Runs of intervals in which a joint would have to turn faster than it can."""
    speed = np.diff(q, axis=0) / np.diff(times)[:, None]
    share = np.abs(speed) / np.maximum(arm.velocity_limit, 1e-9)
    share[~(reached[1:] & reached[:-1])] = 0.0
    parts = []
    for first, last in _runs(list(share.max(axis=1) > 1 + 1e-6)):
        k, i = np.unravel_index(int(share[first : last + 1].argmax()), (last + 1 - first, arm.nv))
        k, at = k + first, float(times[k + first : k + first + 2].mean())
        text = (
            f"joint '{arm.joint_names[i]}': velocity {speed[k, i]:.4g} rad/s at {at:.3f} s exceeds"
            f" the limit {arm.velocity_limit[i]:.6g}"
        )
        begin, end = float(times[first]), float(times[last + 1])
        parts.append(Part("too fast", begin, end, at, float(share[k, i]), text))
    return parts
