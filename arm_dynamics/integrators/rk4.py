"""The classical Runge-Kutta method of fourth order, exponential for the own states."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.integrators.base import Integrator, Motion
from arm_dynamics.integrators.relaxation import frozen_source, phi


class Rk4(Integrator):
    """y⁺ = y + dt/6 (k₁ + 2 k₂ + 2 k₃ + k₄) for (q, v); own states as in ``Etdrk4``. Order four.

    With λ = 0 the exponential method is the classical one, so that both are one method.
    Sources: E. Hairer, S. Nørsett, G. Wanner, Solving Ordinary Differential Equations I (1993),
    table II.1.2; S. Cox and P. Matthews, J. Comput. Phys. 176 (2002), eqs. 26-29.
    """

    name: ClassVar[str] = "rk4"
    order: ClassVar[int] = 4
    response: ClassVar[tuple[float, ...]] = (1.0, 1 / 2, 1 / 6, 1 / 24)

    def advance(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        half = 0.5 * dt
        own = Etdrk4(motion, q, v, z, dt) if z.size else None
        a1 = motion.acceleration(q, v, z)
        q2, v2 = q + half * v, v + half * a1
        z2 = own.second() if own else z
        a2 = motion.acceleration(q2, v2, z2)
        q3, v3 = q + half * v2, v + half * a2
        z3 = own.third(q2, v2) if own else z
        a3 = motion.acceleration(q3, v3, z3)
        q4, v4 = q + dt * v3, v + dt * a3
        z4 = own.fourth(q3, v3) if own else z
        a4 = motion.acceleration(q4, v4, z4)
        if own:
            z[:] = own.last(q4, v4)
        q += (dt / 6) * (v + 2 * (v2 + v3) + v4)
        v += (dt / 6) * (a1 + 2 * (a2 + a3) + a4)


class Etdrk4:
    """Stages of ż = N - λ₀ z with λ₀ of the step's start, N = n - (λ - λ₀) z.

    With E = e^(-λ₀ dt/2) and φ₁ at half a step:  z₂ = E z + dt/2 φ₁ N₁,  z₃ = E z + dt/2 φ₁ N₂,
    z₄ = E z₂ + dt/2 φ₁ (2 N₃ - N₁), and with the φ at a whole step
    z⁺ = E² z + dt ((φ₁ - 3φ₂ + 4φ₃) N₁ + (2φ₂ - 4φ₃) (N₂ + N₃) + (4φ₃ - φ₂) N₄).
    """

    def __init__(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        self.motion, self.z, self.dt = motion, z, dt
        self.decay, self.n1 = motion.rates(q, v, z)
        x = self.decay * dt
        self.whole, self.shrink = phi(x), np.exp(-0.5 * x)
        self.weight = 0.5 * dt * phi(0.5 * x)[0]
        self.z2 = self.z3 = self.z4 = z

    def second(self) -> Vector:
        """z₂, half a step on."""
        self.z2 = self.shrink * self.z + self.weight * self.n1
        return self.z2

    def third(self, q2: Vector, v2: Vector) -> Vector:
        """z₃, half a step on."""
        self.n2 = frozen_source(self.motion, q2, v2, self.z2, self.decay)
        self.z3 = self.shrink * self.z + self.weight * self.n2
        return self.z3

    def fourth(self, q3: Vector, v3: Vector) -> Vector:
        """z₄, a whole step on."""
        self.n3 = frozen_source(self.motion, q3, v3, self.z3, self.decay)
        self.z4 = self.shrink * self.z2 + self.weight * (2 * self.n3 - self.n1)
        return self.z4

    def last(self, q4: Vector, v4: Vector) -> Vector:
        """z⁺."""
        n4 = frozen_source(self.motion, q4, v4, self.z4, self.decay)
        p1, p2, p3 = self.whole
        between = (2 * p2 - 4 * p3) * (self.n2 + self.n3)
        ends = (p1 - 3 * p2 + 4 * p3) * self.n1 + (4 * p3 - p2) * n4
        after: Vector = self.shrink * self.shrink * self.z + self.dt * (between + ends)
        return after
