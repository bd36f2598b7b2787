"""What several laws share of their integrals: none winds up while an effort is saturated."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import (
    NUMBER,
    TRUTH,
    VECTOR,
    clip,
    compiled,
    compiled_for,
    where,
)


@compiled
def anti_windup_step(
    ki: float, clamp: float, error: float, saturated: bool, integral: float, dt: float
) -> float:
    """∫ [rad/s² or m/s²] of an axis a period later; saturated, it may only shrink."""
    free = (not saturated) | (integral * error < 0)
    return clip(where(free, integral + dt * ki * error, integral), -clamp, clamp)


@compiled_for(VECTOR, VECTOR, VECTOR, TRUTH, VECTOR, NUMBER)
def anti_windup_steps(
    ki: Vector, clamp: Vector, error: Vector, saturated: bool, integral: Vector, dt: float
) -> Vector:
    """∫ (n,) of all axes a period later."""
    grown = np.empty(error.size)
    for i in range(error.size):
        grown[i] = anti_windup_step(ki[i], clamp[i], error[i], saturated, integral[i], dt)
    return grown
