"""Semi-implicit Euler: new velocities move the positions."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.arrays import Vector
from arm_dynamics.integrators.base import Integrator, Motion, PlainMotion
from arm_dynamics.integrators.relaxation import relax
from arm_dynamics.scalar import compiled


class SemiImplicitEuler(Integrator):
    """z⁺ exactly relaxed at v,  v⁺ = v + dt a(q, v, z⁺),  q⁺ = q + dt v⁺. First order, symplectic.

    A winding's current z⁺ brakes the joint as it was; how much less it brakes at v⁺ is part of a,
    (M + dt D) a = f(q, v, z⁺) with D = -∂f/∂z ∂z⁺/∂v: current and speed settle together.
    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2; for
    the windings E. Hairer and G. Wanner, Solving ODEs II (1996), IV.7 (linearly implicit Euler).
    """

    name: ClassVar[str] = "semi_implicit_euler"
    order: ClassVar[int] = 1
    late_force: ClassVar[float] = 1.0
    implicit: ClassVar[str] = "windings"

    def advance(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        relax(motion, q, v, z, dt)
        settled = motion.settled_acceleration(q, v, z, dt) if z.size else None
        kick_drift(q, v, motion.acceleration(q, v, z) if settled is None else settled, dt)

    def run(self, motion: PlainMotion, q: Vector, v: Vector, dt: float, steps: int) -> bool:
        """``steps`` times ``advance``: the same numbers, with less between two steps."""
        return motion.kick_drift(q, v, dt, steps)


@compiled
def kick_drift(q: Vector, v: Vector, a: Vector, dt: float) -> None:
    """v += dt a, then q += dt v; (nv,) each, in place."""
    for i in range(q.size):
        v[i] += dt * a[i]
        q[i] += dt * v[i]
