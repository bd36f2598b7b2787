"""Inverse kinematics of any frame: compiled damped least squares within the joints' limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.errors import Unreachable
from arm_dynamics.dynamics.kinematics.chain import chain_of
from arm_dynamics.dynamics.kinematics.pose_target import PoseTarget
from arm_dynamics.dynamics.rigid_body import pinocchio_data
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

TOLERANCE = 1e-9
"""Distance [m] and angle [rad] from a target that count as reached."""
RESTARTS = 100
"""Of 1000 random whole poses of a Panda, a UR5 and a Puma 560 none needs more than 35."""
STALLED = 1e-15
"""Share of its cost by which a step must lower it to be worth another one."""
MAX_SEEDS = 2**32
"""Restarts at most; seeds count modulo this."""


@dataclass(frozen=True, slots=True, eq=False)
class IkSolution:
    """Joint positions q (nv,), and the pose that the frame has there: (3,) [m], (3, 3).

    ``position_error`` [m] and ``orientation_error`` [rad] are the residual along the axes that count;
    ``iterations`` are those of all descents, ``restarts`` counts their starts after the first.
    """

    q: Vector
    position: Vector
    rotation: Vector
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
    """q within the limits that brings a frame, the tool's by default, to a pose.

    What ``nearest_reachable`` finds, whose arguments these are, where it misses by no more than
    ``tolerance`` [m] and [rad]. Raises also Unreachable, naming the target, the distance missed
    and the nearest point found.
    """
    target = PoseTarget.of(position, rotation, weights, weights_frame)
    found = _search(arm, target, initial_guess, frame, tolerance, restarts, seed)
    if found.position_error > tolerance or found.orientation_error > tolerance:
        who = f"arm '{arm.name}', frame '{frame or arm.tool_frame}': {target}"
        near, q = found.position.tolist(), found.q.tolist()
        raise Unreachable(who, found.position_error, found.orientation_error, near, q)
    return found


@requires_arm
def nearest_reachable(
    arm: ArmModel,
    position: ArrayLike,
    rotation: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    along: str = "base",
    frame: str | None = None,
    tolerance: float = TOLERANCE,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> IkSolution:
    """q with lower <= q <= upper of the least Σ (w_i e_i)², e = (p* - p, log(R* Rᵀ)) (6,).

    ``position`` (3,) [m] and ``rotation`` (3, 3) of the frame in the base frame; the position
    alone counts without a rotation. ``weights`` w (6,) [1/m, 1/rad], x y z then rotation, along
    the axes of the "base" or of the "target": 0 leaves one free, such as the turn about an
    approach axis.

    A descent within the limits starts at ``start`` (nv,) [rad or m] (default: the initial pose).
    If it ends in a local minimum, another one from there passes local minima, regardless of the
    limits at first; then come up to ``restarts`` configurations spread over the joint ranges by
    ``seed``. The search ends within ``tolerance`` [m] and [rad]; else the best of all is returned,
    and its distance is an upper bound. Revolute joints end within half a turn of ``start`` where
    their limits allow it. Joints that do not move the frame stay at ``start``.
    The first call of a process loads compiled code; on a new machine it compiles for seconds.

    Raises InvalidValue for a wrong size, a non-finite entry, a matrix that is no rotation or a
    negative weight, and UnknownName for an unknown frame.
    Sources: T. Sugihara, IEEE Trans. Robotics 27 (2011), 984, for damped least squares where a
    target may be out of reach; ``pose_descent`` for the steps.
    """
    target = PoseTarget.of(position, rotation, weights, along)
    return _search(arm, target, start, frame, tolerance, restarts, seed)


def solve_from(
    arm: ArmModel, target: PoseTarget, start: Vector, tolerance: float, stalled: float
) -> IkSolution:
    """What one descent of the tool from ``start`` (nv,) finds, for a caller along a path.

    It ends where a step lowers the cost by no more than the share ``stalled``. Nothing is checked.
    """
    return _solve(arm, target, start, None, tolerance, stalled, 0, 0, True)


def sampling_ranges(arm: ArmModel, centre: Vector) -> tuple[Vector, Vector]:
    """Limits (nv,), and half a turn to each side of ``centre`` (nv,) where there are none."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, centre - np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, centre + np.pi)
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
    first = arm.configuration("initial") if start is None else check_vector("start", start, arm.nv)
    limit = check_float("tolerance", tolerance, above=0)
    most, own = check_int("restarts", restarts), check_int("seed", seed)
    most = min(most, MAX_SEEDS)
    return _solve(arm, target, first, frame, limit, STALLED, most, own % MAX_SEEDS, False)


def _solve(
    arm: ArmModel,
    target: PoseTarget,
    start: Vector,
    frame: str | None,
    tolerance: float,
    stalled: float,
    restarts: int,
    seed: int,
    once: bool,
) -> IkSolution:
    chain = chain_of(arm, frame)
    whole_arm = chain.joints.size == start.size
    found, missed, turned, iterations, used = _compiled()(
        chain.placements, chain.slides, chain.lower, chain.upper, chain.strides,
        target.position, target.rotation, target.weights, target.axes,
        start if whole_arm else start[chain.joints], tolerance, stalled, restarts, seed, once,
    )  # fmt: skip
    q = found
    if not whole_arm:
        q = np.clip(start, arm.lower, arm.upper)
        q[chain.joints] = found
    scratch = pinocchio_data(arm)
    pin.forwardKinematics(arm.model, scratch, q)
    placed = pin.updateFramePlacement(arm.model, scratch, chain.number)
    return IkSolution(
        as_readonly(q), as_readonly(placed.translation), as_readonly(placed.rotation), missed, turned,
        iterations, used,
    )  # fmt: skip


@cache
def _compiled() -> Callable[..., Any]:
    """``search_pose``; what does not use inverse kinematics neither imports nor compiles it."""
    from arm_dynamics.dynamics.kinematics.pose_descent import search_pose  # noqa: PLC0415

    return search_pose
