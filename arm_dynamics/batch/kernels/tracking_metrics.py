"""Tracking metrics of a joint, updated once per control period so that no path is stored."""

from __future__ import annotations

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.core.compiled_math import compiled, maximum, where

METRICS = ("iae", "peak_effort", "overshoot", "residual_error")
"""With e = q_ref - q at the ends of control periods of T [s]: IAE = Σ T |e| [rad s], max |effort|
[N·m], largest error beyond the reference [rad], max |e| in the last part of the time [rad]."""


@compiled
def update_metrics(
    q: float,
    effort: float,
    q_ref: float,
    direction: float,
    metrics: tuple[float, float, float, float],
    late: float,
    period: float,
) -> tuple[float, float, float, float]:
    """Return IAE, peak effort, overshoot and residual error after one more period.

    Parameters
    ----------
    q, q_ref : float
        Position and its reference [rad or m].
    effort : float
        Applied effort [N·m or N].
    direction : float
        Sign of the first error: an error of the other sign is overshoot; 0: any error is.
    metrics : tuple of float
        IAE, peak effort, overshoot and residual error before this period.
    late : float
        1 in the part of the time in which the joint should have settled, else 0.
    period : float
        Control period [s].

    """
    iae, peak, overshoot, residual = metrics
    error = q_ref - q
    size = abs(error)
    beyond = where(direction == 0.0, size, -direction * error)
    return (
        iae + period * size,
        maximum(peak, abs(effort)),
        maximum(overshoot, beyond),
        maximum(residual, late * size),
    )


@compiled
def update_all_metrics(
    q: Matrix,
    effort: Matrix,
    q_ref: Matrix,
    direction: Matrix,
    late: Vector,
    period: Vector,
    metrics: FloatArray,
) -> None:
    """Apply ``update_metrics`` to all rollouts and joints (batch, nv); metrics (4, batch, nv)."""
    for k in range(q.shape[0]):
        for j in range(q.shape[1]):
            a, b, c, d = update_metrics(
                q[k, j], effort[k, j], q_ref[k, j], direction[k, j],
                (metrics[0, k, j], metrics[1, k, j], metrics[2, k, j], metrics[3, k, j]),
                late[k], period[k],
            )  # fmt: skip
            metrics[0, k, j], metrics[1, k, j] = a, b
            metrics[2, k, j], metrics[3, k, j] = c, d
