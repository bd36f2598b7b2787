"""From waypoints of a stream to the tracks of its joints, which end at rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.trajectories.limited_move import Limits, brake, settle
from arm_dynamics.trajectories.pieces import Track

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
