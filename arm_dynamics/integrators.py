"""How the arm's motion advances by one time step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import UnknownName

Acceleration = Callable[[Vector, Vector], Vector]


class Integrator(ABC):
    """Advances q̇ = v, v̇ = a(q, v) by dt [s]."""

    name: ClassVar[str]
    order: ClassVar[int]

    @abstractmethod
    def step(
        self, acceleration: Acceleration, q: Vector, v: Vector, dt: float
    ) -> tuple[Vector, Vector]:
        """Position and velocity (nv,) after dt, as new arrays."""


class SemiImplicitEuler(Integrator):
    """v⁺ = v + dt a(q, v),  q⁺ = q + dt v⁺. First order, symplectic.

    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2.
    """

    name: ClassVar[str] = "semi_implicit_euler"
    order: ClassVar[int] = 1

    def step(
        self, acceleration: Acceleration, q: Vector, v: Vector, dt: float
    ) -> tuple[Vector, Vector]:
        """Position and velocity (nv,) after dt."""
        v_next = v + dt * acceleration(q, v)
        return q + dt * v_next, v_next


INTEGRATORS: dict[str, type[Integrator]] = {c.name: c for c in (SemiImplicitEuler,)}


def integrator(name: str) -> Integrator:
    """An integrator by name; raises UnknownName listing those that exist."""
    if name not in INTEGRATORS:
        raise UnknownName("integrator", name, tuple(INTEGRATORS))
    return INTEGRATORS[name]()
