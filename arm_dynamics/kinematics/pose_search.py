"""Compiled search for the joint positions of a pose: descents from a start, then from others.

One compilation serves every arm: chains are data. This module is imported, and so compiled, where
inverse kinematics is first used.
"""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.kinematics.pose_descent import TURN, descend
from arm_dynamics.scalar import COUNT, MATRIX, NUMBER, TRUTH, VECTOR, clip, compiled, compiled_for

EQUAL = 1e-10
"""Difference of two residuals that counts as none."""


@compiled_for(
    MATRIX, *[VECTOR] * 4, VECTOR, MATRIX, VECTOR, MATRIX, VECTOR, NUMBER, NUMBER, COUNT, COUNT,
    TRUTH,
)  # fmt: skip
def search_pose(
    placements: Vector,
    slides: Vector,
    lower: Vector,
    upper: Vector,
    strides: Vector,
    position: Vector,
    rotation: Vector,
    weights: Vector,
    along: Vector,
    start: Vector,
    tolerance: float,
    stalled: float,
    restarts: int,
    seed: int,
    once: bool,
) -> tuple[Vector, float, float, int, int]:
    """Return q (n,), the error that is left [m] and [rad], the number of steps, that of restarts.

    The first five parameters are a ``Chain``, the next four a ``PoseTarget``. First a descent
    within the limits from ``start`` (n,); where that misses by more than ``tolerance``, and not
    ``once``, a free one from there, then from ``restarts`` points spread over the joints' ranges.
    Among equals the first one counts. Revolute joints end within half a turn of ``start`` where
    their limits allow it.
    """
    n, rows = start.size, np.empty((6, 3))
    x, best = np.empty(n), np.empty(n)
    for k in range(6):
        for a in range(3):
            rows[k, a] = weights[k] * along[a, k % 3]
    for i in range(n):
        best[i] = clip(start[i], lower[i], upper[i])
    least, missed, turned, done, used = math.inf, math.inf, math.inf, 0, 0
    for k in range(-1, 0 if once else restarts + 1):
        begin(x, start, lower, upper, strides, k, seed)
        cost, far, angle, steps = descend(
            placements, slides, lower, upper, position, rotation, weights, rows, k >= 0,
            tolerance, stalled, least, x,
        )  # fmt: skip
        done, used = done + steps, max(k, 0)
        reached = max(far, angle) <= tolerance
        if reached or math.sqrt(cost) < math.sqrt(least) - EQUAL:
            least, missed, turned = cost, far, angle
            for i in range(n):
                best[i] = x[i]
        if reached:
            break
    for i in range(n):
        if slides[i] == 0.0:
            near = best[i] - TURN * np.rint((best[i] - start[i]) / TURN)
            best[i] = near if lower[i] <= near <= upper[i] else best[i]
    return best, missed, turned, done, used


@compiled
def begin(
    x: Vector, start: Vector, lower: Vector, upper: Vector, strides: Vector, k: int, seed: int
) -> None:
    """Write ``start``, or for k > 0 the k-th point of a sequence that fills all ranges evenly.

    A range is half a turn to each side of the start where there is no limit.
    """
    for i in range(x.size):
        low = lower[i] if math.isfinite(lower[i]) else start[i] - math.pi
        high = upper[i] if math.isfinite(upper[i]) else start[i] + math.pi
        share = 0.5 + k * strides[i] + seed * math.sqrt(2.5 + i)  # irrational for every i
        x[i] = low + (share - math.floor(share)) * (high - low) if k > 0 else start[i]
