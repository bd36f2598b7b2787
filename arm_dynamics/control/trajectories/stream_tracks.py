"""From the waypoints of a stream to tracks of its joints that end at rest.

Single waypoints are fitted by a parabola through the last of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.limited_move import Limits, Track, brake, settle
from arm_dynamics.core.arrays import Matrix, Vector

WINDOW = 0.18
"""Duration of the waypoints that are fitted [s]; at least PERIODS of the stream."""
PERIODS = 6
MAX_WAYPOINTS = 64
"""Maximum number of fitted waypoints."""
MAX_LINE_WAYPOINTS = 4
"""Waypoints up to which a straight line is fitted: their curvature would be noise."""
VELOCITY_TIME = 0.03
"""Time that weighs velocities against positions [s]."""
MAX_VELOCITY_RATIO = 2.0
"""Velocity between waypoints, over the velocity limit, beyond which a new stream begins."""
REST_VELOCITY = 1e-6
"""Velocity [rad/s or m/s] that counts as rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A waypoint of a stream: ``time`` [s], q (nv,), and v (nv,) if given."""

    time: float
    q: Vector
    v: Vector | None


class StreamFit:
    """Least squares of q(t) = q0 + v0 τ + a0 τ²/2, τ = t - t_newest, over the last waypoints.

    Exact for a stream of constant acceleration at any times; otherwise an average over early and
    late messages.

    Parameters
    ----------
    velocity_limit : (nv,) array
        Velocity limits [rad/s or m/s].

    """

    def __init__(self, velocity_limit: Vector) -> None:
        self._velocity_limit = velocity_limit
        self._samples: deque[Sample] = deque(maxlen=MAX_WAYPOINTS)

    def restart(self) -> None:
        """Discard the waypoints."""
        self._samples.clear()

    def add(self, sample: Sample, period: float) -> None:
        """Add a waypoint of a stream with the given ``period`` [s].

        A waypoint within half a period of the previous one replaces it. A leap, or a change between
        waypoints with and without velocities, begins a new stream.
        """
        samples = self._samples
        if samples and (samples[-1].v is None) != (sample.v is None):
            samples.clear()
        while samples and sample.time - samples[-1].time < period / 2:
            samples.pop()
        if samples:
            distance = np.abs(sample.q - samples[-1].q)
            elapsed = max(sample.time - samples[-1].time, period)
            if (distance > MAX_VELOCITY_RATIO * self._velocity_limit * elapsed).any():
                samples.clear()
        samples.append(sample)
        oldest = sample.time - max(WINDOW, PERIODS * period) - 1e-9
        while samples[0].time < oldest:
            samples.popleft()

    def least_squares(self) -> Matrix:
        """Return q0, v0 and a0 / 2 (3, nv) at the newest waypoint."""
        samples, newest = self._samples, self._samples[-1]
        times = np.array([sample.time for sample in samples]) - newest.time
        degree = 2 if len(samples) > MAX_LINE_WAYPOINTS else min(len(samples) - 1, 1)
        if newest.v is not None:
            degree = max(degree, 1)
        length, powers = max(-float(times[0]), VELOCITY_TIME), np.arange(degree + 1)
        x = times[:, None] / length
        columns, rows = x**powers, np.array([sample.q for sample in samples])
        if newest.v is not None:
            derivatives = powers * x ** np.maximum(powers - 1, 0)
            columns = np.vstack([columns, VELOCITY_TIME / length * derivatives])
            velocities = [VELOCITY_TIME * np.asarray(sample.v) for sample in samples]
            rows = np.vstack([rows, velocities])
        coefficients = np.zeros((3, rows.shape[1]))
        solution = np.linalg.solve(columns.T @ columns, columns.T @ rows)
        coefficients[: degree + 1] = solution / length ** powers[:, None]
        return coefficients


def smooth(waypoints: Sequence[Waypoint]) -> tuple[Waypoint, ...]:
    """Return positions-only waypoints with the velocities of parabolas through three of them.

    v_k = (h_k-1 d_k + h_k d_k-1) / (h_k-1 + h_k), d = Δq / h; at the ends of the nearest three.
    Exact for a motion of constant acceleration.
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
    """Return tracks through waypoints, and whether the last one moves.

    Before the first waypoint they are its tangent. The last velocity continues for ``coast`` [s];
    then the joints come to rest, with ``to_rest`` at the position of the last waypoint.
    """
    first, last = waypoints[0], waypoints[-1]
    times, rows = [w.time for w in waypoints[:-1]], JointTrajectory(tuple(waypoints)).coefficients
    v = first.v
    if v is None:
        v = rows[0][1] if rows else np.zeros_like(first.q)
    begin = np.array([first.q, v])
    end_v = np.zeros_like(last.q) if last.v is None else last.v
    tracks = []
    for i in range(len(limits)):
        segments = [tuple(begin[:, i].tolist()), *(tuple(row[:, i].tolist()) for row in rows)]
        track = Track([first.time - 1e-9, *times], segments)
        track.append(last.time, (float(last.q[i]), float(end_v[i])))
        tracks.append(track)
    return ended(tracks, limits, last, coast, to_rest=to_rest)


def parabola_tracks(
    coefficients: Matrix, waypoint: Waypoint, limits: Sequence[Limits], coast: float
) -> tuple[tuple[Track, ...], bool]:
    """Return the tracks of a parabola (3, nv) at a stream's newest waypoint.

    They rest at that waypoint, or come to rest after it if it has velocities.
    """
    tracks = []
    for row, joint in zip(coefficients.T.tolist(), limits, strict=True):
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
    """Append the motion to rest, ``coast`` [s] after the last waypoint."""
    moving, end = False, last.time + coast
    for track, joint, goal in zip(tracks, limits, last.q.tolist(), strict=True):
        there = track.at(end)
        moving = moving or abs(there.v) > REST_VELOCITY
        if to_rest:
            settle(track, end, there, goal, joint)
        else:
            brake(track, end, there, joint)
    return tuple(tracks), moving
