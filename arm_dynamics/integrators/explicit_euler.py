"""Explicit Euler: old velocities move the positions."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.arrays import Vector
from arm_dynamics.integrators.base import Integrator, Motion
from arm_dynamics.integrators.relaxation import relax
from arm_dynamics.scalar import compiled


class ExplicitEuler(Integrator):
    """z⁺ exactly relaxed at v,  q⁺ = q + dt v,  v⁺ = v + dt a(q, v, z⁺). First order.

    An undamped vibration grows at any dt: here to show, and to compare with published work.
    Source: E. Hairer, S. Nørsett, G. Wanner, Solving Ordinary Differential Equations I (1993), I.7.
    """

    name: ClassVar[str] = "explicit_euler"
    order: ClassVar[int] = 1
    late_force: ClassVar[float] = 0.0

    def advance(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        relax(motion, q, v, z, dt)
        drift_kick(q, v, motion.acceleration(q, v, z), dt)


@compiled
def drift_kick(q: Vector, v: Vector, a: Vector, dt: float) -> None:
    """q += dt v, then v += dt a; (nv,) each, in place."""
    for i in range(q.size):
        q[i] += dt * v[i]
        v[i] += dt * a[i]
