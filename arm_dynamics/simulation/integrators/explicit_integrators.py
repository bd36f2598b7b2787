"""Methods that solve no equations: explicit and semi-implicit Euler, velocity Verlet, RK4."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.simulation.integrators.exponential_step import (
    exponential_step,
    frozen_source,
    phi_functions,
    step_actuator_states,
)
from arm_dynamics.simulation.integrators.integrator import Integrator, Moved, SteppedSystem, System


class ExplicitEuler(Integrator):
    """z⁺ integrated exactly at v,  q⁺ = q + dt v,  v⁺ = v + dt a(q, v, z⁺). First order.

    An undamped vibration grows at any dt; use it for demonstrations and for comparison with
    published work.
    Source: E. Hairer, S. Nørsett, G. Wanner, Solving Ordinary Differential Equations I (1993), I.7.
    """

    name: ClassVar[str] = "explicit_euler"
    order: ClassVar[int] = 1
    drift_fraction: ClassVar[float] = 0.0

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        step_actuator_states(system, q, v, z, dt)
        drift_kick(q, v, system.acceleration(q, v, z), dt)


@compiled
def drift_kick(q: Vector, v: Vector, a: Vector, dt: float) -> None:
    """Apply q += dt v, then v += dt a; (nv,) each, in place."""
    for i in range(q.size):
        q[i] += dt * v[i]
        v[i] += dt * a[i]


class SemiImplicitEuler(Integrator):
    """z⁺ integrated exactly at v,  v⁺ = v + dt a(q, v, z⁺),  q⁺ = q + dt v⁺. Symplectic.

    First order. A winding current z⁺ damps the joint at v; its damping at v⁺ is part of a,
    (M + dt D) a = f(q, v, z⁺) with D = -∂f/∂z ∂z⁺/∂v: current and velocity settle together.
    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2; for
    the windings E. Hairer and G. Wanner, Solving ODEs II (1996), IV.7 (linearly implicit Euler).
    """

    name: ClassVar[str] = "semi_implicit_euler"
    order: ClassVar[int] = 1
    drift_fraction: ClassVar[float] = 1.0
    implicit_damping: ClassVar[str] = "windings"

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        step_actuator_states(system, q, v, z, dt)
        settled = system.implicit_acceleration(q, v, z, dt) if z.size else None
        kick_drift(q, v, system.acceleration(q, v, z) if settled is None else settled, dt)

    def motion_of(self, system: SteppedSystem) -> Callable[..., Moved | None]:
        """Return ``run``, in compiled code where all terms are: the same numbers to round-off."""
        return system.semi_implicit_steps if system.compiled else super().motion_of(system)


@compiled
def kick_drift(q: Vector, v: Vector, a: Vector, dt: float) -> None:
    """Apply v += dt a, then q += dt v; (nv,) each, in place."""
    for i in range(q.size):
        v[i] += dt * a[i]
        q[i] += dt * v[i]


class VelocityVerlet(Integrator):
    """a₀ = a(q, v, z),  q⁺ = q + dt v + dt²/2 a₀,  v⁺ = v + dt/2 (a₀ + a(q⁺, v + dt a₀, z₁)).

    Second order. The acceleration of an arm depends on v through Coriolis forces and friction: it
    is evaluated at the velocity that a₀ predicts. Likewise z₁ is integrated to the predicted
    end, then z⁺ = e^(-λ dt) z + dt (φ₁ n + φ₂ (N₁ - n)), N₁ at the end, λ and n at the start.
    Sources: W. Swope et al., J. Chem. Phys. 76 (1982), 637, without the velocity; S. Cox and
    P. Matthews, J. Comput. Phys. 176 (2002), eq. 22 (ETD2RK).
    """

    name: ClassVar[str] = "velocity_verlet"
    order: ClassVar[int] = 2
    force_response_terms: ClassVar[tuple[float, ...]] = (1.0, 1 / 2)

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        first = system.acceleration(q, v, z)
        start = system.act_dot_terms(q, v, z) if z.size else None
        q += dt * v + (0.5 * dt * dt) * first
        predicted = v + dt * first
        near = exponential_step(z, *system.act_dot_terms(q, predicted, z), dt) if z.size else z
        v += (0.5 * dt) * (first + system.acceleration(q, predicted, near))
        if start is not None:
            decay, source = start
            first_phi, second_phi, _ = phi_functions(decay * dt)
            change = frozen_source(system, q, v, near, decay) - source
            z *= np.exp(-decay * dt)
            z += dt * (first_phi * source + second_phi * change)


class Rk4(Integrator):
    """y⁺ = y + dt/6 (k₁ + 2 k₂ + 2 k₃ + k₄) for (q, v). Order four.

    Actuator states ż = N - λ₀ z, λ₀ at the start of the step, N = n - (λ - λ₀) z:  z₂ = H(z, N₁),
    z₃ = H(z, N₂),  z₄ = H(z₂, 2 N₃ - N₁) with H as in ``half_step``, and z⁺ as in ``full_step``.
    With λ = 0 the exponential method is the classical one, so that both are one method.
    Sources: E. Hairer, S. Nørsett, G. Wanner, Solving Ordinary Differential Equations I (1993),
    table II.1.2; S. Cox and P. Matthews, J. Comput. Phys. 176 (2002), eqs. 26-29 (ETDRK4).
    """

    name: ClassVar[str] = "rk4"
    order: ClassVar[int] = 4
    force_response_terms: ClassVar[tuple[float, ...]] = (1.0, 1 / 2, 1 / 6, 1 / 24)

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        half, own = 0.5 * dt, exponentials(system, q, v, z, dt) if z.size else None
        a1 = system.acceleration(q, v, z)
        q2, v2 = q + half * v, v + half * a1
        z2 = half_step(own, z, own.n1) if own else z
        a2 = system.acceleration(q2, v2, z2)
        q3, v3 = q + half * v2, v + half * a2
        n2 = frozen_source(system, q2, v2, z2, own.decay) if own else z
        z3 = half_step(own, z, n2) if own else z
        a3 = system.acceleration(q3, v3, z3)
        q4, v4 = q + dt * v3, v + dt * a3
        n3 = frozen_source(system, q3, v3, z3, own.decay) if own else z
        z4 = half_step(own, z2, 2 * n3 - own.n1) if own else z
        a4 = system.acceleration(q4, v4, z4)
        if own:
            n4 = frozen_source(system, q4, v4, z4, own.decay)
            z[:] = full_step(own, z, n2 + n3, n4, dt)
        q += (dt / 6) * (v + 2 * (v2 + v3) + v4)
        v += (dt / 6) * (a1 + 2 * (a2 + a3) + a4)


class Exponentials(NamedTuple):
    """Values at the start: λ₀ [1/s], N₁, E = e^(-λ₀ dt/2), dt/2 φ₁ at half a step, (na,) each.

    whole (3, na): φ₁, φ₂, φ₃ at a whole step.
    """

    decay: Vector
    n1: Vector
    shrink: Vector
    weight: Vector
    whole: Vector


def exponentials(system: System, q: Vector, v: Vector, z: Vector, dt: float) -> Exponentials:
    """Return the values common to all stages of a step from q, v (nv,) and z (na,)."""
    decay, n1 = system.act_dot_terms(q, v, z)
    x = decay * dt
    return Exponentials(
        decay, n1, np.exp(-0.5 * x), 0.5 * dt * phi_functions(0.5 * x)[0], phi_functions(x)
    )


def half_step(own: Exponentials, z: Vector, source: Vector) -> Vector:
    """Return H(z, N) = E z + dt/2 φ₁ N (na,), z after half a step with constant N."""
    return own.shrink * z + own.weight * source


def full_step(own: Exponentials, z: Vector, between: Vector, n4: Vector, dt: float) -> Vector:
    """z⁺ = E² z + dt ((φ₁ - 3φ₂ + 4φ₃) N₁ + (2φ₂ - 4φ₃) (N₂ + N₃) + (4φ₃ - φ₂) N₄), (na,)."""
    p1, p2, p3 = own.whole
    ends = (p1 - 3 * p2 + 4 * p3) * own.n1 + (4 * p3 - p2) * n4
    after: Vector = own.shrink * own.shrink * z + dt * ((2 * p2 - 4 * p3) * between + ends)
    return after
