"""Interfaces of an integrator and of the system that it advances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import all_finite

NONE = as_readonly([])


class System(Protocol):
    """q̇ = v,  v̇ = a(q, v, z),  ż = n(q, v, z) - λ(q, v, z) z: the arm under one command.

    z (na,) are the actuator states. λ >= 0 can be far above 1/dt, as of a winding current:
    integrators evaluate its exponential exactly. Dry friction is not part of a.
    """

    groups: tuple[Any, ...]
    """Index arrays into z: a step updates group after group, each from those before."""
    joint_names: tuple[str, ...]
    lower: Vector
    upper: Vector
    """Positions (nv,) at which the end stops begin."""
    dry_friction_joints: NDArray[np.bool_]
    """Mask (nv,) of the joints with dry friction."""

    def acceleration(self, q: Vector, v: Vector, z: Vector) -> Vector:
        """Return v̇ (nv,) [rad/s²], a new array."""

    def implicit_acceleration(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """Return (M + dt D)⁻¹ M v̇ with the damping D of the winding currents over dt."""

    def act_dot_terms(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Return λ and n, (na,) each, new arrays."""

    def dry_friction_bounds(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Return the largest dry friction (nv,) [N·m] against forward and backward motion."""

    def inverse_mass(self, q: Vector) -> Vector:
        """Return M(q)⁻¹ (nv, nv)."""

    def set_end_stops(self, lower: Vector, upper: Vector) -> None:
        """Set the positions at which the end stops begin, instead of ``lower`` and ``upper``."""


class CompiledSystem(System, Protocol):
    """A system of compiled equations only: no actuator states, no prescribed motion."""

    def kick_drift(self, q: Vector, v: Vector, dt: float, steps: int) -> bool:
        """Repeat v += dt a(q, v), q += dt v ``steps`` times, in place; see ``Integrator.run``."""


class Integrator(ABC):
    """Numerical method that advances a System by dt [s]."""

    name: ClassVar[str]
    order: ClassVar[int]
    drift_fraction: ClassVar[float] = 0.5
    """Factor of Δq = factor dt Δv, the displacement in a step under a constant force."""
    force_response_terms: ClassVar[tuple[float, ...]] = (1.0,)
    """Terms of p: a constant force f gives M v' = f - B v the speed dt p(-dt M⁻¹ B) M⁻¹ f."""
    implicit_damping: ClassVar[str] = "nothing"
    """Damping that a step treats implicitly: of "nothing", "windings" or "everything"."""
    resolves_dry_friction: ClassVar[bool] = False
    """Whether ``advance`` includes dry friction."""

    @abstractmethod
    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""

    def split_damping(self, braking: Vector, winding: Vector) -> tuple[Vector, Vector]:
        """Return the implicit damping (nv,) of a step and that of ``force_response_terms``.

        From ``braking`` -∂τ/∂v and ``winding``, the part of it that acts through currents.
        """
        if self.implicit_damping == "everything":
            return 0.5 * braking, 0.0 * braking
        return (winding if self.implicit_damping == "windings" else 0.0 * braking), braking

    @np.errstate(all="ignore")  # divergence is returned, not warned of
    def run(self, system: CompiledSystem, q: Vector, v: Vector, dt: float, steps: int) -> bool:
        """Repeat ``advance`` ``steps`` times, without dry friction.

        Returns whether q and v were finite and still are.
        """
        if not all_finite(q, v, NONE):
            return False
        for _ in range(steps):
            self.advance(system, q, v, NONE, dt)
        return all_finite(q, v, NONE)
