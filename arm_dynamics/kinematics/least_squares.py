"""Least squares within bounds, by Levenberg and Marquardt's damped steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.arrays import Vector

FLOOR = 1e-12
"""Least damping: below it a singular JᵀJ has no solution in floating point."""
GIVE_UP = 1e12
"""Damping at which no step is left that lowers the cost."""
STALLED = 1e-15
"""Share of its cost by which a step must lower it to be worth another one."""


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where a descent ended: x (n,), residual r (m,), number of iterations."""

    x: Vector
    residual: Vector
    iterations: int


def least_squares(
    residual: Callable[[Vector], Vector],
    slope: Callable[[Vector], Vector],
    x: Vector,
    bounds: tuple[Vector, Vector],
    enough: Callable[[Vector], bool],
    iterations: int,
    stalled: float = STALLED,
) -> Minimum:
    """min |r(x)|² with lower <= x <= upper, from x (n,) until ``enough(r)`` or no step helps.

    (JᵀJ + μ I) δ = -Jᵀ r over the entries that no bound stops, x ← clip(x + δ), μ = κ |r|²:
    quadratic convergence where r reaches 0, also where J has less than full rank. κ follows the
    share of the foreseen decrease that came true. ``slope`` is J = ∂r/∂x (m, n) at the x that
    ``residual`` was last asked about. A step that is foreseen to lower the cost by no more than the
    share ``stalled`` of it is the last one.
    Sources: J. Fan and Y. Yuan, Computing 74 (2005), 23; K. Madsen, H. Nielsen, O. Tingleff,
    Methods for Non-Linear Least Squares Problems (2004), section 3.2, for κ; D. Bertsekas, SIAM
    J. Control and Optimization 20 (1982), 221, for the bounds.
    """
    x = _within(x, bounds)
    r, share, growth = residual(x), 1.0, 2.0
    J: Vector | None = None
    for done in range(iterations):
        cost = float(r @ r)
        damping = max(share * cost, FLOOR)
        if enough(r) or damping > GIVE_UP:
            return Minimum(x, r, done)
        J = slope(x) if J is None else J
        trial = _within(x + _step(J, r, damping, x, bounds), bounds)
        there = residual(trial)
        gained, foreseen = cost - there @ there, cost - _square(r + J @ (trial - x))
        if foreseen <= stalled * cost:
            return Minimum(x, r, done)
        if gained <= 0:
            share, growth = max(share, FLOOR / cost) * growth, 2 * growth
            continue
        share *= max(1 / 3, 1 - float(2 * gained / foreseen - 1) ** 3)
        growth = 2.0
        x, r, J = trial, there, None
    return Minimum(x, r, iterations)


def _step(J: Vector, r: Vector, damping: float, x: Vector, bounds: tuple[Vector, Vector]) -> Vector:
    """Damped step of the entries that may move; an entry at its bound may not go beyond."""
    down = J.T @ r
    lower, upper = bounds
    free = ~(((x <= lower) & (down > 0)) | ((x >= upper) & (down < 0)))
    step, own = np.zeros(x.size), J[:, free]
    step[free] = -np.linalg.solve(own.T @ own + damping * np.eye(own.shape[1]), down[free])
    return step


def _within(x: Vector, bounds: tuple[Vector, Vector]) -> Vector:
    """What ``numpy.clip`` gives, in a third of its time."""
    return np.minimum(np.maximum(x, bounds[0]), bounds[1])


def _square(r: Vector) -> float:
    return float(r @ r)
