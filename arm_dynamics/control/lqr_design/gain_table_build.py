"""A table of regulator gains solved for, in parallel where an executor is given."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.lqr_design.gain_table import MAX_TABLE_SIZE, GainTable, table_key, turns
from arm_dynamics.control.lqr_design.lqr_gain import LqrWeights, lqr_gain, require_static_effort
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

PARTS = 64
"""Tasks that a table is cut into: each takes the arm to a process anew."""
Axis = tuple[float, float, int]
"""Lowest and highest position [rad or m], and number of poses from one to the other."""
Progress = Callable[[int, int], None]
"""Told how many poses are done, and of how many."""


@requires_arm
def build_gain_table(
    arm: ArmModel,
    weights: LqrWeights,
    grid: Mapping[str, Axis],
    pose: ArrayLike | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> GainTable:
    """The regulator's gains at every pose of ``grid``, joint → (lower, upper, count).

    Joints that are not named stay as in ``pose``, the initial one if none is given: right for
    those that turn the arm about the vertical, since no gain depends on them. ``executor`` solves
    in parallel. Raises UnknownName for a joint, InvalidValue for an axis that is none, and, with
    the pose and the joint, where the weight is beyond an effort limit or nothing stabilises; also
    for a grid of more than LARGEST numbers in all.
    """
    axes = {arm.index(name): _axis(name, axis) for name, axis in grid.items()}
    if not axes:
        raise InvalidValue(f"grid = {grid!r}: at least one joint of {arm.joint_names} is expected")
    _check_size([count for _, _, count in axes.values()], 2 * arm.nv**2)
    start = arm.configuration("initial") if pose is None else check_vector("pose", pose, arm.nv)
    points = list(itertools.product(*(np.linspace(*axis) for axis in axes.values())))
    poses = np.tile(start, (len(points), 1))
    poses[:, list(axes)] = points
    gains = _solved(arm, weights, poses, executor, progress)
    lower, upper, counts = (np.array(column) for column in zip(*axes.values(), strict=True))
    kinds = [arm.joints[j].kind for j in axes]
    return GainTable(
        table_key(arm, weights),
        np.array(list(axes), dtype=np.int64),
        as_readonly(lower),
        as_readonly(upper),
        turns(kinds),
        as_readonly(gains.reshape(*counts.tolist(), arm.nv, 2 * arm.nv)),
    )


def _axis(name: str, axis: Axis) -> Axis:
    try:
        lower, upper, count = axis
    except (TypeError, ValueError):
        said = f"grid of joint '{name}' = {axis!r}: (lower, upper, count) is expected"
        raise InvalidValue(said) from None
    low = check_float(f"grid of joint '{name}': lower", lower)
    high = check_float(f"grid of joint '{name}': upper", upper, above=low)
    return low, high, check_int(f"grid of joint '{name}': count", count, lower=2)


def _check_size(counts: list[int], each: int) -> None:
    poses, most = prod(counts), int(MAX_TABLE_SIZE // each)
    if poses > most:
        raise InvalidValue(f"grid: {poses} poses, at most {most} are possible: fewer a joint, or"
                           " fewer joints")  # fmt: skip


def _solved(
    arm: ArmModel,
    weights: LqrWeights,
    poses: Vector,
    executor: Executor | None,
    progress: Progress | None,
) -> Vector:
    """K (n, nv, 2 nv) at ``poses`` (n, nv), in parts."""
    gains, done = np.empty((len(poses), arm.nv, 2 * arm.nv)), 0
    for first, found in _parts(arm, weights, poses, executor):
        gains[first : first + len(found)] = found
        done += len(found)
        if progress is not None:
            progress(done, len(poses))
    return gains


def _parts(
    arm: ArmModel, weights: LqrWeights, poses: Vector, executor: Executor | None
) -> Iterator[tuple[int, Vector]]:
    """Number of the first pose, and gains, of every part as it is done."""
    size = -(-len(poses) // PARTS)
    parts = [(k, poses[k : k + size]) for k in range(0, len(poses), size)]
    if executor is None:
        yield from ((k, _gains(arm, weights, part)) for k, part in parts)
        return
    tasks = {executor.submit(_gains, arm, weights, part): k for k, part in parts}
    try:
        for task in as_completed(tasks):
            yield tasks[task], task.result()
    finally:
        for task in tasks:
            task.cancel()


def _gains(arm: ArmModel, weights: LqrWeights, poses: Vector) -> Vector:
    for pose in poses:
        require_static_effort(arm, pose)
    return np.array([lqr_gain(arm, pose, weights) for pose in poses])
