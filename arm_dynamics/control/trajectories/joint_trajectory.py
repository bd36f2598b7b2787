"""Joint trajectories: waypoints joined by splines, and the check against an arm's limits.

Interpolation follows joint_trajectory_controller.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

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
from arm_dynamics.control.trajectories.trajectory import FeedForward, StopTrajectory
from arm_dynamics.core.arrays import FloatArray, Vector, as_readonly
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

LIMIT_TOLERANCE = 1e-9
"""Position beyond a limit that counts as rounding [rad or m]."""


@dataclass(frozen=True, slots=True, eq=False)
class Waypoint:
    """Joint positions at a time, with velocities and accelerations if given.

    Parameters
    ----------
    time : float
        Time [s].
    q : (nv,) array
        Positions [rad or m].
    v, a : (nv,) arrays, optional
        Velocities and accelerations.

    """

    time: float
    q: Vector
    v: Vector | None = None
    a: Vector | None = None


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Waypoints joined by splines of the lowest order that meets what both ends give.

    Positions only: linear; with velocities: cubic; with accelerations: quintic. The joints rest
    before the first and after the last waypoint.

    Parameters
    ----------
    waypoints : tuple of Waypoint
        In the order of time.
    effort : FeedForward, optional
        Efforts added to the controller's command.
    stop : StopTrajectory, optional
        Motion to rest after a last waypoint with a velocity.
    origin : float, optional
        Time from which a client counts the times of the waypoints [s]; default: the first one.

    """

    waypoints: tuple[Waypoint, ...]
    effort: FeedForward | None = None
    stop: StopTrajectory | None = None
    origin: float | None = None

    @classmethod
    def hold(cls, q: ArrayLike, time: float = 0.0) -> JointTrajectory:
        """Return a trajectory that rests at ``q`` (nv,) [rad or m]."""
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
        """Time of the last waypoint [s], as of streams."""
        return self.end

    @property
    def moving(self) -> bool:
        """Whether the last waypoint has a velocity."""
        return self.stop is not None

    @property
    def knots(self) -> tuple[float, ...]:
        """Times of the waypoints [s]."""
        return self._times

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRejected as ``check_limits`` does."""
        check_limits(arm, self)

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s]; raises InvalidValue for NaN."""
        if isnan(time):
            raise invalid_time_error(time)
        motion = self._sample(time)
        return motion if self.effort is None else replace(motion, effort=self.effort.at(time))

    def _sample(self, time: float) -> Reference:
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
    def _splines(self) -> dict[int, FloatArray]:
        """Computed splines by the index of their end waypoint."""
        return {}

    @cached_property
    def splines(self) -> tuple[Vector, FloatArray] | None:
        """Durations (m,) [s] and coefficients (degree + 1, m, nv) of all segments.

        None without a segment, and if the waypoints differ in what they give.
        """
        points = self.waypoints
        derivatives = {(w.v is None, w.a is None) for w in points}
        if len(points) < 2 or len(derivatives) > 1:
            return None
        T, q = np.diff(self._times), np.array([w.q for w in points])
        rates: list[RangeBounds | None] = []
        for name in "va":
            values = [getattr(w, name) for w in points]
            ends = None if values[0] is None else (np.array(values[:-1]), np.array(values[1:]))
            rates.append(ends)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return T, boundary_polynomial(T[:, None], (q[:-1], q[1:]), *rates)

    @property
    def coefficients(self) -> Sequence[FloatArray]:
        """Coefficients (degree + 1, nv) of each segment; degrees differ as the waypoints do."""
        if self.splines is not None:
            return list(self.splines[1].transpose(1, 0, 2))
        return [_spline(*ends) for ends in pairwise(self.waypoints)]

    @cached_property
    def _times(self) -> tuple[float, ...]:
        return tuple(waypoint.time for waypoint in self.waypoints)

    @cached_property
    def _end(self) -> Reference:
        return Reference.hold(self.waypoints[-1].q)

    def near(self, arm: ArmModel, q: Vector, now: float) -> JointTrajectory:
        """Return this trajectory with continuous joints shifted by whole turns, nearest to ``q``.

        All waypoints are shifted alike: motions of several turns remain.

        Parameters
        ----------
        arm : ArmModel
            Arm whose continuous joints are shifted.
        q : (nv,) array
            Configuration [rad or m] at the time ``now`` [s].
        now : float
            Time of comparison [s].

        """
        turns = whole_turns(arm, self.at(now).q, q)
        if not turns.any():
            return self
        shifted = tuple(replace(w, q=as_readonly(w.q + turns)) for w in self.waypoints)
        stop = self.stop and replace(self.stop, q=as_readonly(self.stop.q + turns))
        return replace(self, waypoints=shifted, stop=stop)

    def starting_from(self, now: float, current_reference: Reference) -> JointTrajectory:
        """Return this trajectory started at ``now`` [s] from a reference, without a jump.

        Past waypoints are dropped; the last one always remains.
        """
        ahead = [w for w in self.waypoints if w.time > now] or [self.waypoints[-1]]
        if ahead[0].time <= now:
            return JointTrajectory.hold(ahead[0].q, now)
        current = current_reference
        v, a = (None, None) if ahead[0].v is None else (current.v, current.a)
        start = Waypoint(now, current.q, v, a if ahead[0].a is not None else None)
        effort = FeedForward.starting_from(self.effort, now, current.effort, ahead[0].time)
        return JointTrajectory((start, *ahead), effort, self.stop, self.origin)


def segment_spline(start: Waypoint, end: Waypoint, time: float) -> Reference:
    """Return the reference at ``time`` [s] on the spline between two waypoints."""
    return _read_only(*evaluate(_spline(start, end), time - start.time))


def _spline(start: Waypoint, end: Waypoint) -> FloatArray:
    """Return the coefficients in powers of time - start.time."""
    v = None if start.v is None or end.v is None else (start.v, end.v)
    a = None if start.a is None or end.a is None else (start.a, end.a)
    return boundary_polynomial(end.time - start.time, (start.q, end.q), v, a)


def _read_only(q: Vector, v: Vector, a: Vector) -> Reference:
    for array in (q, v, a):
        array.flags.writeable = False
    return Reference(q, v, a)


def check_limits(arm: ArmModel, trajectory: JointTrajectory, start: Vector | None = None) -> None:
    """Check the waypoints and the extremes of the splines against the arm's limits.

    An arm that starts outside its range may return; moving farther outside is rejected.

    Parameters
    ----------
    arm : ArmModel
        Arm with position and velocity limits.
    trajectory : JointTrajectory
        Trajectory to check.
    start : (nv,) array, optional
        Present configuration [rad or m]; default: the first waypoint.

    Raises
    ------
    TrajectoryRejected
        With joint, value, limit and time.

    """
    start = trajectory.waypoints[0].q if start is None else start
    low, high = np.minimum(arm.lower, start), np.maximum(arm.upper, start)
    limit = arm.velocity_limit
    q = np.array([waypoint.q for waypoint in trajectory.waypoints])
    outside = ((q < low - LIMIT_TOLERANCE) | (q > high + LIMIT_TOLERANCE)).any(axis=1)
    for k in np.flatnonzero(outside).tolist():
        waypoint = trajectory.waypoints[k]  # its value is clearer in a message than a spline's
        _require_positions(arm, np.full(arm.nv, waypoint.time), waypoint.q, low, high)
    for k in _uncertain_segments(trajectory, (low, high), limit):
        before, after = trajectory.waypoints[k : k + 2]
        length = after.time - before.time
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            spline = _spline(before, after)
        if not np.isfinite(spline).all():
            raise TrajectoryRejected(
                f"trajectory: time between the waypoint at {before.time:.6g} s and the next ="
                f" {length:.3g} s; expected a time long enough for finite velocities"
            )
        if not is_certainly_within(spline, length, low, high):
            for at, q in zip(*extremes(spline, length), strict=True):
                _require_positions(arm, before.time + at, q, low, high)
        rates = derivative(spline)
        if not is_certainly_within(rates, length, -limit, limit):
            for at, v in zip(*extremes(rates, length), strict=True):
                for i in np.flatnonzero(np.abs(v) > limit * (1 + 1e-6)):
                    raise TrajectoryRejected(
                        f"joint '{arm.joint_names[i]}': velocity = {v[i]:.6g} rad/s at"
                        f" {before.time + at[i]:.3f} s; expected within the limit {limit[i]:.6g}"
                    )


def _uncertain_segments(
    trajectory: JointTrajectory, bounds: tuple[Vector, Vector], velocity_limit: Vector
) -> Sequence[int]:
    """Return the segments that are not certainly within the limits."""
    splines = trajectory.splines
    if splines is None:
        return range(len(trajectory.waypoints) - 1)
    T, c = splines
    with np.errstate(over="ignore", invalid="ignore"):
        fine = are_certainly_within(c, T, *bounds)
        fine &= are_certainly_within(derivative(c), T, -velocity_limit, velocity_limit)
    fine &= np.isfinite(c).all(axis=(0, 2))
    return [int(k) for k in np.flatnonzero(~fine)]


def _require_positions(arm: ArmModel, times: Vector, q: Vector, low: Vector, high: Vector) -> None:
    for i in np.flatnonzero((q < low - LIMIT_TOLERANCE) | (q > high + LIMIT_TOLERANCE)):
        raise TrajectoryRejected(
            f"joint '{arm.joint_names[i]}': position = {q[i]:.6g} rad at {times[i]:.3f} s;"
            f" expected within [{low[i]:.6g}, {high[i]:.6g}]"
        )
