"""Ways of the tool through many poses: at a speed of its own choice, or by a timetable."""

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
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates, rotation_matrix

PoseLike = tuple[ArrayLike, ArrayLike]
"""Position (3,) [m] and rotation (3, 3)."""
CORNER = 0.35
"""Change of direction [rad] between two straight pieces at which the tool stops."""
POSE_TOLERANCE = 1e-6
"""Distance [m] and angle [rad] below which two poses are one."""
MAX_POSES = 2000
"""Poses of one path or timetable."""
SAMPLES = 8
"""Points between two poses at which a spline's speed is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class SplinePath:
    """p(s) and R(s) = exp([φ(s)]×) R0 from a spline of (p, φ) (6 columns) over s in [0, 1]."""

    spline: PPoly
    rotation: Vector

    def at(self, s: float) -> tuple[Vector, Vector, Vector, Vector]:
        """Position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        knots, pieces = self.spline.x, self.spline.c
        i = min(max(bisect_right(knots, s) - 1, 0), pieces.shape[1] - 1)
        x, first, second = evaluate(pieces[::-1, i], s - knots[i])
        turn, rate, change = rotation_and_derivatives(x[3:], first[3:], second[3:])
        twist, bend = np.append(first[:3], rate), np.append(second[:3], change)
        return x[:3], turn @ self.rotation, twist, bend

    def profile(self, limits: ToolLimits) -> Profile | None:
        """The fastest trapezoidal s(t) within the limits; None without a way."""
        count = SAMPLES * (len(self.spline.x) - 1)
        x, first, second = (self.spline(np.linspace(0.0, 1.0, count + 1), k) for k in range(3))
        turns = angular_velocities(x[:, 3:], first[:, 3:])
        length, angle, bend = (
            float(np.linalg.norm(x, axis=1).max()) for x in (first[:, :3], turns, second[:, :3])
        )
        return limits.fastest(length, angle, bend)


def spline_through(
    before: CartesianTrajectory, poses: Sequence[PoseLike], limits: ToolLimits
) -> CartesianTrajectory:
    """Go on through ``poses`` and stop at the last one, within ``limits``.

    Straight to the first one. Poses whose directions change by less than CORNER each are joined by
    one spline, which is a straight line for two; at a sharper corner the tool stops.
    Raises TrajectoryRefused where there is no pose, or more than MOST_POSES; InvalidValue for
    what is none.
    """
    if not 0 < len(poses) <= MAX_POSES:
        raise TrajectoryRejected(
            f"a path of {len(poses)} poses: at least one is expected, at most {MAX_POSES}"
        )
    trajectory = before
    for run in _runs([_end(before), *(_checked(i, pose) for i, pose in enumerate(poses))]):
        path = _joined(run, limits)
        profile = path.profile(limits) if isinstance(path, SplinePath) else limits.profile(path)
        if profile is not None:
            trajectory = replace(trajectory, segments=(*trajectory.segments, (path, profile)))
    return trajectory


def _joined(run: list[tuple[Vector, Vector]], limits: ToolLimits) -> SplinePath | ToolPath:
    """One way through two poses or more, without a stop."""
    if len(run) == 2:
        (start, before), (end, after) = run
        return ToolPath(Line(start, end - start), before, rotation_vector(before, after))
    times = np.append(0.0, np.cumsum([_span(a, b, limits) for a, b in pairwise(run)]))
    spline = CubicSpline(times / times[-1], _columns(run), bc_type="natural")
    return SplinePath(spline, run[0][1])


def timed_spline(
    before: CartesianTrajectory,
    times: Sequence[float],
    poses: Sequence[PoseLike],
    twists: Sequence[ArrayLike] | None = None,
) -> CartesianTrajectory:
    """Go on through ``poses`` at ``times`` [s] after the start of ``before``, to rest at the last.

    By cubics with the velocities ``twists`` (6,) [m/s, rad/s] there; without them by the spline
    whose acceleration does not jump. A first time above 0 is that of the way from where the tool
    is. Raises TrajectoryRefused for times that do not increase, lengths that differ and a motion
    that goes on at the end; InvalidValue for what is no pose or twist.
    """
    _check_times(times, len(poses), twists)
    run = [_checked(i, pose) for i, pose in enumerate(poses)]
    told = None if twists is None else [check_vector("twist", twist, 6) for twist in twists]
    t = list(times)
    if t[0] > 0:
        run, t = [_end(before), *run], [0.0, *t]
        told = None if told is None else [np.zeros(6), *told]
    if len(t) == 1:
        return replace(before, position=run[0][0], rotation=run[0][1])
    shares, x = np.array(t) / t[-1], _columns(run)
    spline = (
        CubicSpline(shares, x, bc_type="clamped")
        if told is None
        else CubicHermiteSpline(shares, x, t[-1] * _rates(x, told))
    )
    even = Profile((0.0,), ((0.0, 1.0, 0.0, 0.0, 0.0, 0.0),), t[-1], t[-1])
    start = replace(before, position=run[0][0], rotation=run[0][1])
    return replace(start, segments=((SplinePath(spline, run[0][1]), even),))


def _check_times(times: Sequence[float], count: int, twists: Sequence[ArrayLike] | None) -> None:
    if not 0 < count <= MAX_POSES:
        raise TrajectoryRejected(
            f"a trajectory of {count} points: at least one is expected, at most {MAX_POSES}"
        )
    if len(times) != count or (twists is not None and len(twists) != count):
        raise TrajectoryRejected(
            f"{len(times)} times and {len(twists or ())} twists, {count} poses"
        )
    previous = -np.inf
    for i, time in enumerate(times):
        if not 0 <= time < np.inf or time <= previous:
            raise TrajectoryRejected(
                f"point {i}: time {time} s; finite, not negative and strictly increasing times are"
                f" expected (previous: {previous})"
            )
        previous = time
    if twists is not None and np.any(last := check_vector("twist", twists[-1], 6)):
        raise TrajectoryRejected(f"velocity {last.tolist()} at the last point; 0 expected")


def _end(before: CartesianTrajectory) -> tuple[Vector, Vector]:
    at = before.at(before.end)
    return at.position, at.rotation


def _checked(i: int, pose: PoseLike) -> tuple[Vector, Vector]:
    name = f"pose {i}"
    return check_coordinates(f"{name}: position", pose[0], 3), rotation_matrix(
        f"{name}: rotation", pose[1]
    )


def _runs(poses: list[tuple[Vector, Vector]]) -> list[list[tuple[Vector, Vector]]]:
    """Poses between two stops, both included; those that repeat the one before are left out."""
    runs, direction = [[poses[0]]], None
    for pose in poses[1:]:
        here = runs[-1][-1]
        way = pose[0] - here[0]
        length = float(np.linalg.norm(way))
        if (
            length <= POSE_TOLERANCE
            and np.linalg.norm(rotation_vector(here[1], pose[1])) <= POSE_TOLERANCE
        ):
            continue
        heading = way / length if length > POSE_TOLERANCE else None
        if len(runs[-1]) > 1 and _corner(direction, heading):
            runs.append([here])
        runs[-1].append(pose)
        direction = heading
    return [run for run in runs if len(run) > 1]


def _corner(before: Vector | None, after: Vector | None) -> bool:
    """Whether the direction changes too much; None is a turn on the spot."""
    if before is None or after is None:
        return (before is None) != (after is None)
    return bool(before @ after < np.cos(CORNER))


def _span(a: tuple[Vector, Vector], b: tuple[Vector, Vector], limits: ToolLimits) -> float:
    """Time [s] from one pose to the next at the speed limits."""
    length, angle = np.linalg.norm(b[0] - a[0]), np.linalg.norm(rotation_vector(a[1], b[1]))
    return float(max(length / limits.max_linear_velocity, angle / limits.max_angular_velocity))


def _columns(run: list[tuple[Vector, Vector]]) -> Vector:
    """(p, φ) (n, 6) of the poses, φ from the first one's rotation on without a jump."""
    rows = [np.append(run[0][0], np.zeros(3))]
    for position, rotation in run[1:]:
        phi = _nearest(rotation_vector(run[0][1], rotation), rows[-1][3:])
        rows.append(np.append(position, phi))
    return as_readonly(rows)


def _nearest(phi: Vector, before: Vector) -> Vector:
    """Of the vectors of one rotation, |φ| + 2πk long, the one next to ``before``."""
    angle = float(np.linalg.norm(phi))
    far = float(np.linalg.norm(before))
    if max(angle, far) == 0.0:
        return phi
    axis = phi / angle if angle > 0.0 else before / far
    turns = round((float(before @ axis) - angle) / (2 * np.pi))
    return axis * (angle + 2 * np.pi * turns)


def _rates(x: Vector, twists: Sequence[Vector]) -> Vector:
    """(p', φ') (n, 6) [1/s] of poses that move with ``twists``."""
    none = np.zeros(3)
    turns = [
        rotation_vector_derivatives(row[3:], w[3:], none)[0]
        for row, w in zip(x, twists, strict=True)
    ]
    return np.hstack([np.array(twists)[:, :3], np.array(turns)])
