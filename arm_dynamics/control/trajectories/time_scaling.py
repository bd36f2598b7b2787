"""Time-optimal motion along a joint-space path within velocity, acceleration and effort limits.

q(s(t)) with the path velocity ṡ: q̇ = q' ṡ, q̈ = q' s̈ + q'' ṡ². The effort
M(q) q̈ + C(q, q̇) q̇ + g(q) is linear in (s̈, ṡ²) at each s. Friction is not included: reduce the
effort limits by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from arm_dynamics.control.trajectories.joint_splines import check_points
from arm_dynamics.control.trajectories.joint_trajectory import (
    JointTrajectory,
    Waypoint,
    check_limits,
)
from arm_dynamics.control.trajectories.polynomials import boundary_polynomial, evaluate
from arm_dynamics.core.arrays import (
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
    check_vector,
)
from arm_dynamics.core.errors import ConfigError, TrajectoryRejected
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.rigid_body import gravity, rnea
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

GRID = 200
"""Intervals of a path, each with a constant s̈."""
SAMPLES = 5
"""Points of each interval at which the result is checked against the limits."""
UNLIMITED = 1e6
"""Limit that replaces an infinite one [rad/s, rad/s², N·m]."""
MARGIN = 1e-5
"""Fraction by which a limit may be exceeded between the samples."""
LENGTH = 10.0
"""Length of s: path velocities far above the solver's tolerances."""
POINT_TOLERANCE = 1e-9
"""Distance [rad or m] below which two points are equal."""


@requires_arm
def time_optimal_trajectory(
    arm: ArmModel,
    points: Sequence[ArrayLike],
    *,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    start: float = 0.0,
    grid: int = GRID,
) -> JointTrajectory:
    """Return the fastest motion from rest to rest along the natural cubic spline through points.

    Two points are joined by a straight line. The waypoints are joined by cubics; if they exceed a
    limit in between, the whole motion is slowed down.

    Parameters
    ----------
    arm : ArmModel
        Arm with limits and the model of the efforts.
    points : (m, nv) array
        Positions [rad or m], the present configuration first.
    velocity, acceleration, effort : (nv,) arrays, optional
        Limits [rad/s, rad/s², N·m]; default: the arm's, and none for the acceleration.
    start : float
        Start time [s].
    grid : int
        Intervals of the path, shorter near its ends.

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        If a point is outside the joint limits, or the gravity torque exceeds the effort limit on
        the path.
    ConfigError
        Without toppra.

    References
    ----------
    H. Pham, Q.-C. Pham, A New Approach to Time-Optimal Path Parameterization Based on Reachability
    Analysis, IEEE Trans. Robotics 34 (2018), 645; computed by toppra.

    """
    path = _natural_spline(arm, points)
    limits = _Limits(
        _limit("velocity", arm.velocity_limit if velocity is None else velocity, arm.nv),
        _limit("acceleration", [np.inf] * arm.nv if acceleration is None else acceleration, arm.nv),
        _limit("effort", arm.effort_limit if effort is None else effort, arm.nv),
    )
    # short intervals where the motion is slow: all last about equally long
    s = LENGTH / 2 * (1 - np.cos(np.linspace(0, np.pi, check_int("grid", grid, lower=4) + 1)))
    _require_static_effort(arm, path(s), limits.effort)
    speed = _path_speed(arm, path, s, limits)
    durations = 2 * np.diff(s) / (speed[1:] + speed[:-1])
    times = np.concatenate([[0.0], np.cumsum(durations)])
    q, v = path(s), path(s, 1) * speed[:, None]
    slower = _slowdown(arm, times, q, v, limits)
    begin = check_float("start [s]", start)
    rows = zip((begin + slower * times).tolist(), q, v / slower, strict=True)
    trajectory = JointTrajectory(
        tuple(Waypoint(t, as_readonly(x), as_readonly(y)) for t, x, y in rows)
    )
    check_limits(arm, trajectory)
    return trajectory


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """Limits, each (nv,) [rad/s, rad/s², N·m]."""

    velocity: Vector
    acceleration: Vector
    effort: Vector


def _natural_spline(arm: ArmModel, points: Sequence[ArrayLike]) -> CubicSpline:
    """Return the natural spline over the chord length, scaled to LENGTH."""
    q = check_points(points)
    check_vector("points[0]", q[0], arm.nv)
    chords = np.linalg.norm(np.diff(q, axis=0), axis=1)
    for k in np.flatnonzero(chords < POINT_TOLERANCE).tolist():
        raise TrajectoryRejected(
            f"points {k} and {k + 1} = {q[k].tolist()}; expected different points"
        )
    s = np.concatenate([[0.0], np.cumsum(chords)])
    return CubicSpline(s / s[-1] * LENGTH, q, bc_type="natural")


def _path_speed(arm: ArmModel, path: CubicSpline, s: Vector, limits: _Limits) -> Vector:
    """Return the maximum ṡ (grid + 1,) from rest to rest."""
    try:  # takes two seconds
        import toppra  # noqa: PLC0415
        import toppra.algorithm  # noqa: PLC0415
        from toppra import constraint  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"time scaling: toppra is not installed; {to_install('trajectories')} (wheels exist for"
            " Linux x86-64 only; elsewhere pip compiles it)"
        ) from error
    fine = {"discretization_scheme": constraint.DiscretizationType.Interpolation}
    inverse, zero = partial(rnea, arm), np.zeros(arm.nv)
    constraints = [
        constraint.JointVelocityConstraint(_both(limits.velocity)),
        constraint.JointAccelerationConstraint(_both(limits.acceleration), **fine),
        constraint.JointTorqueConstraint(inverse, _both(limits.effort), zero, **fine),
    ]
    spline = toppra.SplineInterpolator(path.x, path(path.x), bc_type="natural")
    method = toppra.algorithm.TOPPRA(constraints, spline, gridpoints=s, solver_wrapper="seidel")
    _, speed, _ = method.compute_parameterization(0, 0)
    if speed is None or not np.isfinite(speed).all() or (speed[1:-1] <= 0).any():
        raise TrajectoryRejected(
            "time scaling: no motion along this path satisfies the limits; increase the limits or"
            " the grid"
        )
    return np.asarray(speed, dtype=float)


def _slowdown(arm: ArmModel, times: Vector, q: Matrix, v: Matrix, limits: _Limits) -> float:
    """Return the factor k >= 1 of the duration that satisfies all limits between waypoints.

    Velocities decrease by k, accelerations and the effort beyond the gravity torque by k².
    """
    worst, samples = 1.0, list[Reference]()
    for k, length in enumerate(np.diff(times).tolist()):
        cubic = boundary_polynomial(length, (q[k], q[k + 1]), (v[k], v[k + 1]))
        at = (np.linspace(0, 1, SAMPLES) * length).tolist()
        samples += [Reference(*evaluate(cubic, t)) for t in at]
    for r in samples:
        gravity_torque = gravity(arm, r.q)
        effort = rnea(arm, r.q, r.v, r.a) - gravity_torque
        signed = np.where(effort > 0, gravity_torque, -gravity_torque)
        reserve = np.maximum(limits.effort - signed, 1e-12)
        squares = np.abs([r.a / limits.acceleration, effort / reserve])
        worst = max(worst, np.abs(r.v / limits.velocity).max(), np.sqrt(squares.max()))
    return float(worst) * (1 + MARGIN)


def _require_static_effort(arm: ArmModel, q: Matrix, effort: Vector) -> None:
    """Raise TrajectoryRejected where the gravity torque reaches the effort limit."""
    for row in q:
        gravity_torque = gravity(arm, row)
        for i in np.flatnonzero(np.abs(gravity_torque) >= effort):
            raise TrajectoryRejected(
                f"joint '{arm.joint_names[i]}': gravity torque at q = {row.round(3).tolist()} ="
                f" {gravity_torque[i]:.6g} N·m; expected less than the limit {effort[i]:.6g}"
            )


def _limit(name: str, value: ArrayLike, size: int) -> Vector:
    """Return limits (nv,) above 0; raises InvalidValue."""
    limit = check_vector(name, np.minimum(as_readonly(value), UNLIMITED), size)
    for i, x in enumerate(limit.tolist()):
        check_float(f"{name}[{i}]", x, above=0)
    return limit


def _both(limit: Vector) -> Matrix:
    """Return rows (-limit, limit)."""
    return np.stack([-limit, limit], axis=1)
