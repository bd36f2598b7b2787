"""Velocities without positions, integrated from where the reference is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import Reference
from arm_dynamics.trajectories.feed_forward import FeedForward
from arm_dynamics.trajectories.limited_move import Limits, brake
from arm_dynamics.trajectories.pieces import Moment, Track
from arm_dynamics.trajectories.stream_trajectory import moments_of, reaching, reference_of


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

    def after(self, now: float, present: Reference) -> VelocityStream:
        """The same velocities from the ``present`` reference on."""
        here = moments_of(present)
        columns = zip(*self.rows, strict=True)
        tracks = [
            self._track(now, joint, column, reaching(limits, joint))
            for joint, column, limits in zip(here, columns, self.limits, strict=True)
        ]
        effort = FeedForward.after(self.effort, now, present.effort, now + self.period)
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
