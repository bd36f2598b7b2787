"""Inverse kinematics of any frame: damped least squares within the joints' limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector, whole
from arm_dynamics.errors import Unreachable
from arm_dynamics.kinematics.least_squares import STALLED, least_squares
from arm_dynamics.kinematics.pose_problem import PoseProblem
from arm_dynamics.kinematics.pose_target import PoseTarget
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm

TOLERANCE = 1e-9
"""Distance [m] and angle [rad] from a target that count as reached."""
RESTARTS = 100
"""Of 300 random whole poses of a Puma 560 none needed more than 21, all but 3 of the 64 with every
joint at a limit no more than 67."""
ITERATIONS = 100
"""Steps of one descent."""
DIGITS = 10
"""Decimals of the residual to which two descents that end alike are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Joint positions q (nv,), and the pose that the frame has there: (3,) [m], (3, 3).

    ``missed`` [m] and ``turned`` [rad] are the residual along the axes that count;
    ``iterations`` of all descents, and how many ``restarts`` there were.
    """

    q: Vector
    position: Vector
    rotation: Vector
    missed: float
    turned: float
    iterations: int
    restarts: int


@takes_arm
def inverse_kinematics(
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
) -> Solution:
    """q within the limits that brings a frame, the tool's by default, to a pose.

    What ``nearest_reachable`` finds, whose arguments these are, where it misses by no more than
    ``tolerance`` [m] and [rad]. Raises also Unreachable, naming the target, the distance missed
    and the nearest point found.
    """
    target = PoseTarget.of(position, rotation, weights, along)
    problem = PoseProblem.of(arm, target, frame, tolerance)
    found = _search(problem, start, restarts, seed)
    if max(found.missed, found.turned) > tolerance:
        who = f"arm '{arm.name}', frame '{frame or arm.tool_frame}': {target}"
        near, q = found.position.tolist(), found.q.tolist()
        raise Unreachable(who, found.missed, found.turned, near, q)
    return found


def descend(problem: PoseProblem, start: Vector, stalled: float = STALLED) -> Solution:
    """What one descent from ``start`` (nv,) finds, for a caller that asks along a way.

    It ends where a step lowers the cost by no more than the share ``stalled``.
    """
    end = least_squares(
        problem.residual, problem.slope, start, (problem.arm.lower, problem.arm.upper),
        problem.reached, ITERATIONS, stalled,
    )  # fmt: skip
    return _solution(problem, end.x, end.iterations, 0)


@takes_arm
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
) -> Solution:
    """q with lower <= q <= upper of the least Σ (w_i e_i)², e = (p* - p, log(R* Rᵀ)) (6,).

    ``position`` (3,) [m] and ``rotation`` (3, 3) of the frame in the base frame; the position
    alone counts without a rotation. ``weights`` w (6,) [1/m, 1/rad], x y z then rotation, along
    the axes of the "base" or of the "target": 0 leaves one free, such as the turn about an
    approach axis. Descends from ``start`` (nv,), brought within the limits (the initial pose
    without), then from up to ``restarts`` points drawn with ``seed``, until one comes within
    ``tolerance`` [m] and [rad]; else the best of all. Continuous joints end within half a turn of
    ``start``.
    Each finds a local minimum: what is missed is an upper bound.

    Raises InvalidValue for a wrong size, a non-finite entry, a matrix that is no rotation or a
    negative weight, and UnknownName for an unknown frame.
    Sources: T. Sugihara, IEEE Trans. Robotics 27 (2011), 984, for damped least squares where a
    target may be out of reach; ``least_squares`` for the step.
    """
    target = PoseTarget.of(position, rotation, weights, along)
    return _search(PoseProblem.of(arm, target, frame, tolerance), start, restarts, seed)


def _search(problem: PoseProblem, start: ArrayLike | None, restarts: int, seed: int) -> Solution:
    arm, found = problem.arm, []
    bounds = (arm.lower, arm.upper)
    first = vector("start", arm.pose("initial") if start is None else start, arm.nv)
    for q in _starts(arm, first, whole("restarts", restarts), whole("seed", seed)):
        found.append(
            least_squares(problem.residual, problem.slope, q, bounds, problem.reached, ITERATIONS)
        )
        if problem.reached(found[-1].residual):
            break
    costs = [round(float(np.linalg.norm(end.residual)), DIGITS) for end in found]
    best = found[costs.index(min(costs))]  # the first of equals: the nearest to the start
    q = _within_half_a_turn(arm, best.x, first)
    return _solution(problem, q, sum(end.iterations for end in found), len(found) - 1)


def _solution(problem: PoseProblem, q: Vector, iterations: int, restarts: int) -> Solution:
    missed, turned = problem.missed(problem.residual(q))
    position, rotation = (frozen(part) for part in problem.pose(q))
    return Solution(frozen(q), position, rotation, missed, turned, iterations, restarts)


def _starts(arm: ArmModel, first: Vector, restarts: int, seed: int) -> Iterator[Vector]:
    """The start, then points drawn evenly between the limits."""
    yield first
    random = np.random.default_rng(seed)
    lower, upper = joint_ranges(arm, first)
    for _ in range(restarts):
        yield random.uniform(lower, upper)


def joint_ranges(arm: ArmModel, centre: Vector) -> tuple[Vector, Vector]:
    """Limits (nv,), and half a turn to each side of ``centre`` (nv,) where there are none."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, centre - np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, centre + np.pi)
    return lower, upper


def _within_half_a_turn(arm: ArmModel, q: Vector, first: Vector) -> Vector:
    """Continuous joints without the whole turns that a descent went away from ``first``."""
    turns = np.round((q - first) / (2 * np.pi))
    free = np.array([joint.kind == "continuous" for joint in arm.joints])
    return np.where(free, q - 2 * np.pi * turns, q)
