"""What a trajectory asks of the motors, held against their limits before it is followed.

Whether an arm can follow a way of the tool within all its limits, before it is followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.control.trajectories import feasibility
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.polynomials import evaluate_batch
from arm_dynamics.control.trajectories.transition_blend import ZERO_TWIST
from arm_dynamics.core.arrays import Vector, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import TaskReference
from arm_dynamics.dynamics.kinematics import jacobian
from arm_dynamics.dynamics.rigid_body import rnea, rnea_batch
from arm_dynamics.model.arm_model import ArmModel

SPACING = 0.02
"""Time [s] between two looks at the effort, both ends of every segment among them."""
MAX_SAMPLES, MAX_TOTAL_SAMPLES = 50, 20_000
"""Looks a segment, however long it is, and about the most at all; its two ends always count."""
EDGE = 1e-9
"""Share of a segment by which its ends are looked at from within."""


LIMIT_TOLERANCE = 1 + 1e-9
"""Share of a limit that is not exceeded but for rounding."""


def check_effort(model: ArmModel, trajectory: Trajectory, limit: Vector) -> None:
    """|M(q) a + C(q, v) v + g(q) + τ| <= limit (nv,) [N·m] along the trajectory, by ``model``.

    τ are the trajectory's efforts. The motors of ``model`` limit the effort too: their back-EMF
    leaves a DC motor the less effort the faster it turns. Looks every SPACING, and at both ends of
    every segment, where the accelerations of cubic splines are largest. For a motion of the tool
    the joints are led along it first, and motors are not looked at.
    Raises TrajectoryRefused with joint, effort, limit and time.
    """
    if isinstance(trajectory.at(trajectory.start), TaskReference):
        found = feasibility.solve_feasible(model, trajectory)
        check_joint_path_effort(model, found.times, found.q, limit)
        return
    times, q, v, a = _looks(trajectory)
    effort = rnea_batch(model, q, v, a)
    if isinstance(trajectory, JointTrajectory) and trajectory.effort is not None:
        added = (trajectory.effort.at(time) for time in times.tolist())
        effort = effort + [np.zeros(model.nv) if row is None else row for row in added]
    for k in np.flatnonzero(~(np.abs(effort) <= limit * LIMIT_TOLERANCE).all(axis=1)).tolist():
        _check(model, float(times[k]), effort[k], limit)
    _check_motors(model, times, effort, v)


def check_joint_path_effort(
    model: ArmModel,
    times: Vector,
    q: Vector,
    limit: Vector,
    wrench: Vector = ZERO_TWIST,
    pause: Callable[[], None] | None = None,
) -> None:
    """|M a + C v + g + Jᵀ w| <= limit (nv,) [N·m] of joints that are at q (n, nv) at ``times``.

    v and a are the samples' differences: averages over an interval or two, and so never more than
    the largest ones. ``wrench`` w (6,) [N, N·m] is what the tool pushes with; ``pause`` is called
    after every sample. Raises TrajectoryRefused as ``check_effort`` does.
    """
    for time, where, v, a in zip(times.tolist(), q, *_differences(times, q), strict=True):
        effort = rnea(model, where, v, a)
        if wrench.any():
            effort = effort + jacobian(model, where).T @ wrench
        _check(model, time, effort, limit)
        if pause is not None:
            pause()


def _differences(times: Vector, q: Vector) -> tuple[Vector, Vector]:
    """Velocities and accelerations (n, nv) of samples; those of the ends are their neighbours'."""
    if len(times) < 3:
        return np.zeros_like(q), np.zeros_like(q)
    lengths = np.diff(times)[:, None]
    rates = np.diff(q, axis=0) / lengths
    spans = lengths[1:] + lengths[:-1]
    v = (rates[:-1] * lengths[1:] + rates[1:] * lengths[:-1]) / spans
    a = 2 * np.diff(rates, axis=0) / spans
    ends = ((1, 1), (0, 0))
    return np.pad(v, ends, mode="edge"), np.pad(a, ends, mode="edge")


def _check(model: ArmModel, time: float, effort: Vector, limit: Vector) -> None:
    """Hold one instant's effort against the limit."""
    for i in np.flatnonzero(~(np.abs(effort) <= limit * LIMIT_TOLERANCE)):
        raise TrajectoryRejected(
            f"joint '{model.joint_names[i]}': effort {effort[i]:.6g} N·m at {time:.3f} s"
            f" exceeds the limit {limit[i]:.6g}"
        )


def _check_motors(model: ArmModel, times: Vector, effort: Vector, v: Vector) -> None:
    """Hold efforts (m, nv) against what each motor gives at the speeds v (m, nv)."""
    for i, motor in enumerate(model.actuators):
        # Both ends of the range fall with the speed: most looks are within the narrowest one.
        least = motor.effort_range(float(v[:, i].min()))[0]
        largest = motor.effort_range(float(v[:, i].max()))[1]
        for k in np.flatnonzero((effort[:, i] > largest) | (effort[:, i] < least)).tolist():
            low, high = motor.effort_range(float(v[k, i]))
            if not low * LIMIT_TOLERANCE <= effort[k, i] <= high * LIMIT_TOLERANCE:
                raise TrajectoryRejected(
                    f"joint '{model.joint_names[i]}': effort {effort[k, i]:.6g} N·m at"
                    f" {times[k]:.3f} s exceeds what its motor gives at {v[k, i]:.6g} rad/s,"
                    f" {low:.6g} to {high:.6g} N·m; plan with less velocity or acceleration"
                )


def check_wrench(arm: ArmModel, q: Vector, wrench: ArrayLike) -> None:
    """|J(q)ᵀ w| <= the arm's effort limits (nv,) [N·m], for a wrench w (6,) [N, N·m] at the tool.

    Raises InvalidValue with joint, effort and limit, or for a wrench that is not finite.
    """
    effort, limit = jacobian(arm, q).T @ check_vector("wrench", wrench, 6), arm.effort_limit
    for i in np.flatnonzero(~(np.abs(effort) <= limit)):
        raise InvalidValue(
            f"wrench: joint '{arm.joint_names[i]}' would need {effort[i]:.6g} N·m for it alone;"
            f" its limit is {limit[i]:.6g}"
        )


def _looks(trajectory: Trajectory) -> tuple[Vector, Vector, Vector, Vector]:
    """Times (m,) [s] to look at, and q, v, a (m, nv) there; the stand at the end is the last."""
    knots = np.array([trajectory.start, trajectory.end])
    if isinstance(trajectory, JointTrajectory):
        knots = np.array([waypoint.time for waypoint in trajectory.waypoints])
    T = np.diff(knots)
    most = min(MAX_SAMPLES, max(MAX_TOTAL_SAMPLES // len(knots), 1))
    counts = np.clip(np.ceil(T / SPACING), 1, most).astype(int)
    k = np.repeat(np.arange(len(T)), counts + 1)
    first = np.cumsum(counts + 1) - counts - 1
    share = (np.arange(len(k)) - first[k]) / counts[k]
    moving = _motion(trajectory, knots, k, share)
    end = trajectory.at(trajectory.end)
    ends = zip(moving, (end.q, end.v, end.a), strict=True)
    q, v, a = (np.vstack([rows, last]) for rows, last in ends)
    return np.append(knots[k] + share * T[k], trajectory.end), q, v, a


def _motion(
    trajectory: Trajectory, knots: Vector, k: NDArray[np.intp], share: Vector
) -> tuple[Vector, Vector, Vector]:
    """q, v, a (m, nv) at these shares (m,) of the segments k (m,), seen from within them."""
    splines = trajectory.splines if isinstance(trajectory, JointTrajectory) else None
    if splines is not None:
        T, c = splines
        return evaluate_batch(c[:, k], share * T[k])
    inside = np.clip(share, EDGE, 1 - EDGE)
    found = [trajectory.at(t) for t in knots[k] + inside * np.diff(knots)[k]]
    nothing = np.zeros((0, trajectory.at(trajectory.end).q.size))
    q, v, a = (np.array([getattr(r, name) for r in found]) for name in "qva")
    return (q, v, a) if found else (nothing, nothing, nothing)


def check_path(
    model: ArmModel,
    trajectory: CartesianTrajectory,
    limit: Vector,
    pause: Callable[[], None] | None = None,
) -> CartesianTrajectory:
    """The trajectory, once it was found that its arm can follow; it is not looked at again.

    Raises TrajectoryRefused telling where it is out of reach, else where a joint is too fast, else
    where it needs more than ``limit`` (nv,) [N·m] by ``model``, with time and amount. ``pause`` is
    called after every look.
    """
    found = feasibility.solve_feasible(trajectory.arm, trajectory, trajectory.weights, pause)
    check_joint_path_effort(model, found.times, found.q, limit, trajectory.wrench, pause)
    return replace(trajectory, allow_unreachable=True)
