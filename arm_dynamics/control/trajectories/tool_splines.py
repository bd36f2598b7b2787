"""Cartesian trajectories through many poses: within limits, or at given times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline, CubicSpline, PPoly

from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.polynomials import evaluate
from arm_dynamics.control.trajectories.profiles import Profile
from arm_dynamics.control.trajectories.tool_paths import Line, ToolLimits, ToolPath
from arm_dynamics.control.trajectories.transition_blend import (
    angular_velocities,
    rotation_and_derivatives,
    rotation_vector_derivatives,
)
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates, rotation_matrix

PoseLike = tuple[ArrayLike, ArrayLike]
"""Position (3,) [m] and rotation (3, 3)."""
Pose = tuple[Vector, Matrix]
CORNER = 0.35
"""Change of direction between two straight segments at which the tool stops [rad]."""
POSE_TOLERANCE = 1e-6
"""Distance [m] and angle [rad] below which two poses are equal."""
MAX_POSES = 2000
"""Maximum number of poses of one trajectory."""
SAMPLES = 8
"""Points between two poses at which a spline's velocity is sampled."""


@dataclass(frozen=True, slots=True, eq=False)
class SplinePath:
    """p(s) and R(s) = exp([φ(s)]×) R0 from a spline of (p, φ), 6 columns, over s in [0, 1]."""

    spline: PPoly
    rotation: Matrix

    def at(self, s: float) -> tuple[Vector, Matrix, Vector, Vector]:
        """Return position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        knots, segments = self.spline.x, self.spline.c
        i = min(max(bisect_right(knots, s) - 1, 0), segments.shape[1] - 1)
        x, first, second = evaluate(segments[::-1, i], s - knots[i])
        turn, rate, change = rotation_and_derivatives(x[3:], first[3:], second[3:])
        rates, changes = np.append(first[:3], rate), np.append(second[:3], change)
        return x[:3], turn @ self.rotation, rates, changes

    def profile(self, limits: ToolLimits) -> Profile | None:
        """Return the fastest trapezoidal s(t) within the limits; None for a path of length 0."""
        count = SAMPLES * (len(self.spline.x) - 1)
        x, first, second = (self.spline(np.linspace(0.0, 1.0, count + 1), k) for k in range(3))
        angular = angular_velocities(x[:, 3:], first[:, 3:])
        length, angle, curvature_bound = (
            float(np.linalg.norm(x, axis=1).max()) for x in (first[:, :3], angular, second[:, :3])
        )
        return limits.fastest(length, angle, curvature_bound)


def spline_through(
    before: CartesianTrajectory, poses: Sequence[PoseLike], limits: ToolLimits
) -> CartesianTrajectory:
    """Append a motion through poses within limits, at rest at the last one.

    The first segment is straight. Poses whose directions change by less than CORNER are joined by
    one spline, a straight line for two; the tool stops at a sharper corner.

    Parameters
    ----------
    before : CartesianTrajectory
        Trajectory to append to.
    poses : Sequence[PoseLike]
        Positions (3,) [m] and rotations (3, 3), at most MAX_POSES.
    limits : ToolLimits
        Velocity and acceleration limits.

    Returns
    -------
    CartesianTrajectory

    Raises
    ------
    TrajectoryRejected
        Without a pose, or for more than MAX_POSES.
    InvalidValue
        For an invalid pose.

    """
    if not 0 < len(poses) <= MAX_POSES:
        raise TrajectoryRejected(f"path: {len(poses)} poses; expected 1 to {MAX_POSES}")
    trajectory = before
    for run in _split_at_stops(
        [_end_pose(before), *(_check_pose(i, pose) for i, pose in enumerate(poses))]
    ):
        path = _path_through(run, limits)
        profile = path.profile(limits) if isinstance(path, SplinePath) else limits.profile(path)
        if profile is not None:
            trajectory = replace(trajectory, segments=(*trajectory.segments, (path, profile)))
    return trajectory


def _path_through(run: list[Pose], limits: ToolLimits) -> SplinePath | ToolPath:
    """Return one path through two poses or more, without a stop."""
    if len(run) == 2:
        (start, before), (end, after) = run
        return ToolPath(Line(start, end - start), before, rotation_vector(before, after))
    durations = [
        max(
            float(np.linalg.norm(b[0] - a[0])) / limits.max_linear_velocity,
            float(np.linalg.norm(rotation_vector(a[1], b[1]))) / limits.max_angular_velocity,
        )
        for a, b in pairwise(run)
    ]
    times = np.append(0.0, np.cumsum(durations))
    spline = CubicSpline(times / times[-1], _columns(run), bc_type="natural")
    return SplinePath(spline, run[0][1])


def timed_spline(
    before: CartesianTrajectory,
    times: Sequence[float],
    poses: Sequence[PoseLike],
    twists: Sequence[ArrayLike] | None = None,
) -> CartesianTrajectory:
    """Append a motion through poses at given times, at rest at the last one.

    With ``twists`` the segments are cubic; without them the spline has a continuous acceleration.

    Parameters
    ----------
    before : CartesianTrajectory
        Trajectory to append to; its end is the present pose.
    times : Sequence[float]
        Times of the poses [s] after the start of ``before``. A first time above 0 is the duration
        of the motion from the present pose.
    poses : Sequence[PoseLike]
        Positions (3,) [m] and rotations (3, 3), at most MAX_POSES.
    twists : Sequence of (6,) arrays, optional
        Velocities [m/s, rad/s] at the poses.

    Returns
    -------
    CartesianTrajectory

    Raises
    ------
    TrajectoryRejected
        For times that do not increase, lengths that differ, and a last twist that is not 0.
    InvalidValue
        For an invalid pose or twist.

    """
    _check_times(times, len(poses), twists)
    run = [_check_pose(i, pose) for i, pose in enumerate(poses)]
    rates = None if twists is None else [check_vector("twist", twist, 6) for twist in twists]
    t = list(times)
    if t[0] > 0:
        run, t = [_end_pose(before), *run], [0.0, *t]
        rates = None if rates is None else [np.zeros(6), *rates]
    if len(t) == 1:
        return replace(before, position=run[0][0], rotation=run[0][1])
    fractions, x = np.array(t) / t[-1], _columns(run)
    if rates is None:
        spline = CubicSpline(fractions, x, bc_type="clamped")
    else:
        zero, rows = np.zeros(3), zip(x, rates, strict=True)
        turns = [rotation_vector_derivatives(row[3:], w[3:], zero)[0] for row, w in rows]
        change = np.hstack([np.array(rates)[:, :3], np.array(turns)])  # (p', φ') [1/s]
        spline = CubicHermiteSpline(fractions, x, t[-1] * change)
    even = Profile((0.0,), ((0.0, 1.0, 0.0, 0.0, 0.0, 0.0),), t[-1], t[-1])
    start = replace(before, position=run[0][0], rotation=run[0][1])
    return replace(start, segments=((SplinePath(spline, run[0][1]), even),))


def _check_times(times: Sequence[float], count: int, twists: Sequence[ArrayLike] | None) -> None:
    if not 0 < count <= MAX_POSES:
        raise TrajectoryRejected(f"trajectory: {count} points; expected 1 to {MAX_POSES}")
    rows = count if twists is None else len(twists)
    if not len(times) == rows == count:
        raise TrajectoryRejected(
            f"trajectory: {len(times)} times and {rows} twists; expected {count}, one per pose"
        )
    previous = -np.inf
    for i, time in enumerate(times):
        if not 0 <= time < np.inf or time <= previous:
            raise TrajectoryRejected(
                f"point {i}: time = {time} s; expected finite, not negative and strictly increasing"
                f" times (previous: {previous})"
            )
        previous = time
    if twists is not None and np.any(last := check_vector("twist", twists[-1], 6)):
        raise TrajectoryRejected(f"twist of the last point = {last.tolist()}; expected 0")


def _end_pose(before: CartesianTrajectory) -> Pose:
    at = before.at(before.end)
    return at.position, at.rotation


def _check_pose(i: int, pose: PoseLike) -> Pose:
    position = check_coordinates(f"pose {i}: position", pose[0], 3)
    return position, rotation_matrix(f"pose {i}: rotation", pose[1])


def _split_at_stops(poses: list[Pose]) -> list[list[Pose]]:
    """Return the poses between two stops, both included, without repeated poses."""
    runs: list[list[Pose]] = [[poses[0]]]
    direction: Vector | None = None
    for pose in poses[1:]:
        here = runs[-1][-1]
        displacement = pose[0] - here[0]
        length = float(np.linalg.norm(displacement))
        angle = np.linalg.norm(rotation_vector(here[1], pose[1]))
        if length <= POSE_TOLERANCE and angle <= POSE_TOLERANCE:
            continue
        heading = displacement / length if length > POSE_TOLERANCE else None
        if heading is None or direction is None:  # None: a rotation in place
            corner = (heading is None) != (direction is None)
        else:
            corner = bool(direction @ heading < np.cos(CORNER))
        if len(runs[-1]) > 1 and corner:
            runs.append([here])
        runs[-1].append(pose)
        direction = heading
    return [run for run in runs if len(run) > 1]


def _columns(run: list[Pose]) -> Matrix:
    """Return (p, φ) (n, 6) of the poses, with φ relative to the first one and without a jump."""
    rows = [np.append(run[0][0], np.zeros(3))]
    for position, rotation in run[1:]:
        phi = _nearest_equivalent(rotation_vector(run[0][1], rotation), rows[-1][3:])
        rows.append(np.append(position, phi))
    return as_readonly(rows)


def _nearest_equivalent(phi: Vector, before: Vector) -> Vector:
    """Return the vector of the same rotation, of length |φ| + 2πk, nearest to ``before``."""
    angle = float(np.linalg.norm(phi))
    far = float(np.linalg.norm(before))
    if max(angle, far) == 0.0:
        return phi
    axis = phi / angle if angle > 0.0 else before / far
    turns = round((float(before @ axis) - angle) / (2 * np.pi))
    return axis * (angle + 2 * np.pi * turns)
