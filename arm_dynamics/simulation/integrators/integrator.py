"""Interfaces of an integrator and of the system that it advances, and Jacobians by differences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import all_finite
from arm_dynamics.simulation.friction import velocity_after_dry_friction

Moved = tuple[Vector, Vector, Vector, Vector]
"""Motion after some steps: q, v, actuator effort as last evaluated, z; read-only."""


class System(Protocol):
    """q̇ = v,  v̇ = a(q, v, z),  ż = n(q, v, z) - λ(q, v, z) z: the arm under one command.

    z (na,) are the actuator states ``act``. λ >= 0 can be far above 1/dt, as of a winding current:
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


class SteppedSystem(System, Protocol):
    """A system with the terms that act between smooth motions: each is empty where it has none."""

    prescribed: list[int]
    """Joints whose position an actuator prescribes."""
    has_dry_friction: bool
    compiled: bool
    """Whether ``semi_implicit_steps`` evaluates every term."""

    @property
    def effort(self) -> Vector:
        """Effort of the actuators (nv,) as last evaluated, a new array."""

    def start_prescribed_motion(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """Start the prescribed joints, in place; return their positions (np,) after dt."""

    def step_damping(self, q: Vector, v: Vector, z: Vector, dt: float) -> tuple[Vector, Vector]:
        """Return -∂τ/∂v (nv,) within a step: in total, and of winding currents."""

    def force_response(
        self, q: Vector, implicit: Vector, braking: Vector, terms: Sequence[float], dt: float
    ) -> Vector:
        """Return the change of velocity (nv, nv) in one step per impulse of a constant force."""

    def dry_friction_bounds_at(self, speed: Vector) -> tuple[Vector, Vector]:
        """Return ``dry_friction_bounds`` at ``speed`` (nv,), with the efforts last evaluated."""

    def apply_internal_friction(self, before: Vector, z: Vector, dt: float) -> None:
        """Apply the dry friction of rotors over dt to z, in place; ``before`` is z before."""

    def semi_implicit_steps(
        self, q: Vector, v: Vector, z: Vector, dt: float, steps: int
    ) -> Moved | None:
        """Return the motion after ``steps`` steps of semi-implicit Euler; None unless finite."""


def jacobian_by_differences(function: Callable[[Vector], Vector], x: Vector, step: float) -> Vector:
    """Return ∂f/∂x (n, n) by forward differences of ``step`` times max(1, |x_k|)."""
    J, here = np.empty((x.size, x.size)), function(x)
    for k in range(x.size):
        near = x.copy()
        near[k] += step * max(1.0, abs(x[k]))
        J[:, k] = (function(near) - here) / (near[k] - x[k])
    return J


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

    def step(self, system: SteppedSystem, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Take one time step of the whole equation, in place.

        Prescribed joints follow their actuators; the others move smoothly over dt; then the
        impulses of dry friction act at the joints and on rotors behind backlash.
        """
        goals = system.start_prescribed_motion(q, v, z, dt)
        start_q, start_v, start_z = q.copy(), v.copy(), z.copy()
        self.advance(system, q, v, z, dt)
        if system.has_dry_friction and not self.resolves_dry_friction and np.isfinite(v).all():
            damping = system.step_damping(start_q, start_v, z, dt)
            response = system.force_response(
                start_q, *self.split_damping(*damping), self.force_response_terms, dt
            )
            # A joint at rest or at a reversal must break away: velocity 0 counts.
            sliding = np.where(start_v * v > 0, start_v, 0.0)
            forward, backward = system.dry_friction_bounds_at(sliding)
            after = velocity_after_dry_friction(v, response, dt * forward, dt * backward)
            q += self.drift_fraction * dt * (after - v)
            v[:] = after
            stuck = (start_v == 0) & (after == 0)
            q[stuck] = start_q[stuck]
        system.apply_internal_friction(start_z, z, dt)
        q[system.prescribed] = goals

    def motion_of(self, system: SteppedSystem) -> Callable[..., Moved | None]:
        """Return ``run`` for ``system``, a function of (q, v, z, dt, steps)."""
        return partial(self.run, system)

    @np.errstate(all="ignore")  # divergence is returned, not warned of
    def run(
        self, system: SteppedSystem, q: Vector, v: Vector, z: Vector, dt: float, steps: int
    ) -> Moved | None:
        """Return the motion after ``steps`` time steps; None unless all is finite."""
        q, v, z, finite = q.copy(), v.copy(), z.copy(), all_finite(q, v, z)
        while finite and steps:
            self.step(system, q, v, z, dt)
            finite, steps = all_finite(q, v, z), steps - 1
        if not finite:
            return None
        moved = q, v, system.effort, z
        for array in moved:
            array.flags.writeable = False
        return moved
