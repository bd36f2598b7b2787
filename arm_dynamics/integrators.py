"""How the arm's motion advances by one time step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import UnknownName
from arm_dynamics.scalar import compiled

Acceleration = Callable[[Vector, Vector], Vector]


class Integrator(ABC):
    """Advances q̇ = v, v̇ = a(q, v) by dt [s]."""

    name: ClassVar[str]
    order: ClassVar[int]

    @abstractmethod
    def advance(self, acceleration: Acceleration, q: Vector, v: Vector, dt: float) -> None:
        """Replace position and velocity (nv,), in place, by those after dt."""


class SemiImplicitEuler(Integrator):
    """v⁺ = v + dt a(q, v),  q⁺ = q + dt v⁺. First order, symplectic.

    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2.
    """

    name: ClassVar[str] = "semi_implicit_euler"
    order: ClassVar[int] = 1

    def advance(self, acceleration: Acceleration, q: Vector, v: Vector, dt: float) -> None:
        """Replace position and velocity (nv,), in place, by those after dt."""
        kick_drift(q, v, acceleration(q, v), dt)


@compiled
def kick_drift(q: Vector, v: Vector, a: Vector, dt: float) -> None:
    """v += dt a, then q += dt v; (nv,) each, in place."""
    for i in range(q.size):
        v[i] += dt * a[i]
        q[i] += dt * v[i]


INTEGRATORS: dict[str, type[Integrator]] = {c.name: c for c in (SemiImplicitEuler,)}


def integrator(name: str) -> Integrator:
    """An integrator by name; raises UnknownName listing those that exist."""
    if name not in INTEGRATORS:
        raise UnknownName("integrator", name, tuple(INTEGRATORS))
    return INTEGRATORS[name]()
