"""Joint trajectories through given points: cubic, quintic, spline and trapezoidal.

``points`` (m, nv) [rad or m] start at the present configuration. All joints leave a point and
arrive at the next one together. Every function raises TrajectoryRejected, naming the point or time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.profiles import trapezoidal
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected

UNLIMITED = 1e9
"""Velocity or acceleration that replaces an infinite limit."""

DISTANCE_TOLERANCE = 1e-12
"""Distance [rad or m] below which a joint does not move."""


def cubic_trajectory(
    points: Sequence[ArrayLike], times: ArrayLike, velocities: Sequence[ArrayLike] | None = None
) -> JointTrajectory:
    """Return cubic polynomials between the points.

    Parameters
    ----------
    points : (m, nv) array
        Positions [rad or m], the present configuration first.
    times : (m,) array
        Times of the points [s], increasing.
    velocities : (m, nv) array, optional
        Velocities at the points; default: rest at every point.

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        Naming the point or time.

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
    """Return quintic polynomials between the points.

    Parameters
    ----------
    points : (m, nv) array
        Positions [rad or m], the present configuration first.
    times : (m,) array
        Times of the points [s], increasing.
    velocities, accelerations : (m, nv) arrays, optional
        Values at the points; default: 0.

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        Naming the point or time.

    """
    q = check_points(points)
    t = _times(times, len(q))
    rates = (("velocities", velocities), ("accelerations", accelerations))
    v, a = (np.zeros_like(q) if x is None else _table(name, x, q.shape) for name, x in rates)
    return _trajectory(t, q, v, a)


def spline_trajectory(points: Sequence[ArrayLike], times: ArrayLike) -> JointTrajectory:
    """Return the cubic spline through the points, from rest to rest, with smooth acceleration.

    Parameters
    ----------
    points : (m, nv) array
        Positions [rad or m], the present configuration first.
    times : (m,) array
        Times of the points [s], increasing.

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        Naming the point or time.

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), section 4.4.1.

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
    """Return straight joint-space motions with trapezoidal velocity, at rest at every point.

    q = q_k + s h, h = q_k+1 - q_k. All joints have one profile s(t) with ṡ <= min v_i / |h_i| and
    |s̈| <= min a_i / |h_i|.

    Parameters
    ----------
    points : (m, nv) array
        Positions [rad or m], the present configuration first.
    velocity, acceleration : (nv,) arrays
        Limits [rad/s, rad/s²; m/s, m/s² for prismatic joints]; inf for none.
    start : float
        Start time [s].
    durations : (m - 1,) array, optional
        Longer durations of the motions [s].

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        Naming the point or time.

    """
    q = check_points(points)
    limits, count = [], len(q) - 1
    with _rejecting():
        for name, value in (("velocity", velocity), ("acceleration", acceleration)):
            limit = check_vector(name, np.minimum(as_readonly(value), UNLIMITED), q.shape[1])
            for i in np.flatnonzero(limit < 0).tolist():
                raise TrajectoryRejected(
                    f"{name}[{i}] = {limit[i]}; expected a limit of at least 0"
                )
            limits.append(limit)
        begin = check_float("start [s]", start)
        longer = (
            [None] * count if durations is None else check_vector("durations", durations, count)
        )
    waypoints = [Waypoint(begin, as_readonly(q[0]), as_readonly(np.zeros(q.shape[1])))]
    for k, duration in enumerate(longer):
        with _rejecting(f"segment from point {k} to {k + 1}: "):
            waypoints.extend(_segment(waypoints[-1].time, q[k], q[k + 1], limits, duration))
    return JointTrajectory(tuple(waypoints))


@contextmanager
def _rejecting(where: str = "") -> Iterator[None]:
    """Turn InvalidValue into TrajectoryRejected, with ``where`` before its message."""
    try:
        yield
    except InvalidValue as error:
        raise TrajectoryRejected(f"{where}{error}") from error


def _segment(
    start: float, before: Vector, after: Vector, limits: Sequence[Vector], duration: float | None
) -> Iterator[Waypoint]:
    """Yield the waypoints at which the acceleration changes: cubics through them are parabolas."""
    distance, rest = after - before, as_readonly(np.zeros_like(after))
    moving = np.abs(distance) > DISTANCE_TOLERANCE
    if not moving.any():
        if duration is not None:
            end = start + check_float("duration [s]", duration, above=0)
            yield Waypoint(end, as_readonly(after), rest)
        return
    v, a = (float((limit[moving] / np.abs(distance[moving])).min()) for limit in limits)
    profile = trapezoidal(v, a)
    profile = profile if duration is None else profile.stretched_to(duration)
    for time in (*profile.times[1:], profile.duration):
        s, speed, _ = profile.at(time)
        q, rate = as_readonly(before + s * distance), as_readonly(speed * distance)
        yield Waypoint(start + time, q, rate)


def _trajectory(t: Vector, q: Matrix, v: Matrix, a: Matrix | None = None) -> JointTrajectory:
    """Return these rows as waypoints; raises TrajectoryRejected for a velocity at the end."""
    if v[-1].any():
        raise TrajectoryRejected(f"velocities of the last point = {v[-1].tolist()}; expected 0")
    accelerations: Sequence[Vector | None] = [None] * len(t) if a is None else list(a)
    rows = zip(t.tolist(), q, v, accelerations, strict=True)
    return JointTrajectory(
        tuple(
            Waypoint(time, as_readonly(x), as_readonly(y), None if z is None else as_readonly(z))
            for time, x, y, z in rows
        )
    )


def check_points(points: Sequence[ArrayLike]) -> Matrix:
    """Return points as an array (m, nv), m >= 2; raises TrajectoryRejected."""
    rows = _rows("points", points)
    if len(rows) < 2:
        raise TrajectoryRejected(
            f"number of points = {len(rows)}; expected at least 2, the present configuration first"
        )
    return _table("points", rows, (len(rows), np.size(rows[0])))


def _table(name: str, values: Sequence[ArrayLike], shape: tuple[int, ...]) -> Matrix:
    rows = _rows(name, values)
    if len(rows) != shape[0]:
        raise TrajectoryRejected(f"{name}: {len(rows)} rows; expected {shape[0]}, one per point")
    with _rejecting():
        return np.array([check_vector(f"{name}[{k}]", row, shape[1]) for k, row in enumerate(rows)])


def _rows(name: str, values: Sequence[ArrayLike]) -> list[ArrayLike]:
    try:
        return list(values)
    except TypeError as error:
        raise TrajectoryRejected(f"{name} = {values!r}; expected a list of rows") from error


def _times(times: ArrayLike, count: int) -> Vector:
    with _rejecting():
        t = check_vector("times", times, count)
    for k in np.flatnonzero(np.diff(t) <= 0).tolist():
        raise TrajectoryRejected(
            f"times[{k + 1}] = {t[k + 1]} s after {t[k]} s; expected strictly increasing times"
        )
    return t
