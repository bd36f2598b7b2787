"""Inverse kinematics with the distances of links and objects as a limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.core.arrays import Vector, check_int, check_vector
from arm_dynamics.core.errors import CollisionRejected, Unreachable
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    RESTARTS,
    TOLERANCE,
    IkSolution,
    inverse_kinematics,
    sampling_ranges,
)

ENOUGH = 8
"""Solutions without a collision of which the nearest is returned."""


def free_inverse_kinematics(
    collision: SelfCollision,
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
    """Return joint positions that bring a frame to a pose without a collision.

    The solution from ``initial_guess`` is returned if it does not collide. Otherwise solutions from
    random configurations follow, other elbows and, with more joints than axes, other postures. Of
    the first ENOUGH that do not collide, the one with the smallest largest joint motion from
    ``initial_guess`` is returned. The motion to it is not checked.

    Parameters
    ----------
    collision : SelfCollision
        Check of an arm with its clearance [m] and scene.
    position, rotation, initial_guess, weights, weights_frame, frame, tolerance, seed
        As for ``inverse_kinematics``.
    restarts : int
        Largest number of random configurations.

    Returns
    -------
    IkSolution
        Within ``tolerance``, the position limits and the clearance.

    Raises
    ------
    Unreachable
        If no configuration within the limits reaches the pose.
    CollisionRejected
        If all solutions that were found collide; with the pair of the first one.
    InvalidValue, UnknownName
        As ``inverse_kinematics``.

    """
    arm, count = collision.arm, check_int("restarts", restarts)
    start = arm.configuration("initial")
    if initial_guess is not None:
        start = check_vector("initial_guess", initial_guess, arm.nv)

    def solved(guess: Vector, tries: int) -> IkSolution:
        return inverse_kinematics(
            arm, position, rotation, initial_guess=guess, weights=weights,
            weights_frame=weights_frame, frame=frame, tolerance=tolerance, restarts=tries,
            seed=seed,
        )  # fmt: skip

    first = solved(start, count)
    pair = collision.find(first.q)
    if pair is None:
        return first
    random = np.random.default_rng(check_int("seed", seed))
    free, found = list[IkSolution](), 1
    for guess in random.uniform(*sampling_ranges(arm, start), (count, arm.nv)):
        try:
            solution = solved(guess, 0)
        except Unreachable:
            continue
        found += 1
        free += [solution] if collision.find(solution.q) is None else []
        if len(free) == ENOUGH:
            break
    if not free:
        raise CollisionRejected(
            f"target: configurations without a collision = 0 of {found}; expected at least 1;"
            f" '{pair[0]}' and '{pair[1]}' are too near"
        )
    return min(free, key=lambda solution: float(np.abs(solution.q - start).max()))
