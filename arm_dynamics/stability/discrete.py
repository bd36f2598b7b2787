"""One time step of an integrator on the linearized arm, as matrices."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.integrators import integrator
from arm_dynamics.integrators.relaxation import phi
from arm_dynamics.linearization import Linearization, held_step
from arm_dynamics.own_states import update_groups


class _LinearMotion:
    """v̇ and ż as rows of A y + B u: what the integrators advance, with λ as of the arm."""

    def __init__(self, linear: Linearization) -> None:
        nv = linear.arm.nv
        self.joint_names, self.groups = linear.arm.joint_names, update_groups(linear.arm)
        self.lower, self.upper = np.full(nv, -np.inf), np.full(nv, np.inf)
        self.rubbing = np.zeros(nv, dtype=bool)
        self.linear, self.push = linear, np.zeros(linear.B.shape[0])

    def acceleration(self, q: Vector, v: Vector, z: Vector) -> Vector:
        """v̇."""
        return self._rate(q, v, z)[q.size : 2 * q.size]

    def settled_acceleration(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """(I - dt A_vz dt φ₁(-λ dt) A_zv)⁻¹ v̇: with what z, relaxed over dt, gives back."""
        nv, A = q.size, self.linear.A
        reach = dt * phi(self.linear.decay * dt)[0]
        back = A[nv : 2 * nv, 2 * nv :] @ (reach[:, None] * A[2 * nv :, nv : 2 * nv])
        settled: Vector = np.linalg.solve(np.eye(nv) - dt * back, self.acceleration(q, v, z))
        return settled

    def rates(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """λ, and n from ż = n - λ z."""
        decay = self.linear.decay
        return decay.copy(), self._rate(q, v, z)[2 * q.size :] + decay * z

    def dry(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """None."""
        return np.zeros(q.size), np.zeros(q.size)

    def inverse_mass(self, q: Vector) -> Vector:
        """Of no use without dry friction."""
        return np.eye(q.size)

    def put_stops(self, lower: Vector, upper: Vector) -> None:
        """There are none."""

    def _rate(self, q: Vector, v: Vector, z: Vector) -> Vector:
        rate: Vector = self.linear.A @ np.concatenate([q, v, z]) + self.push
        return rate


def discrete_map(linear: Linearization, method: str, dt: float) -> tuple[Vector, Vector]:
    """Φ (n, n) and Γ (n, nv) of δy⁺ = Φ δy + Γ δu, one time step dt [s] of ``method``.

    The method itself takes the step, from each unit vector: linear methods make linear maps.
    "adaptive" is exact: e^(A dt). Equals the derivative of ``Plant.step`` where the arm is at
    rest in balance and no stop, limit or dry friction acts. Raises UnknownName for a method.
    """
    if integrator(method).resolves_dry_friction:
        return held_step(linear.A, linear.B, dt)
    motion, step = _LinearMotion(linear), integrator(method)
    n, m = linear.B.shape
    nv, image = linear.arm.nv, np.empty((n + m, n))
    for k in range(n + m):
        y = np.zeros(n)
        motion.push = linear.B[:, k - n] if k >= n else np.zeros(n)
        if k < n:
            y[k] = 1.0
        step.advance(motion, y[:nv], y[nv : 2 * nv], y[2 * nv :], dt)
        image[k] = y
    return image[:n].T.copy(), image[n:].T.copy()
