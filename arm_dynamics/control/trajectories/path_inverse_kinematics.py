"""Inverse kinematics along a Cartesian trajectory, each sample from the previous one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import TaskReference
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    IkSolution,
    nearest_reachable,
    solve_from,
)
from arm_dynamics.dynamics.kinematics.pose_target import MAX_COORDINATE, PoseTarget
from arm_dynamics.dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel

TOLERANCE = 1e-4
"""Distance [m] and angle [rad] within which a pose is reached."""
PERIOD = 0.02
"""Minimum time between two samples, except on short trajectories [s]."""
MAX_PERIODS = 10
"""Maximum periods between two samples while the tool hardly moves."""
STEP, TURN = 5e-3, 0.02
"""Distance [m] and rotation [rad] of the tool at which the period is not extended."""
MIN_SAMPLES, MAX_SAMPLES = 32, 50_000
"""Samples of a short trajectory, and periods of the longest one."""
BOUNDARY_TOLERANCE = 1e-3
"""Accuracy of the time at which an unreachable span begins or ends [s]."""
IK_TOLERANCE = 1e-8
"""Convergence tolerance of inverse kinematics [m, rad]."""
MIN_DECREASE = 1e-8
"""Minimum relative decrease of the squared error per step toward an unreachable pose."""
BASE = as_readonly(np.eye(3))


def reached(solution: IkSolution) -> bool:
    """Return whether the pose is reached."""
    return max(solution.position_error, solution.orientation_error) <= TOLERANCE


class PathInverseKinematics:
    """Inverse kinematics along one trajectory.

    Parameters
    ----------
    arm : ArmModel
        Arm that is to follow.
    trajectory : Trajectory
        Trajectory of TaskReferences.
    weights : (6,) array or None
        Axes that count; None: the controlled axes.

    Attributes
    ----------
    times, solutions : list
        Samples so far: times [s] and solutions of inverse kinematics.

    """

    def __init__(self, arm: ArmModel, trajectory: Trajectory, weights: Vector | None) -> None:
        self.arm, self.trajectory = arm, trajectory
        axes = np.array(controlled_axes(arm), dtype=float)
        self.weights = axes if weights is None else check_vector("weights", weights, 6)
        self._weights, self._rotates = self.weights, bool(self.weights[3:].any())
        self.times: list[float] = []
        self.solutions: list[IkSolution] = []
        self._last_reached: Vector | None = None

    def samples(self, period: float) -> Iterator[float]:
        """Yield the times of the samples [s], each after it is solved.

        The interval is at most ``period`` [s] in motion, up to MAX_PERIODS periods at rest.

        Raises
        ------
        TrajectoryRejected
            For a trajectory of more than MAX_SAMPLES periods, and for a joint trajectory.

        """
        span = self.trajectory.end - self.trajectory.start
        if not span <= MAX_SAMPLES * period:
            raise TrajectoryRejected(
                f"trajectory: duration = {span:.6g} s; expected at most {MAX_SAMPLES * period:g} s"
                f" with a sample every {period:g} s"
            )
        step = period = min(period, span / MIN_SAMPLES)
        time, end = self.trajectory.start, self.trajectory.end
        desired = self.target(time)
        self._store(time, self.solve_first(desired))
        yield time
        while time < end:
            before, (time, desired, step) = desired, self._next_sample(time, desired, step, period)
            self._store(time, self.solve_next(desired, self.solutions[-1]))
            yield time
            if not _differ(before, desired, 0.5):
                step = min(2 * step, MAX_PERIODS * period)

    def _next_sample(
        self, time: float, before: TaskReference, step: float, period: float
    ) -> tuple[float, TaskReference, float]:
        """Return the next time [s], its reference, and the step: longer while the tool rests."""
        while True:
            then = self.trajectory.end
            if then - time > step + period / 2:
                then = time + step
            desired = self.target(then)
            if step <= period or not _differ(before, desired, 1.0):
                return then, desired, step
            step = max(step / 2, period)

    def _store(self, time: float, solution: IkSolution) -> None:
        if reached(solution):
            self._last_reached = solution.q
        self.times.append(time)
        self.solutions.append(solution)

    def target(self, time: float) -> TaskReference:
        """Return the reference at ``time`` [s]; raises TrajectoryRejected in joint space."""
        desired = self.trajectory.at(time)
        if not isinstance(desired, TaskReference):
            raise TrajectoryRejected("trajectory: joint space; expected a Cartesian trajectory")
        return desired

    def solve_first(self, desired: TaskReference) -> IkSolution:
        """Return the solution from the posture; from random configurations if that fails."""
        solution = self.solve(desired, np.asarray(desired.q))
        if reached(solution):
            return solution
        rotation = desired.rotation if self._rotates else None
        return nearest_reachable(
            self.arm, desired.position, rotation, initial_guess=desired.q, weights=self.weights,
            tolerance=IK_TOLERANCE, restarts=10,
        )  # fmt: skip

    def solve_next(self, desired: TaskReference, last: IkSolution) -> IkSolution:
        """Return the solution from the ``last`` one.

        After an unreachable span also from the last reached configuration: no step leads a
        stretched arm straight back.
        """
        solution = self.solve(desired, last.q)
        if reached(solution) or reached(last) or self._last_reached is None:
            return solution
        other = self.solve(desired, self._last_reached)
        return other if reached(other) else solution

    def solve(self, desired: TaskReference, q: Vector) -> IkSolution:
        """Return the solution from ``q`` (nv,), or the nearest pose that one descent finds."""
        rotation = desired.rotation if self._rotates else BASE
        if not self.solutions or not np.abs(desired.position).max() <= MAX_COORDINATE:
            checked = rotation if self._rotates else None
            self._weights = PoseTarget.of(desired.position, checked, self.weights).weights
        target = PoseTarget(desired.position, rotation, self._weights, BASE)
        return solve_from(self.arm, target, q, IK_TOLERANCE, MIN_DECREASE)

    def velocity_ratio(self) -> float:
        """Return the maximum of velocity over velocity limit in the latest interval."""
        if len(self.times) < 2:
            return 0.0
        speed = np.abs(self.solutions[-1].q - self.solutions[-2].q) / (
            self.times[-1] - self.times[-2]
        )
        return float((speed / np.maximum(self.arm.velocity_limit, 1e-9)).max())

    def reachability_boundary(
        self, unreached: tuple[float, IkSolution], other: tuple[float, IkSolution]
    ) -> float:
        """Return the time [s] of the boundary between ``unreached`` and a reached sample."""
        outside, inside, q = unreached[0], other[0], other[1].q
        while abs(outside - inside) > BOUNDARY_TOLERANCE:
            middle = (outside + inside) / 2
            met = reached(self.solve(self.target(middle), q))
            outside, inside = (outside, middle) if met else (middle, inside)
        return outside


def _differ(a: TaskReference, b: TaskReference, fraction: float) -> bool:
    """Return whether two poses differ by more than a fraction of STEP or of TURN."""
    displacement = b.position - a.position
    # 2 - 2 cos(angle), which is the square of a small angle
    turned = 3.0 - float(np.vdot(a.rotation, b.rotation))
    far = displacement @ displacement > (fraction * STEP) ** 2
    return bool(far or turned > (fraction * TURN) ** 2)
