"""The fastest motion along a path of the joints within velocity, acceleration and effort limits.

q(s(t)) with the path velocity ṡ: q̇ = q' ṡ, q̈ = q' s̈ + q'' ṡ², and the effort
M(q) q̈ + C(q, q̇) q̇ + g(q) is linear in (s̈, ṡ²) at each s. Friction is not in it: what it takes,
leave of the effort limits.
Source: H. Pham, Q.-C. Pham, A New Approach to Time-Optimal Path Parameterization Based on
Reachability Analysis, IEEE Trans. Robotics 34 (2018), 645; computed by toppra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.errors import ConfigError, TrajectoryRejected
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.rigid_body import gravity, rnea
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

MISSING = f"time scaling needs toppra: {to_install('trajectories')}"
GRID = 200
"""Stretches of a path, on each of which s̈ is constant."""
BETWEEN = 5
"""Points of each stretch at which the result is held against the limits."""
UNLIMITED = 1e6
"""Limit taken where there is none [rad/s, rad/s², N·m]."""
MARGIN = 1e-5
"""What a limit may be exceeded by between those points."""
LENGTH = 10.0
"""Length of s: path velocities are then far from the solver's tolerances."""
APART = 1e-9
"""Distance [rad or m] below which two points are the same."""


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
    """From rest to rest along the natural cubic spline through ``points`` (m, nv) [rad or m].

    Two points are joined by a straight line. ``velocity``, ``acceleration`` and ``effort`` (nv,)
    [rad/s, rad/s², N·m] are the limits: the arm's own, and none for the acceleration, where not
    given. The path is cut into ``grid`` stretches, shorter towards its ends. Where the motion,
    whose waypoints are joined by cubics, exceeds a limit between them, all of it is slowed down
    until it does not.

    Raises TrajectoryRefused where a point is out of the joints' range, or the arm's weight alone
    is more than the effort limit somewhere on the path, and ConfigError without toppra.
    """
    path = _path(arm, points)
    limits = _Limits(
        _limit("velocity", arm.velocity_limit if velocity is None else velocity, arm.nv),
        _limit("acceleration", [np.inf] * arm.nv if acceleration is None else acceleration, arm.nv),
        _limit("effort", arm.effort_limit if effort is None else effort, arm.nv),
    )
    s = _grid(check_int("grid", grid, lower=4))
    _check_weight(arm, path(s), limits.effort)
    speed = _path_speed(arm, path, s, limits)
    lasting = 2 * np.diff(s) / (speed[1:] + speed[:-1])
    times = np.concatenate([[0.0], np.cumsum(lasting)])
    q, v = path(s), path(s, 1) * speed[:, None]
    slower = _excess(arm, times, q, v, limits)
    found = _trajectory(check_float("start [s]", start) + slower * times, q, v / slower)
    check_limits(arm, found)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """Each (nv,) [rad/s, rad/s², N·m]."""

    velocity: Vector
    acceleration: Vector
    effort: Vector


def _path(arm: ArmModel, points: Sequence[ArrayLike]) -> CubicSpline:
    """Natural spline over the points' distance along their chords, of LENGTH in all."""
    q = check_points(points)
    check_vector("points[0]", q[0], arm.nv)
    chords = np.linalg.norm(np.diff(q, axis=0), axis=1)
    for k in np.flatnonzero(chords < APART).tolist():
        raise TrajectoryRejected(f"points {k} and {k + 1} are the same: {q[k].tolist()}")
    s = np.concatenate([[0.0], np.cumsum(chords)])
    return CubicSpline(s / s[-1] * LENGTH, q, bc_type="natural")


def _grid(count: int) -> Vector:
    """Ends of stretches that last about equally long: short ones where the motion is slow."""
    s: Vector = LENGTH / 2 * (1 - np.cos(np.linspace(0, np.pi, count + 1)))
    return s


def _path_speed(arm: ArmModel, path: CubicSpline, s: Vector, limits: _Limits) -> Vector:
    """The highest ṡ (grid + 1,) at the grid, from rest to rest."""
    toppra, constraint = _toppra()
    fine = {"discretization_scheme": constraint.DiscretizationType.Interpolation}
    inverse, none = partial(rnea, arm), np.zeros(arm.nv)
    held = [
        constraint.JointVelocityConstraint(_both(limits.velocity)),
        constraint.JointAccelerationConstraint(_both(limits.acceleration), **fine),
        constraint.JointTorqueConstraint(inverse, _both(limits.effort), none, **fine),
    ]
    way = toppra.SplineInterpolator(path.x, path(path.x), bc_type="natural")
    method = toppra.algorithm.TOPPRA(held, way, gridpoints=s, solver_wrapper="seidel")
    _, speed, _ = method.compute_parameterization(0, 0)
    if speed is None or not np.isfinite(speed).all() or (speed[1:-1] <= 0).any():
        raise TrajectoryRejected(
            "no motion along this path keeps the limits: larger ones or a finer grid are expected"
        )
    return np.asarray(speed, dtype=float)


def _excess(arm: ArmModel, times: Vector, q: Vector, v: Vector, limits: _Limits) -> float:
    """How many times slower the motion has to be to keep every limit between its waypoints.

    Slowed down k times, velocities fall by k, accelerations and what the effort is beyond the
    weight by k².
    """
    worst = 1.0
    for r in _between(times, q, v):
        weight = gravity(arm, r.q)
        effort = rnea(arm, r.q, r.v, r.a) - weight
        room = np.where(effort > 0, limits.effort - weight, limits.effort + weight)
        squares = np.abs([r.a / limits.acceleration, effort / np.maximum(room, 1e-12)])
        worst = max(worst, np.abs(r.v / limits.velocity).max(), np.sqrt(squares.max()))
    return float(worst) * (1 + MARGIN)


def _between(times: Vector, q: Vector, v: Vector) -> Iterator[Reference]:
    """Samples of the cubics between waypoints, both ends of each included."""
    for k, length in enumerate(np.diff(times).tolist()):
        cubic = boundary_polynomial(length, (q[k], q[k + 1]), (v[k], v[k + 1]))
        for share in np.linspace(0, 1, BETWEEN):
            yield Reference(*evaluate(cubic, float(share) * length))


def _trajectory(times: Vector, q: Vector, v: Vector) -> JointTrajectory:
    rows = zip(times.tolist(), q, v, strict=True)
    return JointTrajectory(tuple(Waypoint(t, as_readonly(a), as_readonly(b)) for t, a, b in rows))


def _check_weight(arm: ArmModel, q: Vector, effort: Vector) -> None:
    """Refuse a path on which the arm can not stand."""
    for row in q:
        weight = gravity(arm, row)
        for i in np.flatnonzero(np.abs(weight) >= effort):
            raise TrajectoryRejected(
                f"joint '{arm.joint_names[i]}': holding the arm at q = {row.round(3).tolist()} on"
                f" this path takes {weight[i]:.6g} N·m; the limit is {effort[i]:.6g}"
            )


def _limit(name: str, value: ArrayLike, size: int) -> Vector:
    """Limits (nv,) above 0; raises InvalidValue."""
    limit = check_vector(name, np.minimum(as_readonly(value), UNLIMITED), size)
    for i, x in enumerate(limit.tolist()):
        check_float(f"{name}[{i}]", x, above=0)
    return limit


def _both(limit: Vector) -> Vector:
    """Rows (-limit, limit)."""
    return np.stack([-limit, limit], axis=1)


def _toppra() -> tuple[Any, Any]:
    """The package and its constraints; it takes two seconds to import, so only when needed."""
    try:
        import toppra  # noqa: PLC0415
        import toppra.algorithm  # noqa: PLC0415
        from toppra import constraint  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(MISSING) from error
    return toppra, constraint
