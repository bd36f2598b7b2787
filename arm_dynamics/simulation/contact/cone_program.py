"""Quadratic program over friction cones, by an interior-point method."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import compiled, compiled_without_inlining

BARRIER_END = 1e-13
"""Weight of the barrier at the end, relative to the start."""
BARRIER_FACTOR = 0.1
"""Factor of the weight from one minimization to the next."""
BARRIER_STEPS = 8
"""Largest number of Newton steps of one minimization."""
DECREASE = 1e-3
"""Decrease of the objective, relative to the weight, at which a minimization ends."""
Problem = tuple[Matrix, Vector, Vector, Vector, Vector]
"""G (n, n), w₀ (n,), bounds (m,) of the first rows and coefficients of friction (k,), n = m + 3 k;
see ``contact_solver.solve_contact_problem``."""


@compiled
def velocity_after(problem: Problem, impulse: Vector) -> Vector:
    """Return w = G λ + w₀ (n,)."""
    delassus, velocity, _, _, _ = problem
    w: Vector = velocity.copy()
    for j in range(w.size):
        for i in range(w.size):  # G is symmetric; along a row the loop is vectorized
            w[i] += delassus[j, i] * impulse[j]
    return w


@compiled
def solve_linear(a: Matrix, b: Vector) -> bool:
    """Replace b (n,) by the solution x of a x = b, by elimination in ``a``; return success."""
    n = b.size
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if not abs(a[pivot, k]) > 0.0:
            return False
        if pivot != k:
            b[k], b[pivot] = b[pivot], b[k]
            for j in range(k, n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            if factor != 0.0:
                b[i] -= factor * b[k]
                for j in range(k + 1, n):
                    a[i, j] -= factor * a[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= a[k, j] * b[j]
        b[k] /= a[k, k]
    return True


@compiled
def barrier_objective(problem: Problem, x: Vector, weight: float) -> float:
    """Return ½ λᵀ G λ + w₀ᵀ λ - t Σ log of the distances to the limits; inf outside of them."""
    _, velocity, lower, upper, friction = problem
    m, total, w = lower.size, 0.0, velocity_after(problem, x)
    for i in range(x.size):
        total += 0.5 * x[i] * (w[i] + velocity[i])
    for i in range(m):
        if not lower[i] < x[i] < upper[i]:
            return np.inf
        total -= weight * np.log(x[i] - lower[i])
        if upper[i] < np.inf:
            total -= weight * np.log(upper[i] - x[i])
    for k in range(friction.size):
        at = m + 3 * k
        normal = friction[k] * x[at]
        cone = normal * normal - x[at + 1] * x[at + 1] - x[at + 2] * x[at + 2]
        if not (cone > 0.0 and normal > 0.0):
            return np.inf
        total -= weight * np.log(cone)
    return total


@compiled
def barrier_derivatives(
    problem: Problem, x: Vector, weight: float, slope: Vector, curvature: Matrix
) -> None:
    """Add the first and second derivatives of the barrier to ``slope`` and ``curvature``."""
    _, _, lower, upper, friction = problem
    m = lower.size
    for i in range(m):
        to_lower, to_upper = 1.0 / (x[i] - lower[i]), 1.0 / (upper[i] - x[i])
        slope[i] += weight * (to_upper - to_lower)
        curvature[i, i] += weight * (to_lower * to_lower + to_upper * to_upper)
    diagonal, d = np.empty(3), np.empty(3)
    for k in range(friction.size):
        at = m + 3 * k
        diagonal[0], diagonal[1], diagonal[2] = friction[k] * friction[k], -1.0, -1.0
        cone = 0.0
        for a in range(3):
            cone += diagonal[a] * x[at + a] * x[at + a]
            d[a] = 2.0 * diagonal[a] * x[at + a]
        for a in range(3):
            slope[at + a] -= weight * d[a] / cone
            curvature[at + a, at + a] -= weight * 2.0 * diagonal[a] / cone
            for c in range(3):
                curvature[at + a, at + c] += weight * d[a] * d[c] / (cone * cone)


@compiled_without_inlining
def solve_cone_program(problem: Problem, scale: float) -> Vector:
    """Return the minimum λ (n,) of ½ λᵀ G λ + w₀ᵀ λ with bounded rows and λ in friction cones.

    ``scale`` [N·s] is the size of an impulse. Coefficients of friction must be above 0.

    References
    ----------
    S. Boyd, L. Vandenberghe, Convex Optimization (2004), sections 11.3 and 11.6.

    """
    delassus, velocity, lower, upper, _ = problem
    n, m, largest = velocity.size, lower.size, 0.0
    x, trial = np.zeros(n), np.empty(n)
    for i in range(n):
        largest = max(largest, abs(velocity[i]))
        if i < m:
            x[i] = 0.5 * (lower[i] + upper[i]) if upper[i] < np.inf else lower[i] + scale
        elif (i - m) % 3 == 0:
            x[i] = scale
    weight = 1e-2 * scale * largest
    end = BARRIER_END * scale * largest
    while weight > end:
        for _ in range(BARRIER_STEPS):
            slope, curvature = velocity_after(problem, x), delassus.copy()
            barrier_derivatives(problem, x, weight, slope, curvature)
            step = slope.copy()
            if not solve_linear(curvature, step):
                return x
            decrease, factor = 0.0, 1.0
            for i in range(n):
                decrease += slope[i] * step[i]
            start = barrier_objective(problem, x, weight)
            while factor > 1e-10:
                for i in range(n):
                    trial[i] = x[i] - factor * step[i]
                value = barrier_objective(problem, trial, weight)
                if value <= start - 1e-4 * factor * decrease:
                    break
                factor *= 0.5
            for i in range(n):
                x[i] -= factor * step[i]
            if decrease < DECREASE * weight:
                break
        weight *= BARRIER_FACTOR
    return x
