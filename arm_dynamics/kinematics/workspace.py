"""Where a frame can be: points that it reaches, and how far a plane's points are from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector, whole
from arm_dynamics.errors import InvalidValue
from arm_dynamics.kinematics import pose
from arm_dynamics.kinematics.inverse import TOLERANCE, joint_ranges, nearest_reachable
from arm_dynamics.kinematics.pose_target import place
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm

SAMPLES = 20_000
STARTS = 8
"""Descents for a point out of reach: as many as five_dof needs to miss none by a local minimum."""
CLOUD = 500
"""Postures of which the nearest starts a descent: few, so that each start is another one."""


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Postures q (n, nv) within the limits, and where the frame is there: points (n, 3) [m]."""

    q: Vector
    points: Vector


@dataclass(frozen=True, slots=True, eq=False)
class WorkspaceSlice:
    """Distance [m] of a plane's points from the nearest reachable one, for a contour at 0.

    The point of column i, row j is origin + across[i] u + up[j] v; ``missed`` (len(up),
    len(across)) is 0 where the frame can be. u and v (3,) are unit vectors.
    """

    origin: Vector
    u: Vector
    v: Vector
    across: Vector
    up: Vector
    missed: Vector


@takes_arm
def reachable_points(
    arm: ArmModel, count: int = SAMPLES, seed: int = 0, frame: str | None = None
) -> Workspace:
    """``count`` postures spread evenly between the limits, and the frame's positions there.

    A joint without limits takes a whole turn. The same ``seed`` gives the same points.
    Raises InvalidValue for a count that is not positive, UnknownName for an unknown frame.
    """
    size = (whole("count", count, lower=1), arm.nv)
    lower, upper = joint_ranges(arm, np.zeros(arm.nv))
    q = np.random.default_rng(whole("seed", seed)).uniform(lower, upper, size)
    return Workspace(frozen(q), frozen([pose(arm, row, frame)[0] for row in q]))


@takes_arm
def workspace_slice(
    arm: ArmModel,
    across: ArrayLike,
    up: ArrayLike,
    *,
    origin: ArrayLike = (0.0, 0.0, 0.0),
    u: ArrayLike = (1.0, 0.0, 0.0),
    v: ArrayLike = (0.0, 0.0, 1.0),
    frame: str | None = None,
    starts: int = STARTS,
    seed: int = 0,
) -> WorkspaceSlice:
    """min over q of |p(q) - (origin + across_i u + up_j v)| on a grid, by inverse kinematics.

    ``across`` (n,), ``up`` (m,) and ``origin`` (3,) [m]; u and v (3,) are made unit vectors. By
    default the plane x, z through the base's origin. Up to ``starts`` descents, each from the
    nearest of a cloud of reachable points, so that holes are found as well as the outer edge: a
    few milliseconds for a point out of reach. Raises InvalidValue for a wrong size, a non-finite
    entry or a direction of length 0, UnknownName for an unknown frame.
    """
    columns, rows = place("across", across), place("up", up)
    corner, right, high = place("origin", origin, 3), _unit("u", u), _unit("v", v)
    random = np.random.default_rng(whole("seed", seed))
    seeds = [int(n) for n in random.integers(2**32, size=whole("starts", starts, lower=1))]
    clouds = [reachable_points(arm, CLOUD, n, frame) for n in seeds]
    targets = corner + rows[:, None, None] * high + columns[None, :, None] * right
    missed = [[_missed(arm, target, clouds, frame) for target in row] for row in targets]
    return WorkspaceSlice(corner, right, high, columns, rows, frozen(missed))


def _missed(arm: ArmModel, target: Vector, clouds: list[Workspace], frame: str | None) -> float:
    """Least distance [m] that is left by a descent from the nearest posture of each cloud."""
    least = np.inf
    for cloud in clouds:
        near = cloud.q[np.argmin(((cloud.points - target) ** 2).sum(axis=1))]
        found = nearest_reachable(arm, target, start=near, frame=frame, restarts=0)
        least = min(least, found.missed)
        if least <= TOLERANCE:
            break
    return least


def _unit(name: str, value: ArrayLike) -> Vector:
    direction = vector(name, value, 3)
    if not direction.any():
        raise InvalidValue(f"{name} = {direction.tolist()}: a direction is expected")
    direction = direction / np.abs(direction).max()
    return frozen(direction / np.linalg.norm(direction))
