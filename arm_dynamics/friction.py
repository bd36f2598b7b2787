"""Joint friction: viscous as an effort, dry (Coulomb with stiction) as an impulse."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.scalar import clip, compiled

SWEEPS = 200
TOLERANCE = 1e-14


@compiled
def viscous_effort(v: float, coefficient: float) -> float:
    """tau = -b v; v [rad/s], b [N·m·s/rad], returns [N·m]."""
    return -coefficient * v


@compiled
def dry_velocity(v: Vector, inverse_mass: Vector, bound: Vector) -> Vector:
    """Velocity after dry friction took what it may in one step.

    v+ = v + M⁻¹ λ,  |λ_i| <= f_i dt,  λ_i = -f_i dt sign(v+_i) where v+_i != 0,

    that is, the impulse of maximum dissipation: argmin ½ v+ᵀ M v+. A joint at rest stays at
    rest exactly as long as the net generalized effort on it, gravity and coupling included,
    is below its break-away value f_i; no regularizing slope is used.

    v (nv,) [rad/s] before friction, inverse_mass (nv, nv), bound f dt (nv,) [N·m·s].
    Solved by projected Gauss-Seidel, which converges since M⁻¹ is positive definite.
    Source: J. J. Moreau, Unilateral contact and dry friction (1988), section 5;
    D. Stewart and J. Trinkle, Int. J. Numer. Methods Eng. 39 (1996), eq. 9.
    """
    size = v.size
    impulse = np.zeros(size)
    after: Vector = v.copy()
    for _ in range(SWEEPS):
        largest = 0.0
        for i in range(size):
            change = clip(impulse[i] - after[i] / inverse_mass[i, i], -bound[i], bound[i])
            change -= impulse[i]
            impulse[i] += change
            for j in range(size):
                after[j] += inverse_mass[j, i] * change
            largest = max(largest, abs(change) * inverse_mass[i, i])
        if largest < TOLERANCE:
            break
    for i in range(size):  # a joint held by friction stands still, not at 1e-17 rad/s
        if abs(impulse[i]) < bound[i]:
            after[i] = 0.0
    return after
