"""Compiled damped least squares for the pose of the end of a chain, with restarts.

One compilation serves every arm: chains are data. This module is imported, and so compiled, at the
first use of inverse kinematics.
"""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    BOOLEAN,
    COUNT,
    MATRIX,
    NUMBER,
    VECTOR,
    clip,
    compiled,
    compiled_for,
)
from arm_dynamics.core.small_matrices import solve_spd
from arm_dynamics.dynamics.kinematics.chain import error_jacobian, place_chain, pose_error

ITERATIONS = 100
"""Largest number of steps within the limits."""
FREE_ITERATIONS = 20
"""Largest number of steps regardless of the limits."""
FREE_DAMPING = 0.03
"""λ of the steps regardless of the limits: 0.01 to 0.1 suit arms of 6 and 7 joints."""
COARSE = 1e-7
"""Cost as a fraction of the trace of JᵀJ below which the limits apply."""
FLOOR = 1e-12
"""Smallest damping as a fraction of the trace of JᵀJ: with less, a singular JᵀJ is not solvable."""
GIVE_UP = 1e12
"""Damping above which no step lowers the cost."""
HOPELESS = 1e-2
"""Fraction by which a step must approach the cost at which another descent ended."""
TURN = 2.0 * math.pi


@compiled
def descend(
    chain: tuple[Matrix, Vector, Vector, Vector],
    target: tuple[Vector, Matrix, Vector, Matrix],
    free: bool,
    ends: tuple[float, float, float],
    x: Vector,
) -> tuple[float, float, float, int]:
    """Reduce |e(x)|² from x (n,), in place; return it, the errors [m] and [rad] and the steps.

    (JᵀJ + μ 1) δ = Jᵀ e over the joints that no limit stops, x ← clip(x + δ) where that lowers
    the cost, μ = κ |e|²: quadratic convergence where e reaches 0, also where J has less than full
    rank. κ follows the ratio of actual to predicted decrease. The descent ends within
    ``tolerance`` [m] and [rad], or when the predicted decrease of a whole step is at most the
    fraction ``stalled`` of the cost, or HOPELESS of its excess over ``least``.
    ``free``: before that, steps regardless of the limits with μ = λ |e|², all of which are
    accepted, so that x passes local minima; then joints are turned by whole turns to the middle of
    their limits.

    ``chain``: placements, slides and limits of a ``Chain``; ``target``: position, rotation and
    weights of a ``PoseTarget``, and the rows of ``pose_error``; ``ends``: ``tolerance``,
    ``stalled`` and ``least``.
    Sources: J. Fan and Y. Yuan, Computing 74 (2005), 23; K. Madsen, H. Nielsen, O. Tingleff,
    Methods for Non-Linear Least Squares Problems (2004), section 3.2, for κ; D. Bertsekas, SIAM
    J. Control and Optimization 20 (1982), 221, for the limits; S. Chan and P. Lawrence, IEEE
    Int. Conf. Robotics and Automation (1988), 1049, for λ |e|².
    """
    (placements, slides, lower, upper), (position, rotation, weights, rows) = chain, target
    tolerance, stalled, least = ends
    n, turns = x.size, weights[3] + weights[4] + weights[5] > 0.0
    axes, origins, R, J = np.empty((n, 3)), np.empty((n + 1, 3)), np.empty((3, 3)), np.empty((6, n))
    e, there, turn, trial, down = np.empty(6), np.empty(6), np.zeros(3), np.empty(n), np.empty(n)
    for i in range(n):
        trial[i] = x[i] if free else clip(x[i], lower[i], upper[i])
    kappa, growth, cost, predicted, trace = 1.0, 2.0, math.inf, math.inf, 0.0
    far, angle, steps, limit = math.inf, math.inf, 0, ITERATIONS + FREE_ITERATIONS * free
    while True:
        place_chain(placements, slides, trial, axes, origins, R)
        pose_error(origins, R, position, rotation, rows, turns, there, turn)
        reached = 0.0
        for k in range(6):
            reached += there[k] * there[k]
        if free or (reached < cost and predicted > 0.0):
            if predicted < math.inf:
                kappa *= max(1.0 / 3.0, 1.0 - (2.0 * (cost - reached) / predicted - 1.0) ** 3)
            growth, cost = 2.0, reached
            far, angle = unweighted_errors(there, weights)
            error_jacobian(axes, origins, slides, rows, turn, J)
            trace = gradient(J, there, down)
            for k in range(6):
                e[k] = there[k]
            for i in range(n):
                x[i] = trial[i]
        else:
            kappa, growth = max(kappa, FLOOR / cost) * growth, 2.0 * growth
        if free and (steps >= FREE_ITERATIONS or cost <= COARSE * trace):
            free, cost = False, math.inf
            write_within_limits(x, slides, lower, upper, trial)
            continue
        damping = max((FREE_DAMPING if free else kappa) * cost, FLOOR * trace)
        done = max(far, angle) <= tolerance or steps >= limit or damping > GIVE_UP
        if not free and (done or not trace > 0.0):
            return cost, far, angle, steps
        clipped = damped_step(J, down, damping, x, lower, upper, free, trial)
        if not free:
            predicted = cost - linear_cost(J, e, x, trial)
            if not clipped and predicted <= max(stalled * cost, HOPELESS * (cost - least)):
                return cost, far, angle, steps
        steps += 1


@compiled
def unweighted_errors(e: Vector, weights: Vector) -> tuple[float, float]:
    """Return distance [m] and angle [rad] in a weighted error e (6,)."""
    far, angle = 0.0, 0.0
    for k in range(6):
        square = (e[k] / weights[k]) ** 2 if weights[k] > 0.0 else 0.0
        far += square if k < 3 else 0.0
        angle += square if k >= 3 else 0.0
    return math.sqrt(far), math.sqrt(angle)


@compiled
def gradient(J: Matrix, e: Vector, down: Vector) -> float:
    """Write Jᵀ e (n,), and return the trace of JᵀJ."""
    trace = 0.0
    for i in range(down.size):
        down[i] = 0.0
        for k in range(6):
            down[i] += J[k, i] * e[k]
            trace += J[k, i] * J[k, i]
    return trace


@compiled
def linear_cost(J: Matrix, e: Vector, x: Vector, trial: Vector) -> float:
    """Return |e - J (trial - x)|²."""
    cost = 0.0
    for k in range(6):
        left = e[k]
        for i in range(x.size):
            left -= J[k, i] * (trial[i] - x[i])
        cost += left * left
    return cost


@compiled
def write_within_limits(
    x: Vector, slides: Vector, lower: Vector, upper: Vector, trial: Vector
) -> None:
    """Write x within the limits, joints turned by whole turns to the middle of them first."""
    for i in range(x.size):
        middle, trial[i] = 0.5 * (lower[i] + upper[i]), x[i]
        if slides[i] == 0.0 and math.isfinite(middle):
            trial[i] -= TURN * np.rint((x[i] - middle) / TURN)
        trial[i] = clip(trial[i], lower[i], upper[i])


@compiled
def damped_step(
    J: Matrix,
    down: Vector,
    damping: float,
    x: Vector,
    lower: Vector,
    upper: Vector,
    free: bool,
    trial: Vector,
) -> bool:
    """Write x + δ; unless ``free``, a joint at its limit stays, and none goes beyond.

    Return whether a limit shortened the step: it may then increase the cost, unless the damping is
    high.
    """
    n, clipped = x.size, False
    A, step = np.empty((n, n)), np.empty((n, 1))
    for i in range(n):
        outward = x[i] <= lower[i] if down[i] < 0.0 else x[i] >= upper[i]
        moves = 1.0 if free or not outward else 0.0
        trial[i], step[i, 0] = moves, moves * down[i]
        for j in range(i + 1):
            A[i, j] = damping if i == j else 0.0
            for k in range(6):
                A[i, j] += moves * trial[j] * J[k, i] * J[k, j]
    step = solve_spd(A, step)
    for i in range(n):
        trial[i] = x[i] + step[i, 0]
        if not free and not lower[i] <= trial[i] <= upper[i]:
            trial[i], clipped = clip(trial[i], lower[i], upper[i]), True
    return clipped


EQUAL = 1e-10
"""Difference of two residuals that counts as zero."""


@compiled_for(
    (MATRIX, VECTOR, VECTOR, VECTOR, VECTOR), (VECTOR, MATRIX, VECTOR, MATRIX), VECTOR,
    (NUMBER, NUMBER, COUNT, COUNT, BOOLEAN),
)  # fmt: skip
def search_pose(
    chain: tuple[Matrix, Vector, Vector, Vector, Vector],
    target: tuple[Vector, Matrix, Vector, Matrix],
    start: Vector,
    options: tuple[float, float, int, int, bool],
) -> tuple[Vector, float, float, int, int]:
    """Return q (n,), the residual errors [m] and [rad], the numbers of steps and of restarts.

    ``chain``: placements, slides, limits and strides of a ``Chain``; ``target``: position,
    rotation, weights and axes of a ``PoseTarget``; ``options``: those of ``SearchOptions``. The
    first descent starts within the limits at ``start`` (n,). If its error exceeds the tolerance,
    and unless it is the only one, a free one from there follows, then descents from ``restarts``
    points spread over the joint ranges. Among equal results the first one is returned. Revolute
    joints end within half a turn of ``start`` if their limits allow it.
    """
    placements, slides, lower, upper, strides = chain
    position, rotation, weights, along = target
    tolerance, stalled, restarts, seed, once = options
    n, rows = start.size, np.empty((6, 3))
    x, best = np.empty(n), np.empty(n)
    for k in range(6):
        for a in range(3):
            rows[k, a] = weights[k] * along[a, k % 3]
    for i in range(n):
        best[i] = clip(start[i], lower[i], upper[i])
    least, distance, rotation_error, done, used = math.inf, math.inf, math.inf, 0, 0
    for k in range(-1, 0 if once else restarts + 1):
        write_start(x, start, lower, upper, strides, k, seed)
        cost, far, angle, steps = descend(
            (placements, slides, lower, upper), (position, rotation, weights, rows), k >= 0,
            (tolerance, stalled, least), x,
        )  # fmt: skip
        done, used = done + steps, max(k, 0)
        reached = max(far, angle) <= tolerance
        if reached or math.sqrt(cost) < math.sqrt(least) - EQUAL:
            least, distance, rotation_error = cost, far, angle
            for i in range(n):
                best[i] = x[i]
        if reached:
            break
    for i in range(n):
        if slides[i] == 0.0:
            near = best[i] - TURN * np.rint((best[i] - start[i]) / TURN)
            best[i] = near if lower[i] <= near <= upper[i] else best[i]
    return best, distance, rotation_error, done, used


@compiled
def write_start(
    x: Vector, start: Vector, lower: Vector, upper: Vector, strides: Vector, k: int, seed: int
) -> None:
    """Write ``start``, or for k > 0 the k-th point of a sequence that fills all ranges evenly.

    Without a limit, a range is half a turn to each side of the start.
    """
    for i in range(x.size):
        low = lower[i] if math.isfinite(lower[i]) else start[i] - math.pi
        high = upper[i] if math.isfinite(upper[i]) else start[i] + math.pi
        place = 0.5 + k * strides[i] + seed * math.sqrt(2.5 + i)  # irrational for every i
        x[i] = low + (place - math.floor(place)) * (high - low) if k > 0 else start[i]
