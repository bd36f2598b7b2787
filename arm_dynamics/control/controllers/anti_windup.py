"""Integrals that do not wind up while an effort is saturated (conditional integration)."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import (
    BOOLEAN,
    NUMBER,
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
    """Return the integral of an axis after a period; while saturated it may only decrease."""
    free = (not saturated) | (integral * error < 0)
    return clip(where(free, integral + dt * ki * error, integral), -clamp, clamp)


@compiled_for(VECTOR, VECTOR, VECTOR, BOOLEAN, VECTOR, NUMBER)
def anti_windup_steps(
    ki: Vector, clamp: Vector, error: Vector, saturated: bool, integral: Vector, dt: float
) -> Vector:
    """Return the integrals (n,) of all axes after a period."""
    after = np.empty(error.size)
    for i in range(error.size):
        after[i] = anti_windup_step(ki[i], clamp[i], error[i], saturated, integral[i], dt)
    return after
