"""The implicit midpoint rule, solved to round-off."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import InvalidValue
from arm_dynamics.integrators.base import Integrator, Motion
from arm_dynamics.integrators.relaxation import relaxed

ROUND_OFF = 4 * np.finfo(float).eps
"""Relative change at which an iteration has arrived."""
NEARLY = 1e-11
"""Relative change from which an iteration that no longer shrinks has arrived too."""
SIMPLE, NEWTON = 30, 30
"""Most iterations of each kind."""
NUDGE = 1.5e-8
"""Relative step of the differences that make Newton's matrix."""


class ImplicitMidpoint(Integrator):
    """v⁺ = v + dt a(q̄, v̄, z̄),  q⁺ = q + dt v̄,  q̄ = q + dt/2 v̄,  v̄ = (v + v⁺)/2. Second order.

    Symplectic; stable at any dt where the motion is. Own states: z̄ and z⁺ are relaxed from z over
    half and a whole step, with λ and n at the midpoint. Solved by simple iteration, by Newton's
    where that does not contract.
    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2, VIII.6.
    """

    name: ClassVar[str] = "implicit_midpoint"
    order: ClassVar[int] = 2

    def advance(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt.

        Raises InvalidValue naming dt and the joint when no iteration converges.
        """
        middle = _Middle(motion, q, v, z, dt)
        x = middle.solve()
        vm, zm = x[: v.size], x[v.size :]
        if z.size:
            z[:] = relaxed(z, *motion.rates(q + 0.5 * dt * vm, vm, zm), dt)
        q += dt * vm
        v[:] = 2 * vm - v


class _Middle:
    """The equation x = G(x) of the midpoint's x = (v̄, z̄) for one step."""

    def __init__(self, motion: Motion, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        self.motion, self.q, self.v, self.z, self.dt = motion, q, v, z, dt
        self.start = np.concatenate([v, z])

    def __call__(self, x: Vector) -> Vector:
        """G(x) = (v + dt/2 a(q̄, v̄, z̄), z relaxed over dt/2)."""
        vm, zm, half = x[: self.v.size], x[self.v.size :], 0.5 * self.dt
        qm = self.q + half * vm
        velocity = self.v + half * self.motion.acceleration(qm, vm, zm)
        if not self.z.size:
            return velocity
        return np.concatenate([velocity, relaxed(self.z, *self.motion.rates(qm, vm, zm), half)])

    def solve(self) -> Vector:
        """The fixed point; raises InvalidValue when there is none to be found."""
        x, last = self(self.start), np.inf
        for _ in range(SIMPLE):
            image = self(x)
            change = self._relative(image - x, x)
            if change <= ROUND_OFF or NEARLY > change >= last:
                return image
            if not change < 0.5 * last:
                break
            x, last = image, change
        return self._newton(self(self.start))

    def _newton(self, x: Vector) -> Vector:
        last = np.inf
        step = x
        for _ in range(NEWTON):
            miss = self(x) - x
            if not np.isfinite(miss).all():
                break
            step = np.array(np.linalg.solve(np.eye(x.size) - self._slope(x), miss), dtype=float)
            x = x + step
            change = self._relative(step, x)
            if change <= ROUND_OFF or NEARLY > change >= last:
                return x
            last = change
        raise self._no_solution(step)

    def _slope(self, x: Vector) -> Vector:
        """∂G/∂x by differences."""
        slope, here = np.empty((x.size, x.size)), self(x)
        for k in range(x.size):
            near = x.copy()
            near[k] += NUDGE * max(1.0, abs(x[k]))
            slope[:, k] = (self(near) - here) / (near[k] - x[k])
        return slope

    @staticmethod
    def _relative(change: Vector, x: Vector) -> float:
        """Largest change of an entry, compared with the largest entry."""
        return float(np.abs(change).max() / (np.abs(x).max() + 1e-30))

    def _no_solution(self, step: Vector) -> InvalidValue:
        worst = int(np.argmax(np.abs(step[: self.v.size])))
        return InvalidValue(
            f"implicit_midpoint: no solution found with dt = {self.dt:g} s at joint"
            f" '{self.motion.joint_names[worst]}': use a smaller dt or another method"
        )
