"""Integrals that do not wind up while an effort is saturated (conditional integration)."""

from __future__ import annotations

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import clip, compiled, where


@compiled
def anti_windup_step(
    ki: float, clamp: float, error: float, saturated: bool, integral: float, dt: float
) -> float:
    """Return the integral of an axis after a period; while saturated it may only decrease."""
    free = (not saturated) | (integral * error < 0)
    return clip(where(free, integral + dt * ki * error, integral), -clamp, clamp)


@compiled
def clamp_and_integrate(
    effort: Vector, limit: Vector, integrals: tuple[Vector, Vector, Vector, Vector], dt: float
) -> None:
    """Clip ``effort`` (n,) to ±limit and advance the integrals by a period, in place.

    ``integrals`` are ki, clamp, error and integral, (n,) each.
    """
    (ki, clamp, error, integral), saturated = integrals, False
    for i in range(effort.size):
        desired = effort[i]
        effort[i] = clip(desired, -limit[i], limit[i])
        saturated = saturated | (effort[i] != desired)
    for i in range(effort.size):
        integral[i] = anti_windup_step(ki[i], clamp[i], error[i], saturated, integral[i], dt)
