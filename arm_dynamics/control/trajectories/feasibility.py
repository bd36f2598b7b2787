"""Feasibility of Cartesian trajectories, checked before they start.

Inverse kinematics within the joint limits finds unreachable, too fast and singular spans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.joint_splines import spline_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.path_inverse_kinematics import (
    PERIOD,
    TOLERANCE,
    PathInverseKinematics,
    reached,
)
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import BoolArray, Matrix, Vector, as_readonly, check_float
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.dynamics.kinematics.frames import jacobian
from arm_dynamics.dynamics.kinematics.inverse_kinematics import IkSolution
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

REPORT_TIME = 1.0
"""Time after a velocity fault in which an unreachable span is reported instead [s]."""
WIDER = 1.2
"""Ratio of successive intervals when looking ahead from an unreachable sample."""
MIN_SINGULAR_RATIO = 1e-2
"""Minimum σ_min / σ_max of a regular Jacobian."""
LIMIT_TOLERANCE = 0.01
"""Distance [rad or m] from a position limit within which a joint is at its limit."""
IkSample = tuple[float, IkSolution]
"""Time [s], and the solution of inverse kinematics."""


@dataclass(frozen=True, slots=True)
class PathFault:
    """Fault of a trajectory over a time span.

    Parameters
    ----------
    kind : str
        "out of reach", "too fast" or "singular".
    begin, end : float
        Span [s].
    at : float
        Time of the maximum [s].
    amount : float
        Maximum: the position error [m], or the orientation error [rad] if the position is reached;
        the ratio of velocity to velocity limit; or the minimum σ_min / σ_max of the Jacobian.
    text : str
        Message with joint or distance, and time.

    """

    kind: str
    begin: float
    end: float
    at: float
    amount: float
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class FeasibilityReport:
    """Joint motion along a Cartesian trajectory, with its faults.

    Parameters
    ----------
    times : (n,) array
        Times [s].
    q : (n, nv) array
        Configurations [rad or m].
    position_error, orientation_error : (n,) arrays
        Errors of inverse kinematics [m], [rad].
    spans : tuple of PathFault
        Faults in the order of time; a singular one need not prevent the motion.

    """

    times: Vector
    q: Matrix
    position_error: Vector
    orientation_error: Vector
    spans: tuple[PathFault, ...]

    @property
    def faults(self) -> tuple[PathFault, ...]:
        """Spans that the arm cannot follow."""
        return tuple(span for span in self.spans if span.kind != "singular")

    def joints(self) -> JointTrajectory:
        """Return the joint motion as a spline; raises TrajectoryRejected for a fault."""
        for fault in self.faults:
            raise TrajectoryRejected(fault.text)
        return spline_trajectory(list(self.q), self.times)


@requires_arm
def require_feasible(arm: ArmModel, trajectory: Trajectory, weights: Vector | None = None) -> None:
    """Check that the arm can follow a Cartesian trajectory, except through singular spans.

    Parameters
    ----------
    arm : ArmModel
        Arm that is to follow.
    trajectory : Trajectory
        Trajectory of TaskReferences.
    weights : (6,) array, optional
        Axes that count; default: the controlled axes.

    Raises
    ------
    TrajectoryRejected
        As ``solve_feasible``.

    """
    solve_feasible(arm, trajectory, weights)


@requires_arm
def solve_feasible(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    pause: Callable[[], None] | None = None,
) -> FeasibilityReport:
    """Return the joint motion along a trajectory without faults, except singular spans.

    Parameters
    ----------
    arm : ArmModel
        Arm that is to follow.
    trajectory : Trajectory
        Trajectory of TaskReferences.
    weights : (6,) array, optional
        Axes that count; default: the controlled axes.
    pause : callable, optional
        Called after every sample.

    Returns
    -------
    FeasibilityReport

    Raises
    ------
    TrajectoryRejected
        For the first unreachable span, else the first one in which a joint is too fast. The end of
        an unreachable span is estimated from few samples ahead.

    """
    solver, report_time = PathInverseKinematics(arm, trajectory, weights), np.inf
    for time in solver.samples(PERIOD):
        if not reached(solver.solutions[-1]):
            raise TrajectoryRejected(_unreachable_ahead(solver).text)
        if report_time == np.inf and solver.velocity_ratio() > 1 + 1e-6:
            report_time = time + REPORT_TIME
        if time >= report_time:
            break
        if pause is not None:
            pause()
    report = _report(solver, [])
    for fault in report.faults:
        raise TrajectoryRejected(fault.text)
    return report


@requires_arm
def solve_along(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    period: float = PERIOD,
) -> FeasibilityReport:
    """Return the joint motion along a trajectory with all its faults.

    The motion starts at the trajectory's posture. The nearest pose replaces an unreachable one.
    Boundaries of unreachable spans are exact to 1 ms.

    Parameters
    ----------
    arm : ArmModel
        Arm that is to follow.
    trajectory : Trajectory
        Trajectory of TaskReferences.
    weights : (6,) array, optional
        Axes that count; default: the controlled axes.
    period : float
        Maximum time between samples while the tool moves [s].

    Returns
    -------
    FeasibilityReport

    Raises
    ------
    TrajectoryRejected
        For a trajectory of more than 50000 periods, and for a joint trajectory.

    """
    solver = PathInverseKinematics(arm, trajectory, weights)
    for _ in solver.samples(check_float("period [s]", period, above=0)):
        pass
    samples, spans = list(zip(solver.times, solver.solutions, strict=True)), []
    for first, last in true_runs([not reached(s) for s in solver.solutions]):
        before = samples[first - 1] if first > 0 else None
        after = samples[last + 1] if last + 1 < len(samples) else None
        spans.append(_span(solver, samples[first : last + 1], before, after))
    q = np.array([solution.q for solution in solver.solutions])
    singular = singular_spans(arm, np.array(solver.times), q, solver.weights > 0)
    return _report(solver, [*spans, *singular])


def _report(solver: PathInverseKinematics, spans: list[PathFault]) -> FeasibilityReport:
    """Return all samples, with the spans in which joints are too fast."""
    times, solutions = as_readonly(solver.times), solver.solutions
    q = as_readonly([solution.q for solution in solutions])
    position = as_readonly([solution.position_error for solution in solutions])
    orientation = as_readonly([solution.orientation_error for solution in solutions])
    fast = velocity_spans(solver.arm, times, q, np.maximum(position, orientation) <= TOLERANCE)
    every = sorted([*spans, *fast], key=lambda span: span.begin)
    return FeasibilityReport(times, q, position, orientation, tuple(every))


def _unreachable_ahead(solver: PathInverseKinematics) -> PathFault:
    """Return the unreachable span that starts at the latest sample, from samples ahead."""
    samples = list(zip(solver.times[-2:], solver.solutions[-2:], strict=True))
    before, unreached = samples[0] if len(samples) > 1 else None, samples[-1:]
    time, end, step = solver.times[-1], solver.trajectory.end, PERIOD
    while time < end:
        time, step = min(time + step, end), WIDER * step
        ahead = time, solver.solve_next(solver.target(time), unreached[-1][1])
        if reached(ahead[1]):
            return _span(solver, unreached, before, ahead)
        unreached.append(ahead)
    return _span(solver, unreached, before, None)


def _span(
    solver: PathInverseKinematics,
    unreached: list[IkSample],
    before: IkSample | None,
    after: IkSample | None,
) -> PathFault:
    """Return a run of unreached samples between two reached ones, if these exist."""
    begin = (
        unreached[0][0] if before is None else solver.reachability_boundary(unreached[0], before)
    )
    end = unreached[-1][0] if after is None else solver.reachability_boundary(unreached[-1], after)
    at, worst = max(unreached, key=lambda s: max(s[1].position_error, s[1].orientation_error))
    return unreachable_span(solver.arm, begin, end, at, worst)


def unreachable_span(
    arm: ArmModel, begin: float, end: float, at: float, solution: IkSolution
) -> PathFault:
    """Return the fault from ``begin`` to ``end`` [s] with its maximum error at the time ``at``."""
    far = solution.position_error > TOLERANCE
    amount = solution.position_error if far else solution.orientation_error
    stuck = [
        f"'{joint.name}'"
        for joint, x in zip(arm.joints, solution.q.tolist(), strict=True)
        if min(x - joint.lower, joint.upper - x) < LIMIT_TOLERANCE
    ]
    at_limits = f", with {', '.join(stuck)} at its limit" if stuck else ""
    kind, unit = ("position", "m") if far else ("orientation", "rad")
    text = (
        f"trajectory out of reach from {begin:.3f} s to {end:.3f} s: {kind} error = {amount:.4g}"
        f" {unit} at {at:.3f} s{at_limits}; expected at most {TOLERANCE:g} {unit}"
    )
    return PathFault("out of reach", begin, end, at, amount, text)


def velocity_spans(
    arm: ArmModel, times: Vector, q: Matrix, is_reached: BoolArray
) -> list[PathFault]:
    """Return runs of intervals between samples with ``is_reached`` in which a joint is too fast."""
    speed = np.diff(q, axis=0) / np.diff(times)[:, None]
    ratio = np.abs(speed) / np.maximum(arm.velocity_limit, 1e-9)
    ratio[~(is_reached[1:] & is_reached[:-1])] = 0.0
    spans = []
    for first, last in true_runs(list(ratio.max(axis=1) > 1 + 1e-6)):
        k, i = np.unravel_index(int(ratio[first : last + 1].argmax()), (last + 1 - first, arm.nv))
        k, at = k + first, float(times[k + first : k + first + 2].mean())
        text = (
            f"joint '{arm.joint_names[i]}': velocity = {speed[k, i]:.4g} rad/s at {at:.3f} s;"
            f" expected within the limit {arm.velocity_limit[i]:.6g}"
        )
        begin, end = float(times[first]), float(times[last + 1])
        spans.append(PathFault("too fast", begin, end, at, float(ratio[k, i]), text))
    return spans


def singular_spans(arm: ArmModel, times: Vector, q: Matrix, rows: BoolArray) -> list[PathFault]:
    """Return runs of samples at which the ``rows`` of the Jacobian are nearly dependent."""
    values = [np.linalg.svd(jacobian(arm, row)[rows], compute_uv=False) for row in q]
    ratio = np.array([s[-1] / s[0] if s[0] > 0 else 0.0 for s in values])
    spans = []
    for first, last in true_runs(list(ratio < MIN_SINGULAR_RATIO)):
        k = first + int(ratio[first : last + 1].argmin())
        at, least = float(times[k]), float(ratio[k])
        text = f"near singularity at {at:.3f} s: σ_min / σ_max = {least:.3g}"
        spans.append(
            PathFault("singular", float(times[first]), float(times[last]), at, least, text)
        )
    return spans


def true_runs(wrong: list[bool]) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True."""
    padded = np.diff(np.concatenate([[0], np.asarray(wrong, dtype=int), [0]]))
    firsts, ends = np.flatnonzero(padded == 1), np.flatnonzero(padded == -1)
    return [(int(a), int(b) - 1) for a, b in zip(firsts, ends, strict=True)]
