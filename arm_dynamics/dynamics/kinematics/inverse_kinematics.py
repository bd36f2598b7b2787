"""Inverse kinematics of any frame: compiled damped least squares within the joint limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import (
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
    check_vector,
)
from arm_dynamics.core.errors import Unreachable
from arm_dynamics.dynamics.kinematics.chain import chain_of
from arm_dynamics.dynamics.kinematics.pose_target import PoseTarget
from arm_dynamics.dynamics.rigid_body import pinocchio_data
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

TOLERANCE = 1e-9
"""Distance [m] and angle [rad] from a target that count as reached."""
RESTARTS = 100
"""Of 1000 random full poses of a Panda, a UR5 and a Puma 560 none requires more than 35."""
STALLED = 1e-15
"""Relative decrease of the cost below which a descent ends."""
MAX_SEEDS = 2**32
"""Largest number of restarts; seeds are taken modulo this."""


class SearchOptions(NamedTuple):
    """Options of ``search_pose``, in its order: when a descent ends, and how many there are."""

    tolerance: float
    stalled: float
    restarts: int = 0
    seed: int = 0
    single_descent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IkSolution:
    """Joint positions q (nv,), and the pose of the frame there: (3,) [m], (3, 3).

    ``position_error`` [m] and ``orientation_error`` [rad] are the residuals along the axes that
    count; ``iterations`` are those of all descents, ``restarts`` counts their starts after the
    first.
    """

    q: Vector
    position: Vector
    rotation: Matrix
    position_error: float
    orientation_error: float
    iterations: int
    restarts: int


@requires_arm
def inverse_kinematics(
    arm: ArmModel,
    position: ArrayLike,
    rotation: ArrayLike | None = None,
    *,
    initial_guess: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weights_frame: str = "base",
    frame: str | None = None,
    tolerance: float = TOLERANCE,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> IkSolution:
    """Return joint positions within the limits that bring a frame to a pose.

    The parameters are those of ``nearest_reachable``; the frame is the tool by default.

    Returns
    -------
    IkSolution
        Its errors are at most ``tolerance``.

    Raises
    ------
    Unreachable
        If no solution within ``tolerance`` is found; with the target, the position error, the
        orientation error and the nearest point.
    InvalidValue, UnknownName
        As ``nearest_reachable``.

    """
    target = PoseTarget.of(position, rotation, weights, weights_frame)
    solution = _search(arm, target, initial_guess, frame, tolerance, restarts, seed)
    if solution.position_error > tolerance or solution.orientation_error > tolerance:
        name = f"arm '{arm.name}', frame '{frame or arm.tool_frame}': {target}"
        near, q = solution.position.tolist(), solution.q.tolist()
        raise Unreachable(name, solution.position_error, solution.orientation_error, near, q)
    return solution


@requires_arm
def nearest_reachable(
    arm: ArmModel,
    position: ArrayLike,
    rotation: ArrayLike | None = None,
    *,
    initial_guess: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weights_frame: str = "base",
    frame: str | None = None,
    tolerance: float = TOLERANCE,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> IkSolution:
    """Return joint positions whose frame is nearest to a pose.

    argmin Σ (w_i e_i)² over lower <= q <= upper, e = (p* - p, log(R* Rᵀ)) (6,).

    A descent within the limits starts at ``initial_guess``. If it ends in a local minimum, another
    one from there passes local minima and ignores the limits at first; then up to ``restarts``
    configurations spread over the joint ranges follow. The search ends within ``tolerance``; else
    the best of all is returned, and its distance is an upper bound. Revolute joints end within
    half a turn of ``initial_guess`` where their limits allow it. Joints that do not move the frame
    stay at ``initial_guess``. The first call of a process loads compiled code; on a new machine
    the compilation takes seconds.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    position : ArrayLike, shape (3,)
        Desired position p* of the frame in the base frame [m].
    rotation : ArrayLike, shape (3, 3), optional
        Desired rotation R*; only the position counts without it.
    initial_guess : ArrayLike, shape (nv,), optional
        First configuration [rad or m] (default: the initial configuration of the arm).
    weights : ArrayLike, shape (6,), optional
        w [1/m, 1/rad], x y z then rotation; 0 leaves an axis free, such as the rotation about an
        approach axis.
    weights_frame : str
        Axes of the weights: "base" or "target".
    frame : str, optional
        Name of the frame (default: the tool frame).
    tolerance : float
        Residual [m] and [rad] at which the search ends.
    restarts : int
        Largest number of starts after the first.
    seed : int
        Seed of the configurations of the restarts.

    Returns
    -------
    IkSolution
        The best configuration.

    Raises
    ------
    InvalidValue
        For a wrong size, a non-finite entry, a matrix that is not a rotation, or a negative
        weight.
    UnknownName
        For an unknown frame.

    References
    ----------
    T. Sugihara, IEEE Trans. Robotics 27 (2011), 984: damped least squares for targets that may be
    out of reach; ``pose_descent`` for the steps.

    """
    target = PoseTarget.of(position, rotation, weights, weights_frame)
    return _search(arm, target, initial_guess, frame, tolerance, restarts, seed)


def solve_from(
    arm: ArmModel, target: PoseTarget, start: Vector, tolerance: float, stalled: float
) -> IkSolution:
    """Return the result of one descent of the tool from ``start`` (nv,), for points of a path.

    The descent ends when a step lowers the cost by at most the fraction ``stalled``. Arguments are
    not checked.
    """
    return _solve(arm, target, start, None, SearchOptions(tolerance, stalled, single_descent=True))


def sampling_ranges(arm: ArmModel, center: Vector) -> tuple[Vector, Vector]:
    """Return the limits (nv,), or half a turn to each side of ``center`` (nv,) without limits."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, center - np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, center + np.pi)
    return lower, upper


def _search(
    arm: ArmModel,
    target: PoseTarget,
    start: ArrayLike | None,
    frame: str | None,
    tolerance: float,
    restarts: int,
    seed: int,
) -> IkSolution:
    first = (
        arm.configuration("initial")
        if start is None
        else check_vector("initial_guess", start, arm.nv)
    )
    limit = check_float("tolerance", tolerance, above=0)
    count, index = check_int("restarts", restarts), check_int("seed", seed)
    count = min(count, MAX_SEEDS)
    options = SearchOptions(limit, STALLED, count, index % MAX_SEEDS)
    return _solve(arm, target, first, frame, options)


@cache
def _search_pose() -> Callable[..., Any]:
    """Return the compiled search; programs without inverse kinematics do not import it."""
    from arm_dynamics.dynamics.kinematics.pose_descent import search_pose  # noqa: PLC0415

    return search_pose


def _solve(
    arm: ArmModel, target: PoseTarget, start: Vector, frame: str | None, options: SearchOptions
) -> IkSolution:
    chain = chain_of(arm, frame)
    whole_arm = chain.joints.size == start.size
    angles, position_error, orientation_error, iterations, used = _search_pose()(
        (chain.placements, chain.slides, chain.lower, chain.upper, chain.strides),
        (target.position, target.rotation, target.weights, target.axes),
        start if whole_arm else start[chain.joints], tuple(options),
    )  # fmt: skip
    q = angles
    if not whole_arm:
        q = np.clip(start, arm.lower, arm.upper)
        q[chain.joints] = angles
    scratch = pinocchio_data(arm)
    pin.forwardKinematics(arm.model, scratch, q)
    placed = pin.updateFramePlacement(arm.model, scratch, chain.number)
    return IkSolution(
        as_readonly(q), as_readonly(placed.translation), as_readonly(placed.rotation),
        position_error, orientation_error, iterations, used,
    )  # fmt: skip
