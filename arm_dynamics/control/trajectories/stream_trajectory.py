"""Trajectories of streams: positions or velocities, started in motion without a jump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from arm_dynamics.control.trajectories.trajectory import FeedForward
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import default_deceleration

FADE = 0.12
"""Time in which the difference to the previous reference decays [s]."""
FADE_FACTOR = 2.0
"""Factor on FADE if that is too fast for the joint."""
SAMPLE_FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Points of a decaying difference at which its rates are checked against the limits."""
VELOCITY_TOLERANCE = 0.01
"""Fraction of the velocity limit by which a decaying difference may exceed it."""
LIMITED = 0.8
"""Fraction of the acceleration limit at which the present acceleration is that of a limited move
and does not decay."""


def joint_limits(arm: ArmModel) -> tuple[Limits, ...]:
    """Return the limits of each joint; the acceleration is ``default_deceleration``."""
    rows = zip(arm.velocity_limit, default_deceleration(arm), arm.lower, arm.upper, strict=True)
    return tuple(Limits(*map(float, row)) for row in rows)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Transition of a joint onto its track: a decaying difference, or a limited move."""

    begin: float
    until: float
    row: Row = ()
    move: Track | None = None

    @classmethod
    def of(cls, track: Track, now: float, present: Moment, limits: Limits, fade: float) -> Entry:
        """Return the transition at ``now`` [s] from ``present``."""
        there = track.at(now)
        e, w, b = (x - y for x, y in zip(present, there, strict=True))
        if abs(present.a) >= LIMITED * limits.acceleration:
            b = 0.0
        reserve = max(limits.velocity - abs(there.v), VELOCITY_TOLERANCE * limits.velocity)
        for length in (fade, FADE_FACTOR * fade):
            row = fading((e, w, b), length)
            samples = [moment(row, fraction * length) for fraction in SAMPLE_FRACTIONS]
            if all(abs(m.v) <= reserve and abs(m.a) <= limits.acceleration for m in samples):
                return cls(now, now + length, row)
        move, until = join(track, now, present, limits)
        return cls(now, until, (), move)

    def at(self, track: Track, time: float) -> Moment:
        """Return q, v, a at ``time`` [s]."""
        if time >= self.until:
            return track.at(time)
        if self.move is not None:
            return self.move.at(time)
        end, difference = track.at(time), moment(self.row, time - self.begin)
        return Moment(end.q + difference.q, end.v + difference.v, end.a + difference.a)


@dataclass(frozen=True, eq=False)
class StreamTrajectory:
    """One track per joint that ends at rest, with the transitions onto the tracks.

    Parameters
    ----------
    limits : tuple of Limits
        Limits of each joint.
    tracks : tuple of Track
        Motion of each joint.
    start, data_end : float
        Times of the first and the last waypoint [s]; the joints come to rest after the last one.
    moving : bool
        Whether the last waypoint has a velocity.
    effort : FeedForward, optional
        Efforts added to the controller's command.
    fade : float
        Duration of a transition [s].
    entries : tuple of Entry
        Transitions, set by ``starting_from``.

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
        """Time from which the joints rest [s]."""
        over = [track.times[-1] for track in self.tracks]
        entered = [entry.until for entry in self.entries]
        return max(self.data_end + self.fade, *over, *entered)

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s]; joints stop at their position limits."""
        if not self.entries:
            moments = [track.at(time) for track in self.tracks]
        else:
            moments = [
                _stopped_at_limits(entry.at(track, time), limits)
                for track, entry, limits in zip(self.tracks, self.entries, self.limits, strict=True)
            ]
        return reference_of(moments, None if self.effort is None else self.effort.at(time))

    def starting_from(self, now: float, current_reference: Reference) -> StreamTrajectory:
        """Return the same stream started at ``now`` [s] from a reference."""
        here = moments_of(current_reference)
        limits = tuple(map(reaching, self.limits, here))
        entries = [
            Entry.of(track, now, joint, limit, self.fade)
            for track, joint, limit in zip(self.tracks, here, limits, strict=True)
        ]
        current, until = current_reference.effort, now + self.fade
        effort = FeedForward.starting_from(self.effort, now, current, until)
        return replace(self, limits=limits, start=now, entries=tuple(entries), effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Accept: the waypoints were checked, and the transition satisfies the limits."""


def moments_of(reference: Reference) -> list[Moment]:
    """Return the reference of each joint."""
    columns = (x.tolist() for x in (reference.q, reference.v, reference.a))
    return [Moment(*row) for row in zip(*columns, strict=True)]


def reference_of(moments: Sequence[Moment], effort: Vector | None = None) -> Reference:
    """Return the reference of all joints."""
    q, v, a = (as_readonly(column) for column in zip(*moments, strict=True))
    return Reference(q, v, a, effort=effort)


def reaching(limits: Limits, present: Moment) -> Limits:
    """Return limits extended to the present position."""
    q = present.q
    return limits._replace(lower=min(limits.lower, q), upper=max(limits.upper, q))


def _stopped_at_limits(at: Moment, limits: Limits) -> Moment:
    if limits.lower <= at.q <= limits.upper:
        return at
    return Moment(min(max(at.q, limits.lower), limits.upper), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class VelocityStream:
    """v(t) is linear between ``rows`` at ``times`` [s], q = ∫ v dt from the current reference.

    The first row is reached after ``period`` [s], or later if the acceleration limit requires it.
    After ``data_end`` the joints come to rest. A joint that would leave its range stops at its
    position limit.

    Parameters
    ----------
    limits : tuple of Limits
        Limits of each joint.
    times : tuple of float
        Times of the waypoints [s].
    rows : tuple of tuples of float
        Joint velocities of each waypoint [rad/s or m/s].
    data_end : float
        Time until which the last velocities are valid [s].
    period : float
        Time between two messages [s].
    effort : FeedForward, optional
        Efforts added to the controller's command.
    tracks : tuple of Track
        Motion of each joint, set by ``starting_from``.

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
        """Time of the first waypoint, or at which the motion started [s]."""
        return self.tracks[0].times[0] if self.tracks else self.times[0]

    @cached_property
    def end(self) -> float:
        """Time from which the joints rest [s]."""
        return max([self.data_end, *(track.times[-1] for track in self.tracks)])

    @property
    def moving(self) -> bool:
        """Whether the last waypoint has a velocity."""
        return any(self.rows[-1])

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s], after ``starting_from``."""
        effort = None if self.effort is None else self.effort.at(time)
        return reference_of([track.at(time) for track in self.tracks], effort)

    def starting_from(self, now: float, current_reference: Reference) -> VelocityStream:
        """Return the same velocities integrated from a reference at ``now`` [s]."""
        columns = zip(*self.rows, strict=True)
        tracks = [
            self._integrated(now, joint, column, reaching(limits, joint))
            for joint, column, limits in zip(
                moments_of(current_reference), columns, self.limits, strict=True
            )
        ]
        current, until = current_reference.effort, now + self.period
        effort = FeedForward.starting_from(self.effort, now, current, until)
        return replace(self, tracks=tuple(tracks), effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Accept: velocities were checked, and joints stop at their position limits."""

    def _integrated(
        self, now: float, present: Moment, column: Sequence[float], limits: Limits
    ) -> Track:
        track, time, at = Track((), ()), now, present
        for due, v in zip(self.times, column, strict=True):
            if due <= now and due != self.times[-1]:
                continue
            length = max(due - time, abs(v - at.v) / limits.acceleration)
            if not track.times:
                length = max(length, self.period)
            time, at = _append_segment(track, time, at, (v - at.v) / length, length, limits)
        left = self.data_end - time
        if left > 0:
            time, at = _append_segment(track, time, at, 0.0, left, limits)
        brake(track, time, at, limits)
        return track


def _append_segment(
    track: Track, time: float, at: Moment, a: float, length: float, limits: Limits
) -> tuple[float, Moment]:
    """Append a motion of constant acceleration, or a stop if the joint could not stop after it."""
    q, v, _ = at
    end = Moment(q + (v + a / 2 * length) * length, v + a * length, a)
    stop_distance = end.v * abs(end.v) / (2 * limits.acceleration)
    rest = end.q + stop_distance
    if limits.lower <= min(end.q, rest) and max(end.q, rest) <= limits.upper:
        track.append(time, (q, v, a / 2))
        return time + length, end
    stop = brake(track, time, at, limits)
    return stop, Moment(track.rows[-1][0], 0.0, 0.0)
