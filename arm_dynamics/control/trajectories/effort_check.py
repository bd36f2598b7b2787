"""Efforts along a trajectory, checked against the motors' limits before it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_feasible
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.polynomials import evaluate_batch
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.control.trajectories.transition_blend import ZERO_TWIST
from arm_dynamics.core.arrays import Matrix, Vector, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import TaskReference
from arm_dynamics.dynamics.kinematics.frames import jacobian
from arm_dynamics.dynamics.rigid_body import rnea, rnea_batch
from arm_dynamics.model.arm_model import ArmModel

SPACING = 0.02
"""Maximum time between two samples of the effort [s]; both ends of a segment are sampled."""
MAX_SAMPLES, MAX_TOTAL_SAMPLES = 50, 20_000
"""Maximum samples of a segment, and approximately of a trajectory."""
END_FRACTION = 1e-9
"""Fraction of a segment by which its ends are sampled inside."""
LIMIT_TOLERANCE = 1 + 1e-9
"""Ratio to a limit that counts as rounding."""


def check_effort(model: ArmModel, trajectory: Trajectory, limit: Vector) -> None:
    """Check |M(q) a + C(q, v) v + g(q) + τ| <= limit along a trajectory.

    τ are the trajectory's feedforward efforts. A joint trajectory is checked every SPACING, at both
    ends of every segment, and against the motors' effort ranges at their speeds (the back-EMF of a
    DC motor reduces its effort). A Cartesian trajectory is checked along its joint motion, without
    the motors.

    Parameters
    ----------
    model : ArmModel
        Model that computes the efforts.
    trajectory : Trajectory
        Joint or Cartesian trajectory.
    limit : (nv,) array
        Effort limits [N·m or N].

    Raises
    ------
    TrajectoryRejected
        With joint, effort, limit and time.

    """
    if isinstance(trajectory.at(trajectory.start), TaskReference):
        report = solve_feasible(model, trajectory)
        check_joint_path_effort(model, report.times, report.q, limit)
        return
    times, q, v, a = _samples(trajectory)
    effort = rnea_batch(model, q, v, a)
    if isinstance(trajectory, JointTrajectory) and trajectory.effort is not None:
        added = (trajectory.effort.at(time) for time in times.tolist())
        effort = effort + [np.zeros(model.nv) if row is None else row for row in added]
    for k in np.flatnonzero(~(np.abs(effort) <= limit * LIMIT_TOLERANCE).all(axis=1)).tolist():
        _require_within(model, float(times[k]), effort[k], limit)
    _check_motors(model, times, effort, v)


def check_joint_path_effort(
    model: ArmModel,
    times: Vector,
    q: Matrix,
    limit: Vector,
    wrench: Vector = ZERO_TWIST,
    pause: Callable[[], None] | None = None,
) -> None:
    """Check |M a + C v + g + Jᵀ w| <= limit of joints that are at q at given times.

    v and a are differences of the samples: averages that do not exceed the maxima.

    Parameters
    ----------
    model : ArmModel
        Model that computes the efforts.
    times : (n,) array
        Times [s].
    q : (n, nv) array
        Configurations [rad or m].
    limit : (nv,) array
        Effort limits [N·m or N].
    wrench : (6,) array
        Wrench w that the tool applies [N, N·m].
    pause : callable, optional
        Called after every sample.

    Raises
    ------
    TrajectoryRejected
        With joint, effort, limit and time.

    """
    for time, at, v, a in zip(times.tolist(), q, *_differences(times, q), strict=True):
        effort = rnea(model, at, v, a)
        if wrench.any():
            effort = effort + jacobian(model, at).T @ wrench
        _require_within(model, time, effort, limit)
        if pause is not None:
            pause()


def check_path(
    model: ArmModel,
    trajectory: CartesianTrajectory,
    limit: Vector,
    pause: Callable[[], None] | None = None,
    check_samples: Callable[[Vector, Matrix], None] | None = None,
) -> CartesianTrajectory:
    """Return a Cartesian trajectory that passed all checks and is not checked again.

    Parameters
    ----------
    model : ArmModel
        Model that computes the efforts.
    trajectory : CartesianTrajectory
        Trajectory to check.
    limit : (nv,) array
        Effort limits [N·m or N].
    pause : callable, optional
        Called after every sample.
    check_samples : callable, optional
        Raises TrajectoryRejected for times (n,) [s] and configurations (n, nv) of a motion with a
        contact.

    Raises
    ------
    TrajectoryRejected
        For the first unreachable span, else the first joint that is too fast, else the first effort
        beyond ``limit``, with time and amount; else for the first contact.

    """
    report = solve_feasible(trajectory.arm, trajectory, trajectory.weights, pause)
    check_joint_path_effort(model, report.times, report.q, limit, trajectory.wrench, pause)
    if check_samples is not None:
        check_samples(report.times, report.q)
    return replace(trajectory, allow_unreachable=True)


def check_wrench(arm: ArmModel, q: Vector, wrench: ArrayLike) -> None:
    """Check |J(q)ᵀ w| against the arm's effort limits.

    Parameters
    ----------
    arm : ArmModel
        Arm with effort limits.
    q : (nv,) array
        Configuration [rad or m].
    wrench : (6,) array
        Wrench w at the tool [N, N·m].

    Raises
    ------
    InvalidValue
        With joint, effort and limit; also for a wrench that is not finite.

    """
    effort, limit = jacobian(arm, q).T @ check_vector("wrench", wrench, 6), arm.effort_limit
    for i in np.flatnonzero(~(np.abs(effort) <= limit)):
        raise InvalidValue(
            f"wrench: joint '{arm.joint_names[i]}': effort = {effort[i]:.6g} N·m for the wrench"
            f" only; expected within the limit {limit[i]:.6g}"
        )


def _require_within(model: ArmModel, time: float, effort: Vector, limit: Vector) -> None:
    for i in np.flatnonzero(~(np.abs(effort) <= limit * LIMIT_TOLERANCE)):
        raise TrajectoryRejected(
            f"joint '{model.joint_names[i]}': effort = {effort[i]:.6g} N·m at {time:.3f} s;"
            f" expected within the limit {limit[i]:.6g}"
        )


def _check_motors(model: ArmModel, times: Vector, effort: Matrix, v: Matrix) -> None:
    """Check efforts (m, nv) against each motor's effort range at the speeds v (m, nv)."""
    for i, motor in enumerate(model.actuators):
        # both ends of the range decrease with speed: most samples are within the narrowest one
        narrow_low = motor.effort_range(float(v[:, i].min()))[0]
        narrow_high = motor.effort_range(float(v[:, i].max()))[1]
        outside = (effort[:, i] > narrow_high) | (effort[:, i] < narrow_low)
        for k in np.flatnonzero(outside).tolist():
            low, high = motor.effort_range(float(v[k, i]))
            if not low * LIMIT_TOLERANCE <= effort[k, i] <= high * LIMIT_TOLERANCE:
                raise TrajectoryRejected(
                    f"joint '{model.joint_names[i]}': effort = {effort[k, i]:.6g} N·m at"
                    f" {times[k]:.3f} s; expected {low:.6g} to {high:.6g} N·m of its motor at"
                    f" {v[k, i]:.6g} rad/s; reduce velocity or acceleration"
                )


def _differences(times: Vector, q: Matrix) -> tuple[Matrix, Matrix]:
    """Return velocities and accelerations (n, nv) of samples; the ends repeat their neighbors."""
    if len(times) < 3:
        return np.zeros_like(q), np.zeros_like(q)
    lengths = np.diff(times)[:, None]
    rates = np.diff(q, axis=0) / lengths
    spans = lengths[1:] + lengths[:-1]
    v = (rates[:-1] * lengths[1:] + rates[1:] * lengths[:-1]) / spans
    a = 2 * np.diff(rates, axis=0) / spans
    ends = ((1, 1), (0, 0))
    return np.pad(v, ends, mode="edge"), np.pad(a, ends, mode="edge")


def _samples(trajectory: Trajectory) -> tuple[Vector, Matrix, Matrix, Matrix]:
    """Return times (m,) [s] and q, v, a (m, nv); the rest at the end is the last sample."""
    knots = np.array([trajectory.start, trajectory.end])
    if isinstance(trajectory, JointTrajectory):
        knots = np.array([waypoint.time for waypoint in trajectory.waypoints])
    T = np.diff(knots)
    limit = min(MAX_SAMPLES, max(MAX_TOTAL_SAMPLES // len(knots), 1))
    counts = np.clip(np.ceil(T / SPACING), 1, limit).astype(int)
    k = np.repeat(np.arange(len(T)), counts + 1)
    first = np.cumsum(counts + 1) - counts - 1
    fraction = (np.arange(len(k)) - first[k]) / counts[k]
    end = trajectory.at(trajectory.end)
    splines = trajectory.splines if isinstance(trajectory, JointTrajectory) else None
    if splines is not None:
        q, v, a = evaluate_batch(splines[1][:, k], fraction * splines[0][k])
    else:
        inside = np.clip(fraction, END_FRACTION, 1 - END_FRACTION)  # at a knot values may jump
        samples = [trajectory.at(t) for t in knots[k] + inside * T[k]]
        rows = ([getattr(r, name) for r in samples] for name in "qva")
        q, v, a = (np.array(row).reshape(-1, end.q.size) for row in rows)
    q, v, a = np.vstack([q, end.q]), np.vstack([v, end.v]), np.vstack([a, end.a])
    return np.append(knots[k] + fraction * T[k], trajectory.end), q, v, a
