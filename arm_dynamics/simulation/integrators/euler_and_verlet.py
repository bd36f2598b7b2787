"""Explicit Euler, semi-implicit Euler and velocity Verlet."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.simulation.integrators.exponential_step import (
    exponential_step,
    frozen_source,
    phi_functions,
    step_actuator_states,
)
from arm_dynamics.simulation.integrators.integrator import Integrator, SteppedSystem, System


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

    def run(
        self, system: SteppedSystem, q: Vector, v: Vector, z: Vector, dt: float, steps: int
    ) -> bool:
        """Repeat ``step``, in compiled code where all terms are: the same numbers to round-off."""
        if system.compiled:
            return system.semi_implicit_steps(q, v, z, dt, steps)
        return super().run(system, q, v, z, dt, steps)


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
