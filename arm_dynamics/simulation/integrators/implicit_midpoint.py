"""The implicit midpoint rule, solved to round-off."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.integrators.exponential_step import exponential_step
from arm_dynamics.simulation.integrators.integrator import (
    Integrator,
    System,
    jacobian_by_differences,
)

ROUND_OFF = 4 * np.finfo(float).eps
"""Change, relative to the largest entry or 1e-3, at which an iteration has converged."""
ROUNDING_TOLERANCE = 1e-11
"""The same, relative to the largest entry or 1, for a change that no longer decreases."""
MAX_FIXED_POINT_ITERATIONS, MAX_NEWTON_ITERATIONS = 30, 30
"""Largest number of iterations of each kind."""
CONTRACTION = 0.1
"""Ratio of successive changes below which an iteration continues unchanged."""
NUDGE = 1.5e-8
"""Relative step of the differences for Newton's matrix."""


class ImplicitMidpoint(Integrator):
    """v⁺ = v + dt a(q̄, v̄, z̄),  q⁺ = q + dt v̄,  q̄ = q + dt/2 v̄,  v̄ = (v + v⁺)/2. Second order.

    Symplectic; stable at any dt if the motion is. z̄ and z⁺ are integrated exactly from z over half
    a step and a step, with λ and n at the midpoint. Solved by fixed-point iteration, and by
    Newton's method where that does not contract.
    Source: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration (2006), I.1.2, VIII.6.
    """

    name: ClassVar[str] = "implicit_midpoint"
    order: ClassVar[int] = 2
    implicit_damping: ClassVar[str] = "everything"

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt.

        Raises InvalidValue naming dt and the joint when no iteration converges.
        """
        middle = _Midpoint(system, q, v, z, dt)
        x = middle.solve()
        vm, zm = x[: v.size], x[v.size :]
        if z.size:
            z[:] = exponential_step(z, *system.act_dot_terms(q + 0.5 * dt * vm, vm, zm), dt)
        q += dt * vm
        v[:] = 2 * vm - v


class _Midpoint:
    """Equation x = G(x) of the midpoint x = (v̄, z̄) of one step."""

    def __init__(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        self.system, self.q, self.v, self.z, self.dt = system, q, v, z, dt
        self.start = np.concatenate([v, z])
        self.min_position, self.max_position = np.full(q.size, -np.inf), np.full(q.size, np.inf)
        self.iterates: list[Vector] = []

    def __call__(self, x: Vector) -> Vector:
        """Return G(x) = (v + dt/2 a(q̄, v̄, z̄), z after dt/2)."""
        vm, zm, half = x[: self.v.size], x[self.v.size :], 0.5 * self.dt
        qm = np.clip(self.q + half * vm, self.min_position, self.max_position)
        velocity: Vector = self.v + half * self.system.acceleration(qm, vm, zm)
        if not self.z.size:
            return velocity
        return np.concatenate(
            [velocity, exponential_step(self.z, *self.system.act_dot_terms(qm, vm, zm), half)]
        )

    def solve(self) -> Vector:
        """Return the fixed point; raises InvalidValue if the iterations do not converge."""
        x, last = self(self.start), np.inf
        for _ in range(MAX_FIXED_POINT_ITERATIONS):
            image = self(x)
            change = float(np.abs(image - x).max())
            if _converged(change, last, x):
                return image
            if not change < CONTRACTION * last:
                break
            x, last = image, change
        found = self._newton(x if np.isfinite(x).all() else self.start)
        if found is None and self._hold_in_stops():
            found = self._newton(self(self.start))
        if found is None:
            step = self.iterates[-1] - self.iterates[-2] if len(self.iterates) > 1 else self.start
            worst = int(np.argmax(np.abs(step[: self.v.size])))
            raise InvalidValue(
                f"implicit_midpoint: no convergence at joint '{self.system.joint_names[worst]}'"
                f" with dt = {self.dt:g} s; reduce dt or use another integrator"
            )
        return found

    def _newton(self, x: Vector) -> Vector | None:
        """Iterate by Newton's method; the matrix is recomputed when convergence is slow."""
        last, matrix = np.inf, None
        for _ in range(MAX_NEWTON_ITERATIONS):
            residual = self(x) - x
            if matrix is None:
                matrix = np.eye(x.size) - jacobian_by_differences(self, x, NUDGE)
            if not (np.isfinite(matrix).all() and np.isfinite(residual).all()):
                return None
            try:
                step = np.linalg.solve(matrix, residual)
            except np.linalg.LinAlgError:
                return None
            x = x + step
            self.iterates.append(x)
            change = float(np.abs(step).max())
            if _converged(change, last, x):
                return x
            is_reused = change < CONTRACTION * last or change < ROUNDING_TOLERANCE
            matrix = matrix if is_reused else None
            last = change
        return None

    def _hold_in_stops(self) -> bool:
        """Put joints that alternate between free motion and an end stop into the stop.

        The damping of an end stop is discontinuous: with it the joint may not reach the stop,
        without it the joint may pass. Returns whether there is such a joint.
        """
        ends = [self.q + 0.5 * self.dt * x[: self.v.size] for x in self.iterates]
        for beyond, limit, bound, direction in (
            (np.greater, self.system.upper, self.min_position, np.inf),
            (np.less, self.system.lower, self.max_position, -np.inf),
        ):
            sides = np.array([beyond(end, limit) for end in ends])
            alternating = sides.any(axis=0) & ~sides.all(axis=0)
            bound[alternating] = np.nextafter(limit[alternating], direction)
        return bool(np.isfinite(self.min_position).any() or np.isfinite(self.max_position).any())


def _converged(change: float, last: float, x: Vector) -> bool:
    """Return whether a change of x, after the change ``last``, is only round-off."""
    size = float(np.abs(x).max())
    return bool(
        change <= ROUND_OFF * max(size, 1e-3)
        or ROUNDING_TOLERANCE * max(size, 1.0) > change >= last
    )
