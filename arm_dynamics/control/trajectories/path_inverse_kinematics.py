"""Parts of a tool's way that the joints can not follow, and how they are told.

Leads the joints along a motion of the tool, from sample to sample, by inverse kinematics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.control.trajectories.joint_trajectory import Trajectory
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import TaskReference
from arm_dynamics.dynamics.kinematics import jacobian
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    IkSolution,
    nearest_reachable,
    solve_from,
)
from arm_dynamics.dynamics.kinematics.pose_target import MAX_COORDINATE, PoseTarget
from arm_dynamics.dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel

TOLERANCE = 1e-4
"""Distance [m] and angle [rad] that count as reached."""
SINGULAR = 1e-2
"""Least share of the smallest in the largest singular value of a regular Jacobian."""
LIMIT_TOLERANCE = 0.01
"""Distance [rad or m] from a limit at which a joint is said to be there."""


@dataclass(frozen=True, slots=True)
class PathFault:
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


def reached(solution: IkSolution) -> bool:
    """Whether a pose is met."""
    return max(solution.position_error, solution.orientation_error) <= TOLERANCE


def true_runs(wrong: list[bool]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    padded = np.diff(np.concatenate([[0], np.asarray(wrong, dtype=int), [0]]))
    firsts, ends = np.flatnonzero(padded == 1), np.flatnonzero(padded == -1)
    return [(int(a), int(b) - 1) for a, b in zip(firsts, ends, strict=True)]


def unreachable_span(
    arm: ArmModel, begin: float, end: float, at: float, solution: IkSolution
) -> PathFault:
    """The part from ``begin`` to ``end`` that is missed, the most ``at`` a time [s]."""
    far = solution.position_error > TOLERANCE
    amount = solution.position_error if far else solution.orientation_error
    stuck = [
        f"'{joint.name}'"
        for joint, x in zip(arm.joints, solution.q.tolist(), strict=True)
        if min(x - joint.lower, joint.upper - x) < LIMIT_TOLERANCE
    ]
    hint = f", with {', '.join(stuck)} at its limit" if stuck else ""
    text = (
        f"the tool can not follow from {begin:.3f} s to {end:.3f} s: it misses by"
        f" {amount:.4g} {'m' if far else 'rad'} at {at:.3f} s{hint}"
    )
    return PathFault("out of reach", begin, end, at, amount, text)


def velocity_spans(
    arm: ArmModel, times: Vector, q: Vector, there: NDArray[np.bool_]
) -> list[PathFault]:
    """Runs of intervals, both ends ``there``, in which a joint had to turn faster than it can."""
    speed = np.diff(q, axis=0) / np.diff(times)[:, None]
    share = np.abs(speed) / np.maximum(arm.velocity_limit, 1e-9)
    share[~(there[1:] & there[:-1])] = 0.0
    parts = []
    for first, last in true_runs(list(share.max(axis=1) > 1 + 1e-6)):
        k, i = np.unravel_index(int(share[first : last + 1].argmax()), (last + 1 - first, arm.nv))
        k, at = k + first, float(times[k + first : k + first + 2].mean())
        text = (
            f"joint '{arm.joint_names[i]}': velocity {speed[k, i]:.4g} rad/s at {at:.3f} s exceeds"
            f" the limit {arm.velocity_limit[i]:.6g}"
        )
        begin, end = float(times[first]), float(times[last + 1])
        parts.append(PathFault("too fast", begin, end, at, float(share[k, i]), text))
    return parts


def singular_spans(
    arm: ArmModel, times: Vector, q: Vector, rows: NDArray[np.bool_]
) -> list[PathFault]:
    """Runs of samples at which the ``rows`` of the Jacobian that count are nearly dependent."""
    values = [np.linalg.svd(jacobian(arm, row)[rows], compute_uv=False) for row in q]
    share = np.array([s[-1] / s[0] if s[0] > 0 else 0.0 for s in values])
    parts = []
    for first, last in true_runs(list(share < SINGULAR)):
        k = first + int(share[first : last + 1].argmin())
        at, least = float(times[k]), float(share[k])
        text = f"the arm is nearly singular at {at:.3f} s: σ_min / σ_max = {least:.3g}"
        parts.append(
            PathFault("singular", float(times[first]), float(times[last]), at, least, text)
        )
    return parts


PERIOD = 0.02
"""Least time [s] between two samples, but for short ways."""
MAX_PERIODS = 10
"""Periods between two samples where the tool hardly moves."""
STEP, TURN = 5e-3, 0.02
"""Way [m] and turn [rad] of the tool from which on a period is not lengthened."""
MIN_SAMPLES, MAX_SAMPLES = 32, 50_000
"""Samples of a short way, and periods of the longest one."""
EDGE = 1e-3
"""Time [s] to which the edge of a part out of reach is found."""
FINE = 1e-8
"""What inverse kinematics aims at [m, rad]."""
STALLED = 1e-8
"""Share of the squared distance that a step towards a pose out of reach must win."""
BASE = as_readonly(np.eye(3))


class PathInverseKinematics:
    """Inverse kinematics along one trajectory, each sample from the one before.

    ``times`` [s] and what was ``found`` there, as far as ``samples`` has come. ``weights`` (6,) say
    which axes count; None: those that the arm controls.
    """

    def __init__(self, arm: ArmModel, trajectory: Trajectory, weights: Vector | None) -> None:
        self.arm, self.trajectory = arm, trajectory
        axes = np.array(controlled_axes(arm), dtype=float)
        self.weights = axes if weights is None else check_vector("weights", weights, 6)
        self._weights, self.turns = self.weights, bool(self.weights[3:].any())
        self.times: list[float] = []
        self.found: list[IkSolution] = []
        self._left: Vector | None = None

    def samples(self, period: float) -> Iterator[float]:
        """The samples' times [s], each once it is found; at most ``period`` [s] apart in motion.

        Where the tool stands or creeps they are up to LONGEST periods apart. Raises
        TrajectoryRefused for a motion of more than MOST periods and for one of joints.
        """
        step = period = self._period(period)
        time, end = self.trajectory.start, self.trajectory.end
        asked = self.target(time)
        self._keep(time, self.solve_first(asked))
        yield time
        while time < end:
            before, (time, asked, step) = asked, self._next(time, asked, step, period)
            self._keep(time, self.solve_next(asked, self.found[-1]))
            yield time
            if not _apart(before, asked, 0.5):
                step = min(2 * step, MAX_PERIODS * period)

    def _period(self, period: float) -> float:
        span = self.trajectory.end - self.trajectory.start
        if not span <= MAX_SAMPLES * period:
            raise TrajectoryRejected(
                f"the motion takes {span:.6g} s: at most {MAX_SAMPLES * period:g} s is allowed, for every"
                f" {period:g} s of it is looked at"
            )
        return min(period, span / MIN_SAMPLES)

    def _next(
        self, time: float, before: TaskReference, step: float, period: float
    ) -> tuple[float, TaskReference, float]:
        """Next time [s], what is asked there, and the step: a period, or longer for a short way."""
        while True:
            then = self.trajectory.end
            if then - time > step + period / 2:
                then = time + step
            asked = self.target(then)
            if step <= period or not _apart(before, asked, 1.0):
                return then, asked, step
            step = max(step / 2, period)

    def solve_next(self, asked: TaskReference, last: IkSolution) -> IkSolution:
        """From the ``last`` posture; from where the way was left too, once it is out of reach.

        No step leads a stretched arm straight back.
        """
        found = self.solve(asked, last.q)
        if reached(found) or reached(last) or self._left is None:
            return found
        other = self.solve(asked, self._left)
        return other if reached(other) else found

    def _keep(self, time: float, solution: IkSolution) -> None:
        if reached(solution):
            self._left = solution.q
        self.times.append(time)
        self.found.append(solution)

    def target(self, time: float) -> TaskReference:
        """What the tool should do; raises TrajectoryRefused for a motion of joints."""
        asked = self.trajectory.at(time)
        if not isinstance(asked, TaskReference):
            raise TrajectoryRejected(
                "this trajectory is one of joints: one of the tool is expected"
            )
        return asked

    def solve_first(self, asked: TaskReference) -> IkSolution:
        """From the posture; from elsewhere too where that fails."""
        found = self.solve(asked, np.asarray(asked.q))
        if reached(found):
            return found
        return nearest_reachable(
            self.arm, asked.position, asked.rotation if self.turns else None, initial_guess=asked.q,
            weights=self.weights, tolerance=FINE, restarts=10,
        )  # fmt: skip

    def solve(self, asked: TaskReference, q: Vector) -> IkSolution:
        """From ``q`` (nv,) to what is asked, or the nearest to it that one descent finds."""
        return solve_from(self.arm, self._target(asked), q, FINE, STALLED)

    def _target(self, asked: TaskReference) -> PoseTarget:
        rotation = asked.rotation if self.turns else BASE
        if not self.found or not np.abs(asked.position).max() <= MAX_COORDINATE:
            checked = rotation if self.turns else None
            self._weights = PoseTarget.of(asked.position, checked, self.weights).weights
        return PoseTarget(asked.position, rotation, self._weights, BASE)

    def velocity_ratio(self) -> float:
        """The latest interval's speed as a share of the velocity limits, of the fastest joint."""
        if len(self.times) < 2:
            return 0.0
        speed = np.abs(self.found[-1].q - self.found[-2].q) / (self.times[-1] - self.times[-2])
        return float((speed / np.maximum(self.arm.velocity_limit, 1e-9)).max())

    def reachability_boundary(
        self, bad: tuple[float, IkSolution], good: tuple[float, IkSolution]
    ) -> float:
        """Time [s] between a missed sample and one that is reached from which on it is reached."""
        out, inside, q = bad[0], good[0], good[1].q
        while abs(out - inside) > EDGE:
            middle = (out + inside) / 2
            met = reached(self.solve(self.target(middle), q))
            out, inside = (out, middle) if met else (middle, inside)
        return out


def _apart(a: TaskReference, b: TaskReference, share: float) -> bool:
    """Whether two poses are further apart than a ``share`` of STEP or of TURN."""
    way = b.position - a.position
    turned = 3.0 - float(
        np.vdot(a.rotation, b.rotation)
    )  # 2 - 2 cos(angle), its square where small
    return bool(way @ way > (share * STEP) ** 2 or turned > (share * TURN) ** 2)
