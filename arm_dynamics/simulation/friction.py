"""Joint friction: viscous as an effort, dry (Coulomb with stiction) as an impulse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import clip, compiled, exp, maximum

SWEEPS = 200
TOLERANCE = 1e-14


@compiled
def viscous_effort(v: float, coefficient: float) -> float:
    """Return τ = -b v [N·m]; v [rad/s], b [N·m·s/rad]."""
    return -coefficient * v


@compiled
def stribeck_friction(v: float, coulomb: float, stiction: float, stribeck: float) -> float:
    """Return the dry friction [N·m] at speed v: f = fc + (fs - fc) exp(-(v / vs)²), fs at rest.

    v, vs [rad/s]; coulomb fc, stiction fs [N·m], taken as at least fc.
    Source: B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, Automatica 30 (1994), the
    general kinetic friction model with exponent 2.
    """
    ratio = v / stribeck
    return coulomb + maximum(stiction - coulomb, 0.0) * exp(-ratio * ratio)


def force_response(
    mass: Vector, implicit: Vector, braking: Vector, terms: Sequence[float], dt: float
) -> Vector:
    """Return W (nv, nv), the change of velocity in one step per impulse of a constant force.

    W = p(-dt M'⁻¹ B) M'⁻¹,  M' = M + dt diag(implicit),  p(x) = Σ terms[k] x^k.

    W = M⁻¹ for a step without damping. With damping B = diag(braking) [N·m·s/rad] W of the
    integrator makes a joint break away at exactly its breakaway effort: the step already damps
    the motion that friction prevents, and friction must not count that part twice.
    """
    inverse = np.array(np.linalg.inv(mass + dt * np.diag(implicit)), dtype=float)
    x: Vector = -dt * inverse * braking
    response: Vector = np.zeros_like(inverse)
    for term in reversed(terms):
        response = np.array(x @ response + term * inverse)
    return response


@compiled
def velocity_after_dry_friction(
    v: Vector, inverse_mass: Vector, forward: Vector, backward: Vector
) -> Vector:
    """Return the velocity after the impulse of dry friction in one step.

    v+ = v + W λ,  -f_i dt <= λ_i <= b_i dt,  λ_i = -f_i dt where v+_i > 0, b_i dt where < 0,

    that is, the impulse of maximum dissipation: argmin ½ v+ᵀ M v+ where both bounds are the
    same. A joint at rest stays at rest exactly as long as the net generalized effort on it,
    gravity and coupling included, is between -b_i and f_i; no regularizing slope is used.

    v (nv,) [rad/s] before friction, inverse_mass W (nv, nv), see ``force_response``, forward
    f dt and backward b dt (nv,) [N·m·s]: the largest impulses against forward and backward motion.
    A joint with a NaN as one of them has the velocity NaN after the step.
    Solved by projected Gauss-Seidel, which converges since M⁻¹ is positive definite.
    Source: J. J. Moreau, Unilateral contact and dry friction (1988), section 5;
    D. Stewart and J. Trinkle, Int. J. Numer. Methods Eng. 39 (1996), eq. 9.
    """
    size = v.size
    impulse = np.zeros(size)
    after: Vector = v.copy()
    for i in range(size):  # ``clip`` would not limit the impulse by a NaN, and the joint would lock
        if not forward[i] + backward[i] >= 0.0:
            after[i] = np.nan
            return after
    for _ in range(SWEEPS):
        largest = 0.0
        for i in range(size):
            stopping = impulse[i] - after[i] / inverse_mass[i, i]
            change = clip(stopping, -forward[i], backward[i]) - impulse[i]
            impulse[i] += change
            for j in range(size):
                after[j] += inverse_mass[j, i] * change
            largest = max(largest, abs(change) * inverse_mass[i, i])
        if largest < TOLERANCE:
            break
    for i in range(size):  # a joint held by friction stands still, not at 1e-17 rad/s
        if -forward[i] < impulse[i] < backward[i]:
            after[i] = 0.0
    return after
