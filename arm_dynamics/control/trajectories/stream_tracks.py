"""Where a stream of waypoints is and how fast: a parabola through the last of them.

From waypoints of a stream to the tracks of its joints, which end at rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.limited_move import Limits, Track, brake, settle
from arm_dynamics.core.arrays import Vector

WINDOW = 0.18
"""Time [s] of the waypoints that count; at least PERIODS of the stream."""
PERIODS = 6
MAX_WAYPOINTS = 64
"""Waypoints that count at most."""
STRAIGHT = 4
"""Waypoints up to which the stream counts as a straight line: their parabola would be noise."""
SCALE = 0.03
"""Time [s] by which velocities are weighed against positions."""
LEAP = 2.0
"""Velocity between two waypoints, in velocity limits, beyond which a stream begins again."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A waypoint of a stream: due at ``time`` [s], q (nv,), and v (nv,) where given."""

    time: float
    q: Vector
    v: Vector | None


class StreamFit:
    """Least squares of q(t) = q0 + v0 τ + a0 τ²/2, τ = t - t_newest, over the last waypoints.

    Exact for a stream that is such a motion, whatever its times are; otherwise the mean of what
    late and early messages make of it.
    """

    def __init__(self, top: Vector) -> None:
        self._top = top
        self._samples: deque[Sample] = deque(maxlen=MAX_WAYPOINTS)

    def restart(self) -> None:
        """Forget the waypoints."""
        self._samples.clear()

    def add(self, sample: Sample, period: float) -> None:
        """Count one more waypoint of a stream that has one each ``period`` [s].

        One that is due no later than half a period after the one before replaces it. A leap, and
        a change between waypoints with and without velocities, begin the stream again.
        """
        samples = self._samples
        if samples and (samples[-1].v is None) != (sample.v is None):
            samples.clear()
        while samples and sample.time - samples[-1].time < period / 2:
            samples.pop()
        if samples:
            way = np.abs(sample.q - samples[-1].q)
            if (way > LEAP * self._top * max(sample.time - samples[-1].time, period)).any():
                samples.clear()
        samples.append(sample)
        oldest = sample.time - max(WINDOW, PERIODS * period) - 1e-9
        while samples[0].time < oldest:
            samples.popleft()

    def fit(self) -> Vector:
        """Return q0, v0 and a0 / 2 (3, nv) at the newest waypoint."""
        samples, newest = self._samples, self._samples[-1]
        times = np.array([sample.time for sample in samples]) - newest.time
        degree = 2 if len(samples) > STRAIGHT else min(len(samples) - 1, 1)
        if newest.v is not None:
            degree = max(degree, 1)
        length, powers = max(-float(times[0]), SCALE), np.arange(degree + 1)
        x = times[:, None] / length
        columns, rows = x**powers, np.array([sample.q for sample in samples])
        if newest.v is not None:
            slopes = powers * x ** np.maximum(powers - 1, 0)
            columns = np.vstack([columns, SCALE / length * slopes])
            rows = np.vstack([rows, [SCALE * np.asarray(sample.v) for sample in samples]])
        fit = np.zeros((3, rows.shape[1]))
        found = np.linalg.solve(columns.T @ columns, columns.T @ rows)
        fit[: degree + 1] = found / length ** powers[:, None]
        return fit


STILL = 1e-6
"""Velocity [rad/s or m/s] that counts as rest."""


def smooth(waypoints: Sequence[Waypoint]) -> tuple[Waypoint, ...]:
    """Return positions-only waypoints with the velocities of parabolas through three of them.

    v_k = (h_k-1 d_k + h_k d_k-1) / (h_k-1 + h_k), d = Δq / h; at the ends the parabola's of the
    nearest three. Exact for a motion of constant acceleration.
    """
    times = np.array([waypoint.time for waypoint in waypoints])
    q = np.array([waypoint.q for waypoint in waypoints])
    h = np.diff(times)[:, None]
    d = np.diff(q, axis=0) / h
    v = np.empty_like(q)
    if len(waypoints) == 2:
        v[:] = d
    else:
        v[1:-1] = (h[:-1] * d[1:] + h[1:] * d[:-1]) / (h[:-1] + h[1:])
        v[0], v[-1] = 2 * d[0] - v[1], 2 * d[-1] - v[-2]
    return tuple(Waypoint(w.time, w.q, row) for w, row in zip(waypoints, v, strict=True))


def through(
    waypoints: Sequence[Waypoint], limits: Sequence[Limits], coast: float, *, to_rest: bool
) -> tuple[tuple[Track, ...], bool]:
    """Return tracks through waypoints that all give the same, and whether the last one moves.

    Before the first one they are its tangent. After the last one the velocity stays for
    ``coast`` [s]; the joints then come to rest, ``to_rest`` at the last waypoint's position.
    """
    first, last = waypoints[0], waypoints[-1]
    found = JointTrajectory(tuple(waypoints)).splines
    times, rows = [w.time for w in waypoints[:-1]], np.zeros((0, 2, first.q.size))
    if found is not None:
        rows = found[1].transpose(1, 0, 2)
    begin = np.array([first.q, _velocity(first, rows[:1, 1])])
    tracks = []
    for i in range(len(limits)):
        pieces = [tuple(begin[:, i].tolist()), *map(tuple, rows[:, :, i].tolist())]
        track = Track([first.time - 1e-9, *times], pieces)
        track.append(last.time, (float(last.q[i]), _speed(last, i)))
        tracks.append(track)
    return ended(tracks, limits, last, coast, to_rest=to_rest)


def _velocity(waypoint: Waypoint, row: Vector) -> Vector:
    if waypoint.v is not None:
        return waypoint.v
    return row[0] if len(row) else np.zeros_like(waypoint.q)


def _speed(waypoint: Waypoint, joint: int) -> float:
    return 0.0 if waypoint.v is None else float(waypoint.v[joint])


def fitted(
    fit: Vector, waypoint: Waypoint, limits: Sequence[Limits], coast: float
) -> tuple[tuple[Track, ...], bool]:
    """Return the tracks of a parabola (3, nv) at a stream's newest waypoint.

    They rest at that waypoint, or come to rest where it gives velocities.
    """
    tracks = []
    for row, joint in zip(fit.T.tolist(), limits, strict=True):
        q, v, a = row
        v = min(max(v, -joint.velocity), joint.velocity)
        tracks.append(Track([waypoint.time], [(q, v, a)]))
    return ended(tracks, limits, waypoint, coast, to_rest=waypoint.v is None)


def ended(
    tracks: Sequence[Track],
    limits: Sequence[Limits],
    last: Waypoint,
    coast: float,
    *,
    to_rest: bool,
) -> tuple[tuple[Track, ...], bool]:
    """Append how the joints come to rest ``coast`` [s] after the last waypoint."""
    moving, end = False, last.time + coast
    for track, joint, goal in zip(tracks, limits, last.q.tolist(), strict=True):
        there = track.at(end)
        moving = moving or abs(there.v) > STILL
        if to_rest:
            settle(track, end, there, goal, joint)
        else:
            brake(track, end, there, joint)
    return tuple(tracks), moving
