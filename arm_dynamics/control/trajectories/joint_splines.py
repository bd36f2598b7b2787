"""Joint trajectories through given points: cubic, quintic, smooth and trapezoidal.

``points`` (m, nv) [rad or m] begin where the arm is. All joints leave a point and arrive at the
next one together. Every function raises TrajectoryRefused naming the point or time at fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.profiles import trapezoidal as fastest_profile
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected

UNLIMITED = 1e9
"""Velocity or acceleration taken where a limit is infinite."""

DISTANCE_TOLERANCE = 1e-12
"""Way [rad or m] of a joint that does not count as one."""


def cubic_trajectory(
    points: Sequence[ArrayLike], times: ArrayLike, velocities: Sequence[ArrayLike] | None = None
) -> JointTrajectory:
    """Cubic polynomials between the points, passed at ``times`` (m,) [s] with ``velocities``.

    Without velocities the arm rests at every point.
    """
    q = check_points(points)
    t = _times(times, len(q))
    v = np.zeros_like(q) if velocities is None else _table("velocities", velocities, q.shape)
    return _trajectory(t, q, v)


def quintic_trajectory(
    points: Sequence[ArrayLike],
    times: ArrayLike,
    velocities: Sequence[ArrayLike] | None = None,
    accelerations: Sequence[ArrayLike] | None = None,
) -> JointTrajectory:
    """Quintic polynomials between the points; what is not given is 0 at every point."""
    q = check_points(points)
    t = _times(times, len(q))
    rates = (("velocities", velocities), ("accelerations", accelerations))
    v, a = (np.zeros_like(q) if x is None else _table(name, x, q.shape) for name, x in rates)
    return _trajectory(t, q, v, a)


def spline_trajectory(points: Sequence[ArrayLike], times: ArrayLike) -> JointTrajectory:
    """The cubic spline through the points from rest to rest, without a jump of acceleration.

    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), section 4.4.1.
    """
    from scipy.interpolate import CubicSpline  # noqa: PLC0415 - slow to import

    q = check_points(points)
    t = _times(times, len(q))
    v = CubicSpline(t, q, bc_type="clamped")(t, 1)
    v[[0, -1]] = 0.0  # to the last digit
    return _trajectory(t, q, v)


def trapezoidal_trajectory(
    points: Sequence[ArrayLike],
    velocity: ArrayLike,
    acceleration: ArrayLike,
    start: float = 0.0,
    durations: ArrayLike | None = None,
) -> JointTrajectory:
    """Straight in joint space from point to point, resting at each, as fast as limits allow.

    All joints share one s(t): q = q_k + s h, h = q_k+1 - q_k, of ``profiles.trapezoidal`` with
    ṡ <= min v_i / |h_i| and |s̈| <= min a_i / |h_i|: the joint with the longest way at its limits
    sets the pace. ``velocity`` and ``acceleration`` (nv,) [rad/s, rad/s²] are the limits;
    ``durations`` (m - 1,) [s] slow the moves down. The clock stands at ``start`` [s].
    """
    q = check_points(points)
    given = ("velocity", velocity), ("acceleration", acceleration)
    limits = [_limit(n, x, q.shape[1]) for n, x in given]
    found = [
        Waypoint(
            check_float("start [s]", start), as_readonly(q[0]), as_readonly(np.zeros(q.shape[1]))
        )
    ]
    moves = len(q) - 1
    lasting = [None] * moves if durations is None else check_vector("durations", durations, moves)
    for k, duration in enumerate(lasting):
        try:
            found.extend(_move(found[-1].time, q[k], q[k + 1], limits, duration))
        except InvalidValue as error:
            raise TrajectoryRejected(f"the way from point {k} to {k + 1}: {error}") from error
    return JointTrajectory(tuple(found))


def _move(
    start: float, before: Vector, after: Vector, limits: Sequence[Vector], duration: float | None
) -> Iterator[Waypoint]:
    """Where the acceleration changes, and the end: the cubics between them are the parabolas."""
    way, rest = after - before, as_readonly(np.zeros_like(after))
    moving = np.abs(way) > DISTANCE_TOLERANCE
    if not moving.any():
        if duration is not None:
            yield Waypoint(
                start + check_float("duration [s]", duration, above=0), as_readonly(after), rest
            )
        return
    v, a = (float((limit[moving] / np.abs(way[moving])).min()) for limit in limits)
    profile = fastest_profile(v, a)
    profile = profile if duration is None else profile.stretched_to(duration)
    for time in (*profile.times[1:], profile.duration):
        s, speed, _ = profile.at(time)
        yield Waypoint(start + time, as_readonly(before + s * way), as_readonly(speed * way))


def _trajectory(t: Vector, q: Vector, v: Vector, a: Vector | None = None) -> JointTrajectory:
    """These rows as waypoints, none of which may leave the arm moving at the end."""
    if v[-1].any():
        raise TrajectoryRejected(f"velocities of the last point {v[-1].tolist()}: 0 is expected")
    rows: Sequence[Vector | None] = (
        [None] * len(t) if a is None else [as_readonly(row) for row in a]
    )
    return JointTrajectory(
        tuple(
            Waypoint(float(time), as_readonly(q[i]), as_readonly(v[i]), rows[i])
            for i, time in enumerate(t)
        )
    )


def check_points(points: Sequence[ArrayLike]) -> Vector:
    """Points as (m, nv), m >= 2: one alone has no way to go."""
    rows = _rows("points", points)
    if len(rows) < 2:
        raise TrajectoryRejected(f"{len(rows)} points: at least 2 are expected, the start first")
    return _table("points", rows, (len(rows), np.size(rows[0])))


def _table(name: str, given: Sequence[ArrayLike], shape: tuple[int, ...]) -> Vector:
    rows = _rows(name, given)
    if len(rows) != shape[0]:
        raise TrajectoryRejected(f"{name}: {len(rows)} rows for {shape[0]} points")
    try:
        return np.array([check_vector(f"{name}[{k}]", row, shape[1]) for k, row in enumerate(rows)])
    except InvalidValue as error:
        raise TrajectoryRejected(str(error)) from error


def _rows(name: str, given: Sequence[ArrayLike]) -> list[ArrayLike]:
    try:
        return list(given)
    except TypeError as error:
        raise TrajectoryRejected(f"{name} = {given!r}: a list of rows is expected") from error


def _times(times: ArrayLike, count: int) -> Vector:
    try:
        t = check_vector("times", times, count)
    except InvalidValue as error:
        raise TrajectoryRejected(str(error)) from error
    for k in np.flatnonzero(np.diff(t) <= 0).tolist():
        raise TrajectoryRejected(
            f"times[{k + 1}] = {t[k + 1]} s after {t[k]} s: strictly increasing times are expected"
        )
    return t


def _limit(name: str, value: ArrayLike, size: int) -> Vector:
    """Limits above 0 of each joint; inf where there is none."""
    limit = check_vector(name, np.minimum(as_readonly(value), UNLIMITED), size)
    for i in np.flatnonzero(limit < 0).tolist():
        raise TrajectoryRejected(f"{name}[{i}] = {limit[i]}: a limit of at least 0 is expected")
    return limit
