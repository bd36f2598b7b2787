"""How well a frame can be moved: Yoshikawa's measure and the condition of its Jacobian.

Where a frame can be: points that it reaches, and how far a plane's points are from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_names
from arm_dynamics.core.arrays import Vector, as_readonly, check_int, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics import AXIS_NAMES, jacobian, pose
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    TOLERANCE,
    nearest_reachable,
    sampling_ranges,
)
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

POSITION = AXIS_NAMES[:3]
SINGULAR = 1e-12
"""Fraction of the largest singular value up to which another one counts as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Manipulability:
    """w = sqrt(det J Jᵀ) = Π σ_i, condition number σ_1 / σ_m, and σ (m,) falling.

    The condition is 1 where all directions are alike and inf where one is lost. In [m/rad]
    per axis of translation and [1] per axis of rotation: axes of both kinds mix units.
    """

    w: float
    condition: float
    singular_values: Vector


@requires_arm
def manipulability(
    arm: ArmModel, q: ArrayLike, axes: Sequence[str] = POSITION, frame: str | None = None
) -> Manipulability:
    """Of the rows ``axes`` of J(q) (6, nv): any of x, y, z, rx, ry, rz along the base's axes.

    ``frame`` is the tool's where none is named. With more axes than joints, or axes along which
    the arm never moves, w is 0: name those that it can move along, as x and z for an arm in a
    vertical plane. Raises InvalidValue for a wrong size, a non-finite entry, no or a repeated
    axis, UnknownName for an unknown axis or frame.
    Source: T. Yoshikawa, Int. J. Robotics Research 4(2) (1985), 3, eq. 11.
    """
    rows = _rows(axes)
    found = np.linalg.svd(jacobian(arm, q, frame)[rows], compute_uv=False)
    singular = np.zeros(len(rows))
    singular[: found.size] = np.where(found > SINGULAR * found[0], found, 0.0)
    least = float(singular[-1])
    condition = float(singular[0]) / least if least > 0 else float("inf")
    return Manipulability(float(np.prod(singular)), condition, as_readonly(singular))


def _rows(axes: Sequence[str]) -> list[int]:
    chosen = check_names("axes", axes)
    for axis in chosen:
        if axis not in AXIS_NAMES:
            raise UnknownName("axis", axis, AXIS_NAMES)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidValue(f"axes = {chosen}: one or more of {AXIS_NAMES} are expected, each once")
    return [AXIS_NAMES.index(axis) for axis in chosen]


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

    The point of column i, row j is origin + across[i] u + up[j] v; ``distance`` (len(up),
    len(across)) is 0 where the frame can be. u and v (3,) are unit vectors.
    """

    origin: Vector
    u: Vector
    v: Vector
    across: Vector
    up: Vector
    distance: Vector


@requires_arm
def reachable_points(
    arm: ArmModel, count: int = SAMPLES, seed: int = 0, frame: str | None = None
) -> Workspace:
    """``count`` postures spread evenly between the limits, and the frame's positions there.

    A joint without limits takes a whole turn. The same ``seed`` gives the same points.
    Raises InvalidValue for a count that is not positive, UnknownName for an unknown frame.
    """
    size = (check_int("count", count, lower=1), arm.nv)
    lower, upper = sampling_ranges(arm, np.zeros(arm.nv))
    q = np.random.default_rng(check_int("seed", seed)).uniform(lower, upper, size)
    return Workspace(as_readonly(q), as_readonly([pose(arm, row, frame)[0] for row in q]))


@requires_arm
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
    columns, rows = check_coordinates("across", across), check_coordinates("up", up)
    corner, right, high = check_coordinates("origin", origin, 3), _unit("u", u), _unit("v", v)
    random = np.random.default_rng(check_int("seed", seed))
    seeds = [int(n) for n in random.integers(2**32, size=check_int("starts", starts, lower=1))]
    clouds = [reachable_points(arm, CLOUD, n, frame) for n in seeds]
    targets = corner + rows[:, None, None] * high + columns[None, :, None] * right
    missed = [[_missed(arm, target, clouds, frame) for target in row] for row in targets]
    return WorkspaceSlice(corner, right, high, columns, rows, as_readonly(missed))


def _missed(arm: ArmModel, target: Vector, clouds: list[Workspace], frame: str | None) -> float:
    """Least distance [m] that is left by a descent from the nearest posture of each cloud."""
    least = np.inf
    for cloud in clouds:
        near = cloud.q[np.argmin(((cloud.points - target) ** 2).sum(axis=1))]
        found = nearest_reachable(arm, target, initial_guess=near, frame=frame, restarts=0)
        least = min(least, found.position_error)
        if least <= TOLERANCE:
            break
    return least


def _unit(name: str, value: ArrayLike) -> Vector:
    direction = check_vector(name, value, 3)
    if not direction.any():
        raise InvalidValue(f"{name} = {direction.tolist()}: a direction is expected")
    direction = direction / np.abs(direction).max()
    return as_readonly(direction / np.linalg.norm(direction))
