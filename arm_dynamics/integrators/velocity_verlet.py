"""Velocity Verlet, with the force at the end of the step taken at a predicted velocity."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.integrators.base import Integrator, Motion
from arm_dynamics.integrators.relaxation import frozen_source, phi, relaxed


class VelocityVerlet(Integrator):
    """a₀ = a(q, v, z),  q⁺ = q + dt v + dt²/2 a₀,  v⁺ = v + dt/2 (a₀ + a(q⁺, v + dt a₀, z₁)).

    Second order. An arm's acceleration depends on v through Coriolis forces and friction: it is
    taken at the velocity that a₀ predicts. Own states z likewise: z₁ relaxed at the predicted
    end, then z⁺ = e^(-λ dt) z + dt (φ₁ n + φ₂ (N₁ - n)), N₁ at the end, λ and n at the start.
    Sources: W. Swope et al., J. Chem. Phys. 76 (1982), 637, without the velocity; S. Cox and
    P. Matthews, J. Comput. Phys. 176 (2002), eq. 22 (ETD2RK).
    """

    name: ClassVar[str] = "velocity_verlet"
    order: ClassVar[int] = 2
    response: ClassVar[tuple[float, ...]] = (1.0, 1 / 2)

    def advance(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        first = motion.acceleration(q, v, z)
        start = motion.rates(q, v, z) if z.size else None
        q += dt * v + (0.5 * dt * dt) * first
        predicted = v + dt * first
        near = relaxed(z, *motion.rates(q, predicted, z), dt) if z.size else z
        v += (0.5 * dt) * (first + motion.acceleration(q, predicted, near))
        if start is not None:
            decay, source = start
            first_phi, second_phi, _ = phi(decay * dt)
            change = frozen_source(motion, q, v, near, decay) - source
            z *= np.exp(-decay * dt)
            z += dt * (first_phi * source + second_phi * change)
