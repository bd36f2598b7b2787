"""What an integrator advances, and the face that all of them share."""

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

    z (na,) are the actuators' own states. λ >= 0 can be far above 1/dt, as with a winding's
    current: integrators take its exponential exactly. Dry friction is apart from a.
    """

    groups: tuple[Any, ...]
    """Index arrays into z: a step updates one group after the other, each from those before."""
    joint_names: tuple[str, ...]
    lower: Vector
    upper: Vector
    """Positions (nv,) at which the joints meet their stops."""
    dry_friction_joints: NDArray[np.bool_]
    """Whether a joint ever feels dry friction, (nv,)."""

    def acceleration(self, q: Vector, v: Vector, z: Vector) -> Vector:
        """v̇ (nv,) [rad/s²], a fresh array."""

    def implicit_acceleration(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """(M + dt D)⁻¹ M v̇: v̇ with what the windings' currents z, relaxed over dt, brake (D)."""

    def act_dot_terms(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """λ and n, (na,) each, fresh arrays."""

    def dry_friction_bounds(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """Largest dry friction (nv,) [N·m] against forward and against backward motion."""

    def inverse_mass(self, q: Vector) -> Vector:
        """M(q)⁻¹ (nv, nv)."""

    def set_end_stops(self, lower: Vector, upper: Vector) -> None:
        """Let the stops' springs begin at other positions than ``lower`` and ``upper``."""


class CompiledSystem(System, Protocol):
    """A motion with compiled laws alone: no own states, no joint that its actuator places."""

    def kick_drift(self, q: Vector, v: Vector, dt: float, steps: int) -> bool:
        """``steps`` times v += dt a(q, v), q += dt v, in place; as ``Integrator.run``."""


class Integrator(ABC):
    """Advances a Motion by dt [s]."""

    name: ClassVar[str]
    order: ClassVar[int]
    drift_fraction: ClassVar[float] = 0.5
    """Share of dt for which a constant force moves the positions in a step: Δq = share dt Δv."""
    force_response_terms: ClassVar[tuple[float, ...]] = (1.0,)
    """Terms of p: a constant force f gives M v' = f - B v the speed dt p(-dt M⁻¹ B) M⁻¹ f."""
    implicit_damping: ClassVar[str] = "nothing"
    """Damping that a step takes implicitly: of "nothing", of "windings", or of "everything"."""
    resolves_dry_friction: ClassVar[bool] = False
    """Whether ``advance`` takes dry friction into account itself."""

    @abstractmethod
    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""

    def split_damping(self, braking: Vector, winding: Vector) -> tuple[Vector, Vector]:
        """Damping (nv,) that a step takes implicitly, and what its ``force_response_terms`` is to know of.

        Of ``braking`` -∂tau/∂v, and ``winding``, the part of it that comes through currents.
        """
        if self.implicit_damping == "everything":
            return 0.5 * braking, 0.0 * braking
        return (winding if self.implicit_damping == "windings" else 0.0 * braking), braking

    @np.errstate(all="ignore")  # what leaves the finite numbers is told, not warned of
    def run(self, system: CompiledSystem, q: Vector, v: Vector, dt: float, steps: int) -> bool:
        """``steps`` times ``advance``, without dry friction.

        Returns whether q and v were finite and still are.
        """
        if not all_finite(q, v, NONE):
            return False
        for _ in range(steps):
            self.advance(system, q, v, NONE, dt)
        return all_finite(q, v, NONE)
