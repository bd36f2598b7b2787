"""Joint motion that leaves a singular configuration by second-order task-space motion."""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    clip,
    compiled,
    compiled_without_inlining,
    is_finite,
    minimum,
)
from arm_dynamics.core.small_matrices import damped_pseudoinverse, matmul, matmul_transposed, matvec

MAX_STEP = 0.1
"""Longest step [rad or m]."""
FLAT = 0.01
"""Negative curvature, as a fraction of the squared lost error, that counts as zero."""
FADING = 0.01
"""Negative curvature, as a fraction of ``weak`` times the lost error, that halves the step: it is
continuous where the curvature changes its sign."""
DECISIVE = 1e-6
"""Distance [rad or m] from the singularity beyond which the first-order motion selects the side."""
BLOCKING = 1e-6
"""Component of a unit direction that counts as a motion of its joint."""
TOUCHING = 1e-4
"""Distance [rad or m] from a position limit that counts as being there."""
MIN_ALIGNMENT = 0.1
"""Component of the last direction within the present ones below which another one is chosen."""


@compiled_without_inlining
def escape(
    tool: tuple[Matrix, Matrix, Matrix],
    error: Vector,
    joints: tuple[Vector, Vector, Vector, Vector],
    weak: float,
    least: float,
    last: Vector,
    stopped: Vector,
) -> tuple[Vector, float, Vector, float]:
    """Return direction d (nv,), step along it [rad or m], lost error (k,) [m], its weight [0, 1].

    The damped pseudoinverse removes e_lost = L e, L = Σ (1 - σ²/weak²) u uᵀ over the singular
    directions u of J with σ < ``weak``. The singular configuration is a saddle of |e|²/2 if

        B = Jᵀ R J - e_lost · ∂J/∂q,  R = 1 - Σ (1 - σ⁸/weak⁸) u uᵀ,

    has a negative eigenvalue μ; d is its eigenvector, and the quadratic model along d removes the
    error e = |e_lost| after s = 2 e² / (g + √(g² + 2 |μ| e²)), g = dᵀ Jᵀ e_lost. No negative
    eigenvalue: s = 0, and the configuration nearest to a target beyond the workspace is held.
    Both signs of d approach the target at second order. The sign is that of g after
    J# (e - e_lost), unless a position limit permits less of s there than on the other side.
    Without g it is the sign toward the posture, else toward the middle of the position limits. A
    chosen direction is kept until g opposes it.
    The step falls to 0 as the lost error falls to ``least``, and with the curvature. The weight
    falls to 0 as the error along singular directions, lost or not, falls to ``least``.

    Parameters: ``tool``: J (k, nv) of the controlled axes [m], unscaled Jacobian (6, nv), weights
    (k, 6) that scale it to J; ``error`` e (k,) [m]; ``joints``: posture q_ref - q, q, lower and
    upper position limits (nv,); ``last`` (nv,), the direction of the last period or 0; ``stopped``
    (nv,), 1 for joints that stay at their position limits.
    Sources: S. Chiaverini, IEEE Trans. Robotics and Automation 13 (1997), 398, for singular
    directions; D. Nenchev, Y. Tsumaki, M. Uchiyama, Int. J. Robotics Research 19 (2000), 159, for
    second-order motion; J. Moré and D. Sorensen, Mathematical Programming 16 (1979), 1, for
    directions of negative curvature at a saddle.
    """
    (rows, jacobian, axis_weights), (_, q, lower, upper) = tool, joints
    no_direction, nothing = np.zeros(q.size), np.zeros(error.size)
    size = math.sqrt(np.dot(error, error))
    if not least < size < math.inf or not is_finite(rows.ravel()):
        return no_direction, 0.0, nothing, 0.0
    J, still, last = rows.copy(), stopped.copy(), last * (1.0 - stopped)
    for i in range(q.size):
        if still[i] > 0.0:
            J[:, i] *= 0.0
    kept, lost, along = _lost_error(J, error, weak)
    if along <= least:
        return no_direction, 0.0, nothing, 0.0
    size, weight = math.sqrt(np.dot(lost, lost)), 1.0 - least / along
    if size <= least:
        return last, 0.0, lost, weight
    bent, gradient = second_order(jacobian, matvec(axis_weights.T, lost)), matvec(J.T, lost)
    B = matmul(J.T, matmul(kept, J)) - bent
    inverse, _ = damped_pseudoinverse(J, weak)
    coming = gradient + matvec(bent, matvec(inverse, error - lost))  # after J# (e - e_lost)
    for _ in range(q.size):
        d, curvature = _negative_curvature(B, still, last)
        depth = -curvature - FLAT * size * size
        on = np.dot(d, last) > MIN_ALIGNMENT
        if not on and np.dot(last, gradient) > MIN_ALIGNMENT * weak * size:
            return last, 0.0, lost, weight  # far enough: the first-order motion continues
        if depth <= 0.0:
            break
        g, ahead = np.dot(d, gradient), np.dot(d, coming)
        on = on and ahead > -MIN_ALIGNMENT * weak * size
        chosen = _sign_of_step(d, (g, ahead, depth, size), joints, on)
        if chosen != 0.0:
            fading = (1.0 - least / size) * depth / (depth + FADING * weak * size)
            step = min(_root(chosen * g, depth, size), MAX_STEP) * fading
            step = min(step, _step_to_limits(chosen * d, q, lower, upper))
            return chosen * d, step, lost, weight
        for i in range(q.size):  # at a limit, and neither sign moves away from all of them
            distance = min(q[i] - lower[i], upper[i] - q[i])
            if abs(d[i]) > BLOCKING and distance <= TOUCHING:
                still[i] = 1.0
    return no_direction, 0.0, lost, weight


@compiled
def pressed(pull: Vector, q: Vector, lower: Vector, upper: Vector, least: float) -> Vector:
    """Return 1 for joints that a pull (nv,) above ``least`` presses against position limits."""
    at_limit = np.zeros(q.size)
    for i in range(q.size):
        outward = pull[i] if q[i] >= upper[i] else -pull[i] if q[i] <= lower[i] else 0.0
        if outward > least:
            at_limit[i] = 1.0
    return at_limit


@compiled_without_inlining
def _lost_error(J: Matrix, error: Vector, weak: float) -> tuple[Matrix, Vector, float]:
    """Return R (k, k), L e (k,) and the length [m] of e along singular directions."""
    squares, U = np.linalg.eigh(matmul_transposed(J, J))
    kept, lost, square = np.eye(error.size), np.zeros(error.size), 0.0
    for c in range(error.size):
        weight = 1.0 - max(squares[c], 0.0) / (weak * weak)
        if weight > 0.0:
            along = np.dot(U[:, c].copy(), error)
            square += along * along
            for i in range(error.size):
                lost[i] += weight * along * U[i, c]
                for j in range(error.size):
                    kept[i, j] -= (1.0 - (1.0 - weight) ** 4) * U[i, c] * U[j, c]
    return kept, lost, math.sqrt(square)


@compiled
def second_order(jacobian: Matrix, y: Vector) -> Matrix:
    """Return Σ y_i ∂²x_i/∂q² (nv, nv) of the tool's coordinates x (6,), for joints in a chain.

    ∂²p/∂q_a∂q_b = ω_a × p_b and, symmetrized, ω_a × ω_b / 2 of the rotation, for a before b; ω and
    p are columns of the Jacobian.
    """
    nv = jacobian.shape[1]
    hessian = np.zeros((nv, nv))
    for b in range(nv):
        for a in range(b + 1):
            value = 0.0
            for i in range(3):
                j, k = (i + 1) % 3, (i + 2) % 3
                wj, wk = jacobian[3 + j, a], jacobian[3 + k, a]
                value += y[i] * (wj * jacobian[k, b] - wk * jacobian[j, b])
                value += 0.5 * y[3 + i] * (wj * jacobian[3 + k, b] - wk * jacobian[3 + j, b])
            hessian[a, b] = hessian[b, a] = value
    return hessian


@compiled_without_inlining
def _negative_curvature(B: Matrix, still: Vector, last: Vector) -> tuple[Vector, float]:
    """Return a unit direction (nv,) of negative curvature without the still joints; the curvature.

    It is the projection of ``last`` on all such directions; without one, the most negative.
    """
    n = still.size
    free = B.copy()
    for i in range(n):
        if still[i] > 0.0:
            free[i, :] *= 0.0
            free[:, i] *= 0.0
            free[i, i] = 1.0
    values, vectors = np.linalg.eigh(free)
    near, length = np.zeros(n), 0.0
    for c in range(n):
        if values[c] < 0.0:
            along = np.dot(vectors[:, c].copy(), last)
            length += along * along
            near += along * vectors[:, c]
    if length <= MIN_ALIGNMENT * MIN_ALIGNMENT:
        return vectors[:, 0].copy(), values[0]
    near /= math.sqrt(length)
    return near, np.dot(near, matvec(free, near))


@compiled
def _root(g: float, depth: float, size: float) -> float:
    """Return s = 2 e² / (g + √(g² + 2 |μ| e²)), the first root of the quadratic model."""
    return 2.0 * size * size / (g + math.sqrt(g * g + 2.0 * depth * size * size))


@compiled
def _step_to_limits(d: Vector, q: Vector, lower: Vector, upper: Vector) -> float:
    """Return the step along d [rad or m] until a joint is TOUCHING its limit."""
    step = np.inf
    for i in range(q.size):
        if d[i] > BLOCKING:
            step = minimum(step, (upper[i] - q[i]) / d[i])
        elif d[i] < -BLOCKING:
            step = minimum(step, (lower[i] - q[i]) / d[i])
    return max(step - TOUCHING, 0.0)


@compiled
def _sign_of_step(
    d: Vector,
    model: tuple[float, float, float, float],
    joints: tuple[Vector, Vector, Vector, Vector],
    kept: bool,
) -> float:
    """Return the sign of d: 1, -1, or 0 if position limits stop both; 1 if it is ``kept``.

    ``model``: g, its value after the first-order motion, |μ| e² and e; ``joints`` as in ``escape``.
    """
    (g, coming, depth, size), (posture, q, lower, upper) = model, joints
    ahead, back = _step_to_limits(d, q, lower, upper), _step_to_limits(-d, q, lower, upper)
    if kept:
        return 1.0 if ahead > 0.0 else 0.0
    sign, widest = 1.0, 0.0
    toward, inward = np.dot(d, posture), 0.0
    for i in range(q.size):
        bounded = math.isfinite(upper[i] - lower[i])
        middle = 0.5 * (lower[i] + upper[i]) if bounded else clip(0.0, lower[i], upper[i])
        inward += d[i] * (middle - q[i])
        if abs(d[i]) > widest + DECISIVE:
            widest, sign = abs(d[i]), 1.0 if d[i] > 0.0 else -1.0
    for preferred in (inward, toward, coming / depth):
        if abs(preferred) > DECISIVE:
            sign = 1.0 if preferred > 0.0 else -1.0
    ahead = minimum(ahead / _root(g, depth, size), 1.0)
    back = minimum(back / _root(-g, depth, size), 1.0)
    if max(ahead, back) <= 0.0:
        return 0.0
    if sign > 0.0:
        return -1.0 if back > ahead else 1.0
    return 1.0 if ahead > back else -1.0
