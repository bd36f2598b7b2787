"""A trajectory of a stream: entered in motion, without a jump, as fast as the limits allow.

Velocities without positions, integrated from where the reference is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from arm_dynamics.control.trajectories.feed_forward import FeedForward
from arm_dynamics.control.trajectories.limited_move import (
    Limits,
    Moment,
    Row,
    Track,
    brake,
    fading,
    join,
    moment,
)
from arm_dynamics.control.trajectories.stop_trajectory import default_deceleration
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel

FADE = 0.12
"""Time [s] in which the difference to the reference before it fades out."""
LONGER = 2.0
"""Times as long, where that is too fast for the joint."""
VELOCITY_FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Of a fading difference: where its rates are held against the limits."""
POSITION_TOLERANCE = 0.01
"""Part of the velocity limit by which a fading difference may exceed it."""
LIMITED = 0.8
"""Part of the acceleration limit from which on it is a limited move's, and does not fade."""


def joint_limits(arm: ArmModel) -> tuple[Limits, ...]:
    """Return what each joint may do; the acceleration is ``default_deceleration``."""
    rows = zip(arm.velocity_limit, default_deceleration(arm), arm.lower, arm.upper, strict=True)
    return tuple(Limits(*map(float, row)) for row in rows)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """How a joint comes onto its track: a difference that fades, else a limited move."""

    begin: float
    until: float
    row: Row = ()
    move: Track | None = None

    @classmethod
    def of(cls, track: Track, now: float, present: Moment, limits: Limits, fade: float) -> Entry:
        """Return the entry at ``now`` [s] from ``present``."""
        there = track.at(now)
        e, w, b = (x - y for x, y in zip(present, there, strict=True))
        if abs(present.a) >= LIMITED * limits.acceleration:
            b = 0.0
        for length in (fade, LONGER * fade):
            row = fading((e, w, b), length)
            if _keeps(row, length, there.v, limits):
                return cls(now, now + length, row)
        move, until = join(track, now, present, limits)
        return cls(now, until, (), move)

    def at(self, track: Track, time: float) -> Moment:
        """Return q, v, a at ``time`` [s]."""
        if time >= self.until:
            return track.at(time)
        if self.move is not None:
            return self.move.at(time)
        there, left = track.at(time), moment(self.row, time - self.begin)
        return Moment(there.q + left.q, there.v + left.v, there.a + left.a)


@dataclass(frozen=True, eq=False)
class StreamTrajectory:
    """One track for each joint, which ends at rest, and how the joints come onto them.

    ``start`` is the first waypoint's time [s] and ``data_end`` the last one's, until which the
    stream is followed; the joints come to rest after it. ``moving`` says whether they have to.
    """

    limits: tuple[Limits, ...]
    tracks: tuple[Track, ...]
    start: float
    data_end: float
    moving: bool
    effort: FeedForward | None = None
    fade: float = FADE
    entries: tuple[Entry, ...] = ()

    @cached_property
    def end(self) -> float:
        """Time [s] from which on the joints stand."""
        over = [track.times[-1] for track in self.tracks]
        entered = [entry.until for entry in self.entries]
        return max(self.data_end + self.fade, *over, *entered)

    def at(self, time: float) -> Reference:
        """Reference at ``time`` [s]; joints stop at their position limits."""
        if not self.entries:
            moments = [track.at(time) for track in self.tracks]
        else:
            moments = [
                _within(entry.at(track, time), limits)
                for track, entry, limits in zip(self.tracks, self.entries, self.limits, strict=True)
            ]
        return reference_of(moments, None if self.effort is None else self.effort.at(time))

    def starting_from(self, now: float, current_reference: Reference) -> StreamTrajectory:
        """The same stream entered at ``now`` from the ``current_reference`` reference."""
        here = moments_of(current_reference)
        limits = tuple(map(reaching, self.limits, here))
        entries = [
            Entry.of(track, now, joint, limit, self.fade)
            for track, joint, limit in zip(self.tracks, here, limits, strict=True)
        ]
        effort = FeedForward.after(self.effort, now, current_reference.effort, now + self.fade)
        return replace(self, limits=limits, start=now, entries=tuple(entries), effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Nothing to reject: its waypoints were checked, and the entry keeps the limits."""


def _keeps(row: Row, length: float, v: float, limits: Limits) -> bool:
    """Whether a fading difference on a motion at ``v`` keeps velocity and acceleration."""
    room = max(limits.velocity - abs(v), POSITION_TOLERANCE * limits.velocity)
    found = [moment(row, share * length) for share in VELOCITY_FRACTIONS]
    return all(abs(m.v) <= room and abs(m.a) <= limits.acceleration for m in found)


def moments_of(reference: Reference) -> list[Moment]:
    """Return the reference of each joint."""
    columns = (x.tolist() for x in (reference.q, reference.v, reference.a))
    return [Moment(*row) for row in zip(*columns, strict=True)]


def reaching(limits: Limits, present: Moment) -> Limits:
    """Return limits that hold where a joint is now, be it beyond its position limits."""
    q = present.q
    return limits._replace(lower=min(limits.lower, q), upper=max(limits.upper, q))


def _within(found: Moment, limits: Limits) -> Moment:
    if limits.lower <= found.q <= limits.upper:
        return found
    return Moment(min(max(found.q, limits.lower), limits.upper), 0.0, 0.0)


def reference_of(moments: Sequence[Moment], effort: Vector | None = None) -> Reference:
    """Return the reference of all joints."""
    q, v, a = (as_readonly(column) for column in zip(*moments, strict=True))
    return Reference(q, v, a, effort=effort)


@dataclass(frozen=True, eq=False)
class VelocityStream:
    """v(t) is linear between ``rows`` (joints of each waypoint) at ``times`` [s], q = ∫ v dt.

    From the present velocity to the first row it takes ``period`` [s] at least, and as long as
    the acceleration limit asks for. After ``data_end`` [s] the joints come to rest; a joint that
    would leave its position range comes to rest at the limit.
    """

    limits: tuple[Limits, ...]
    times: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    data_end: float
    period: float
    effort: FeedForward | None = None
    tracks: tuple[Track, ...] = ()

    @property
    def start(self) -> float:
        """Time [s] of the first waypoint, or of the entry."""
        return self.tracks[0].times[0] if self.tracks else self.times[0]

    @cached_property
    def end(self) -> float:
        """Time [s] from which on the joints stand."""
        return max([self.data_end, *(track.times[-1] for track in self.tracks)])

    @property
    def moving(self) -> bool:
        """Whether the last waypoint is passed in motion."""
        return any(self.rows[-1])

    def at(self, time: float) -> Reference:
        """Reference at ``time`` [s], once it was entered."""
        effort = None if self.effort is None else self.effort.at(time)
        return reference_of([track.at(time) for track in self.tracks], effort)

    def starting_from(self, now: float, current_reference: Reference) -> VelocityStream:
        """The same velocities from the ``current_reference`` reference on."""
        here = moments_of(current_reference)
        columns = zip(*self.rows, strict=True)
        tracks = [
            self._track(now, joint, column, reaching(limits, joint))
            for joint, column, limits in zip(here, columns, self.limits, strict=True)
        ]
        effort = FeedForward.after(self.effort, now, current_reference.effort, now + self.period)
        return replace(self, tracks=tuple(tracks), effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Nothing to reject: velocities were checked, and joints stop at their limits."""

    def _track(self, now: float, present: Moment, column: Sequence[float], limits: Limits) -> Track:
        track, time, moment = Track((), ()), now, present
        for due, v in zip(self.times, column, strict=True):
            if due <= now and due != self.times[-1]:
                continue
            length = max(due - time, abs(v - moment.v) / limits.acceleration)
            if not track.times:
                length = max(length, self.period)
            a = (v - moment.v) / length
            time, moment = _added(track, time, moment, a, length, limits)
        left = self.data_end - time
        if left > 0:
            time, moment = _added(track, time, moment, 0.0, left, limits)
        brake(track, time, moment, limits)
        return track


def _added(
    track: Track, time: float, moment: Moment, a: float, length: float, limits: Limits
) -> tuple[float, Moment]:
    """Append a motion of constant acceleration, as far as the joint can still stop in its range."""
    q, v, _ = moment
    end = Moment(q + (v + a / 2 * length) * length, v + a * length, a)
    way = end.v * abs(end.v) / (2 * limits.acceleration)
    if limits.lower <= min(end.q, end.q + way) and max(end.q, end.q + way) <= limits.upper:
        track.append(time, (q, v, a / 2))
        return time + length, end
    stop = brake(track, time, moment, limits)
    return stop, Moment(track.rows[-1][0], 0.0, 0.0)
