"""Joint trajectories as joint_trajectory_controller understands them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.feed_forward import FeedForward
from arm_dynamics.control.trajectories.polynomials import (
    RangeBounds,
    are_certainly_within,
    boundary_polynomial,
    derivative,
    evaluate,
    extremes,
    is_certainly_within,
)
from arm_dynamics.control.trajectories.profiles import invalid_time_error
from arm_dynamics.control.trajectories.stop_trajectory import StopTrajectory, default_deceleration
from arm_dynamics.control.trajectories.waypoint_tables import (
    check_end,
    check_times,
    integrated,
    joint_order,
    table,
)
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

LIMIT_TOLERANCE = 1e-9
"""Position [rad or m] beyond a limit that is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Waypoint:
    """Where the joints should be at ``time`` [s]: q (nv,), and v, a (nv,) where given."""

    time: float
    q: Vector
    v: Vector | None = None
    a: Vector | None = None


class Trajectory(Protocol):
    """What a loop follows."""

    @property
    def start(self) -> float:
        """Time of the first waypoint [s]."""
        ...

    @property
    def end(self) -> float:
        """Time of the last waypoint [s]; from then on it stands still."""
        ...

    def at(self, time: float) -> Reference:
        """Reference at ``time`` [s]."""
        ...

    def starting_from(self, now: float, current_reference: Reference) -> Trajectory:
        """This trajectory entered at ``now`` from the ``current_reference`` reference, without a jump."""
        ...

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRefused where ``arm`` can not follow."""
        ...


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Waypoints joined by splines; before the first and after the last one it stands still.

    After a last waypoint in motion it comes to rest by ``stop``.
    """

    waypoints: tuple[Waypoint, ...]
    effort: FeedForward | None = None
    stop: StopTrajectory | None = None
    origin: float | None = None
    """Time [s] from which a client counts its waypoints' times; None: from the first one."""

    @classmethod
    def hold(cls, q: ArrayLike, time: float = 0.0) -> JointTrajectory:
        """Stand at ``q`` from now on."""
        return cls((Waypoint(time, as_readonly(q)),))

    @property
    def start(self) -> float:
        """Time of the first waypoint [s]."""
        return self.waypoints[0].time

    @property
    def end(self) -> float:
        """Time of the last waypoint [s]."""
        return self.waypoints[-1].time

    @property
    def data_end(self) -> float:
        """Time of the last waypoint [s], of streams too."""
        return self.end

    @property
    def moving(self) -> bool:
        """Whether the last waypoint is passed in motion."""
        return self.stop is not None

    @property
    def knots(self) -> tuple[float, ...]:
        """Times of the waypoints [s]."""
        return self._times

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRefused where ``check_limits`` does."""
        check_limits(arm, self)

    def at(self, time: float) -> Reference:
        """Reference at ``time`` [s]; raises InvalidValue for NaN."""
        if isnan(time):
            raise invalid_time_error(time)
        found = self._motion(time)
        return found if self.effort is None else replace(found, effort=self.effort.at(time))

    def _motion(self, time: float) -> Reference:
        first, last = self.waypoints[0], self.waypoints[-1]
        if time < first.time and len(self.waypoints) > 1:
            return Reference.hold(first.q)
        if time >= last.time or len(self.waypoints) == 1:
            return self._end if self.stop is None or time < last.time else self.stop.at(time)
        k = bisect_right(self._times, time)
        start, spline = self.waypoints[k - 1], self._splines.get(k)
        if spline is None:
            spline = self._splines[k] = _spline(start, self.waypoints[k])
        return _read_only(*evaluate(spline, time - start.time))

    @cached_property
    def _splines(self) -> dict[int, Vector]:
        """Those that were asked for, by the waypoint they lead to."""
        return {}

    @cached_property
    def splines(self) -> tuple[Vector, Vector] | None:
        """Lengths (m,) [s] of all segments and their coefficients (degree + 1, m, nv).

        None where there is no segment, and where waypoints differ in what they give.
        """
        points = self.waypoints
        given = {(w.v is None, w.a is None) for w in points}
        if len(points) < 2 or len(given) > 1:
            return None
        T, q = np.diff(self._times), np.array([w.q for w in points])
        v, a = (_ends([getattr(w, name) for w in points]) for name in "va")
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return T, boundary_polynomial(T[:, None], (q[:-1], q[1:]), v, a)

    @cached_property
    def _times(self) -> tuple[float, ...]:
        return tuple(waypoint.time for waypoint in self.waypoints)

    @cached_property
    def _end(self) -> Reference:
        return Reference.hold(self.waypoints[-1].q)

    def near(self, arm: ArmModel, q: Vector, now: float) -> JointTrajectory:
        """This trajectory, continuous joints by whole turns nearest to ``q`` (nv,) at ``now`` [s].

        All waypoints are shifted alike: what turns several times still does.
        """
        turns = whole_turns(arm, self.at(now).q, q)
        if not turns.any():
            return self
        shifted = tuple(replace(w, q=as_readonly(w.q + turns)) for w in self.waypoints)
        stop = self.stop and replace(self.stop, q=as_readonly(self.stop.q + turns))
        return replace(self, waypoints=shifted, stop=stop)

    def starting_from(self, now: float, current_reference: Reference) -> JointTrajectory:
        """This trajectory entered at ``now`` from the ``current_reference`` reference, without a jump.

        Waypoints that are already past are dropped; the last one always stays.
        """
        ahead = [w for w in self.waypoints if w.time > now] or [self.waypoints[-1]]
        if ahead[0].time <= now:
            return JointTrajectory.hold(ahead[0].q, now)
        v, a = (None, None) if ahead[0].v is None else (current_reference.v, current_reference.a)
        start = Waypoint(now, current_reference.q, v, a if ahead[0].a is not None else None)
        effort = FeedForward.after(self.effort, now, current_reference.effort, ahead[0].time)
        return JointTrajectory((start, *ahead), effort, self.stop, self.origin)


def segment_spline(start: Waypoint, end: Waypoint, time: float) -> Reference:
    """Spline of the lowest order that meets what both ends give, at ``time``."""
    return _read_only(*evaluate(_spline(start, end), time - start.time))


def _spline(start: Waypoint, end: Waypoint) -> Vector:
    """Its coefficients in powers of time - start.time."""
    v = None if start.v is None or end.v is None else (start.v, end.v)
    a = None if start.a is None or end.a is None else (start.a, end.a)
    return boundary_polynomial(end.time - start.time, (start.q, end.q), v, a)


def _read_only(q: Vector, v: Vector, a: Vector) -> Reference:
    for array in (q, v, a):
        array.flags.writeable = False
    return Reference(q, v, a)


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What a trajectory may do, by the parameters of joint_trajectory_controller.

    ``end_in_motion``: allow_nonzero_velocity_at_trajectory_end. ``integrate_from``: with
    allow_integration_in_goal_trajectories the reference ``now`` [s].
    """

    end_in_motion: bool = False
    integrate_from: Reference | None = None
    now: float = 0.0


NO_OPTIONS = Options()
NO_POSITIONS = (
    "positions: none given; every waypoint needs them (velocities alone are integrated with the"
    " parameter allow_integration_in_goal_trajectories true)"
)


def parse_trajectory(
    arm: ArmModel,
    names: Sequence[str],
    times: Sequence[float],
    positions: Sequence[ArrayLike],
    velocities: Sequence[ArrayLike] = (),
    accelerations: Sequence[ArrayLike] = (),
    start: float = 0.0,
    efforts: Sequence[ArrayLike] = (),
    options: Options = NO_OPTIONS,
) -> JointTrajectory:
    """Checked trajectory, joints reordered as in ``arm``, times counted from ``start`` [s].

    One row per waypoint in ``positions``, ``velocities``, ``accelerations``, ``efforts`` (or none
    at all). Raises TrajectoryRefused naming the joint or waypoint, its value and what is allowed.
    """
    order = joint_order(arm, names)
    check_times(times, start)
    tables = (
        ("positions", positions), ("velocities", velocities), ("accelerations", accelerations),
        ("efforts", efforts),
    )  # fmt: skip
    q, v, a, effort = (table(name, rows, len(times), names) for name, rows in tables)
    if q is not None and a is not None and v is None:
        raise TrajectoryRejected("accelerations given without velocities")
    if not options.end_in_motion:
        check_end(v, names)
    q, v, a, effort = (None if x is None else x[:, order] for x in (q, v, a, effort))
    at = [start + time for time in times]
    if q is None:
        if options.integrate_from is None or (v is None and a is None):
            raise TrajectoryRejected(NO_POSITIONS)
        past = min(sum(time <= options.now for time in at), len(at) - 1)
        v, a, effort = (None if x is None else x[past:] for x in (v, a, effort))
        at = at[past:]
        q, v = integrated(options.now, options.integrate_from, at, v, a)
    given = ([None] * len(at) if x is None else as_readonly(x) for x in (q, v, a))
    points = tuple(Waypoint(*row) for row in zip(at, *given, strict=True))
    feed = None if effort is None else FeedForward(tuple(at), tuple(map(as_readonly, effort)))
    return JointTrajectory(points, feed, _stop(arm, points[-1]), start)


def _stop(arm: ArmModel, last: Waypoint) -> StopTrajectory | None:
    """How the joints come to rest after the last waypoint; None where they stand there."""
    if last.v is None or not last.v.any():
        return None
    end = Reference(last.q, last.v, as_readonly(np.zeros(arm.nv)))
    return StopTrajectory.of(arm, default_deceleration(arm)).starting_from(last.time, end)


def check_limits(arm: ArmModel, trajectory: JointTrajectory, start: Vector | None = None) -> None:
    """Hold every waypoint and the extremes of the splines between them against the arm's limits.

    The arm is at ``start`` (nv,), by default the first waypoint: being out of range there is no
    fault of the trajectory, going further out is. Raises TrajectoryRefused with joint, value,
    limit, time.
    """
    start = trajectory.waypoints[0].q if start is None else start
    low, high = np.minimum(arm.lower, start), np.maximum(arm.upper, start)
    fast = arm.velocity_limit
    q = np.array([waypoint.q for waypoint in trajectory.waypoints])
    for k in np.flatnonzero(
        ((q < low - LIMIT_TOLERANCE) | (q > high + LIMIT_TOLERANCE)).any(axis=1)
    ).tolist():
        waypoint = trajectory.waypoints[k]  # their own values say more than a spline's
        _check_positions(arm, np.full(arm.nv, waypoint.time), waypoint.q, low, high)
    for k in _doubtful(trajectory, (low, high), fast):
        before, after = trajectory.waypoints[k : k + 2]
        length = after.time - before.time
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            spline = _spline(before, after)
        if not np.isfinite(spline).all():
            raise TrajectoryRejected(
                f"from the waypoint at {before.time:.6g} s to the next one it is {length:.3g} s:"
                f" too short a time for a motion of finite numbers"
            )
        if not is_certainly_within(spline, length, low, high):
            for at, q in zip(*extremes(spline, length), strict=True):
                _check_positions(arm, before.time + at, q, low, high)
        rates = derivative(spline)
        if not is_certainly_within(rates, length, -fast, fast):
            for at, v in zip(*extremes(rates, length), strict=True):
                _check_velocities(arm, before.time + at, v)


def _doubtful(
    trajectory: JointTrajectory, bounds: tuple[Vector, Vector], fast: Vector
) -> Sequence[int]:
    """Segments that are not plainly within the limits."""
    found = trajectory.splines
    if found is None:
        return range(len(trajectory.waypoints) - 1)
    T, splines = found
    with np.errstate(over="ignore", invalid="ignore"):
        fine = are_certainly_within(splines, T, *bounds) & are_certainly_within(
            derivative(splines), T, -fast, fast
        )
    fine &= np.isfinite(splines).all(axis=(0, 2))
    return [int(k) for k in np.flatnonzero(~fine)]


def _check_positions(arm: ArmModel, times: Vector, q: Vector, low: Vector, high: Vector) -> None:
    for i in np.flatnonzero((q < low - LIMIT_TOLERANCE) | (q > high + LIMIT_TOLERANCE)):
        raise TrajectoryRejected(
            f"joint '{arm.joint_names[i]}': position {q[i]:.6g} rad at {times[i]:.3f} s is outside"
            f" [{low[i]:.6g}, {high[i]:.6g}]"
        )


def _check_velocities(arm: ArmModel, times: Vector, v: Vector) -> None:
    fast = arm.velocity_limit
    for i in np.flatnonzero(np.abs(v) > fast * (1 + 1e-6)):
        raise TrajectoryRejected(
            f"joint '{arm.joint_names[i]}': velocity {v[i]:.6g} rad/s at {times[i]:.3f} s exceeds"
            f" the limit {fast[i]:.6g}"
        )


def _ends(rows: Sequence[Vector | None]) -> RangeBounds | None:
    """Of each segment, from what waypoints give (n rows); None where they give nothing."""
    return None if rows[0] is None else (np.array(rows[:-1]), np.array(rows[1:]))
