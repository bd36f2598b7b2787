"""Manipulability of a frame, its reachable points, and distances of a plane from its workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_names
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_int, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import AXIS_NAMES, jacobian, pose
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
"""Fraction of the largest singular value below which another one counts as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Manipulability:
    """Yoshikawa's w = sqrt(det J Jᵀ) = Π σ_i, condition number σ_1 / σ_m, and σ (m,), descending.

    The condition is 1 if all directions are equal and inf in a singular configuration. Units are
    [m/rad] for an axis of translation and [1] for one of rotation: axes of both kinds mix units.
    """

    w: float
    condition: float
    singular_values: Vector


@requires_arm
def manipulability(
    arm: ArmModel, q: ArrayLike, axes: Sequence[str] = POSITION, frame: str | None = None
) -> Manipulability:
    """Return the manipulability of a frame, from the rows ``axes`` of J(q).

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.
    q : ArrayLike
        Configuration (nv,) [rad or m].
    axes : sequence of str
        Rows: any of x, y, z, rx, ry, rz in base axes. With more axes than joints, or axes along
        which the arm cannot move, w is 0: for an arm in a vertical plane name x and z.
    frame : str, optional
        Name of a link; by default the tool frame.

    Returns
    -------
    Manipulability
        w, condition number and singular values.

    Raises
    ------
    InvalidValue
        For a wrong size, a non-finite entry, and for no or a repeated axis.
    UnknownName
        For an unknown axis or frame.

    References
    ----------
    T. Yoshikawa, Int. J. Robotics Research 4(2) (1985), 3, eq. 11.

    """
    names = check_names("axes", axes)
    for axis in names:
        if axis not in AXIS_NAMES:
            raise UnknownName("axis", axis, AXIS_NAMES)
    if not names or len(set(names)) < len(names):
        raise InvalidValue(f"axes = {names}; expected one or more of {AXIS_NAMES}, each once")
    rows = [AXIS_NAMES.index(axis) for axis in names]
    values = np.linalg.svd(jacobian(arm, q, frame)[rows], compute_uv=False)
    singular = np.zeros(len(rows))
    singular[: values.size] = np.where(values > SINGULAR * values[0], values, 0.0)
    least = float(singular[-1])
    condition = float(singular[0]) / least if least > 0 else float("inf")
    return Manipulability(float(np.prod(singular)), condition, as_readonly(singular))


SAMPLES = 20_000
STARTS = 8
"""Descents for a point out of reach: enough for five_dof to avoid all local minima."""
CLOUD = 500
"""Configurations of which the nearest starts a descent: few, so that all starts differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Configurations q (n, nv) [rad or m] within the limits, and the frame's points (n, 3) [m]."""

    q: Matrix
    points: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class WorkspaceSlice:
    """Distance [m] of a plane's points from the nearest reachable one, for a contour at 0.

    The point of column i, row j is origin + across[i] u + up[j] v; ``distance`` (len(up),
    len(across)) is 0 for reachable points. u and v (3,) are unit vectors.
    """

    origin: Vector
    u: Vector
    v: Vector
    across: Vector
    up: Vector
    distance: Matrix


@requires_arm
def reachable_points(
    arm: ArmModel, count: int = SAMPLES, seed: int = 0, frame: str | None = None
) -> Workspace:
    """Return configurations drawn uniformly between the limits, and the positions of a frame.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints. The range of a joint without limits is one turn.
    count : int
        Number n of configurations.
    seed : int
        Seed of the random numbers.
    frame : str, optional
        Name of a link; by default the tool frame.

    Returns
    -------
    Workspace
        q (n, nv) and points (n, 3) [m].

    Raises
    ------
    InvalidValue
        For a count below 1.
    UnknownName
        For an unknown frame.

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
    """Return min over q of |p(q) - (origin + across_i u + up_j v)| on a grid.

    By inverse kinematics: up to ``starts`` descents, each from the nearest of a cloud of reachable
    points, so that holes are detected as well as the outer boundary. A point out of reach takes a
    few milliseconds.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    across, up : ArrayLike
        Coordinates (n,) and (m,) [m] along u and v.
    origin : ArrayLike
        Point (3,) [m] of the plane, in the base frame.
    u, v : ArrayLike
        Directions (3,), normalized; by default the plane x, z.
    frame : str, optional
        Name of a link; by default the tool frame.
    starts : int
        Largest number of descents for a point.
    seed : int
        Seed of the clouds.

    Returns
    -------
    WorkspaceSlice
        Distances (m, n) [m], 0 for reachable points.

    Raises
    ------
    InvalidValue
        For a wrong size, a non-finite entry or a direction of length 0.
    UnknownName
        For an unknown frame.

    """
    columns, rows = check_coordinates("across", across), check_coordinates("up", up)
    corner, right, high = check_coordinates("origin", origin, 3), _unit("u", u), _unit("v", v)
    random = np.random.default_rng(check_int("seed", seed))
    seeds = [int(n) for n in random.integers(2**32, size=check_int("starts", starts, lower=1))]
    clouds = [reachable_points(arm, CLOUD, n, frame) for n in seeds]
    targets = corner + rows[:, None, None] * high + columns[None, :, None] * right
    distances = np.full((rows.size, columns.size), np.inf)
    for place in np.ndindex(distances.shape):
        for cloud in clouds:
            near = cloud.q[np.argmin(((cloud.points - targets[place]) ** 2).sum(axis=1))]
            solution = nearest_reachable(
                arm, targets[place], initial_guess=near, frame=frame, restarts=0
            )
            distances[place] = min(distances[place], solution.position_error)
            if distances[place] <= TOLERANCE:
                break
    return WorkspaceSlice(corner, right, high, columns, rows, as_readonly(distances))


def _unit(name: str, value: ArrayLike) -> Vector:
    direction = check_vector(name, value, 3)
    if not direction.any():
        raise InvalidValue(f"{name} = {direction.tolist()}; expected a direction other than 0")
    direction = direction / np.abs(direction).max()
    return as_readonly(direction / np.linalg.norm(direction))
