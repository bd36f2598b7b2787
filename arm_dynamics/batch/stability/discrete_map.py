"""One time step of an integrator on a linearized arm, as matrices."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.integrators.exponential_step import phi_functions
from arm_dynamics.simulation.joint_physics import update_groups
from arm_dynamics.simulation.linearization import Linearization, zero_order_hold


def discrete_map(linear: Linearization, method: str, dt: float) -> tuple[Matrix, Matrix]:
    """Return Φ and Γ of δy⁺ = Φ δy + Γ δu, one time step of an integrator.

    The integrator itself steps from each unit vector: it maps a linear system linearly. "adaptive"
    is exact: e^(A dt). The result is the derivative of ``Plant.step`` at rest in equilibrium where
    no end stop, limit or dry friction acts.

    Parameters
    ----------
    linear : Linearization
        Linearized arm.
    method : str
        Integrator.
    dt : float
        Time step [s].

    Returns
    -------
    tuple of Matrix
        Φ (n, n), Γ (n, nv).

    Raises
    ------
    UnknownName
        If the integrator does not exist.

    """
    step = find_integrator(method)
    if step.resolves_dry_friction:
        return zero_order_hold(linear.A, linear.B, dt)
    system = _LinearSystem(linear)
    n, m = linear.B.shape
    nv, image = linear.arm.nv, np.empty((n + m, n))
    for k in range(n + m):
        y = np.zeros(n)
        system.input = linear.B[:, k - n] if k >= n else np.zeros(n)
        if k < n:
            y[k] = 1.0
        step.advance(system, y[:nv], y[nv : 2 * nv], y[2 * nv :], dt)
        image[k] = y
    return image[:n].T.copy(), image[n:].T.copy()


class _LinearSystem:
    """A y + B u as the system that an integrator advances, with the arm's decay rates λ."""

    def __init__(self, linear: Linearization) -> None:
        nv = linear.arm.nv
        self.joint_names, self.groups = linear.arm.joint_names, update_groups(linear.arm)
        self.lower, self.upper = np.full(nv, -np.inf), np.full(nv, np.inf)
        self.dry_friction_joints = np.zeros(nv, dtype=bool)
        self.linear, self.input = linear, np.zeros(linear.B.shape[0])

    def acceleration(self, q: Vector, v: Vector, act: Vector) -> Vector:
        """Return v̇."""
        return self._rate(q, v, act)[q.size : 2 * q.size]

    def implicit_acceleration(self, q: Vector, v: Vector, act: Vector, dt: float) -> Vector:
        """Return (I - dt A_vz dt φ₁(-λ dt) A_zv)⁻¹ v̇: v̇ with the states integrated over dt."""
        nv, A = q.size, self.linear.A
        reach = dt * phi_functions(self.linear.decay * dt)[0]
        back = A[nv : 2 * nv, 2 * nv :] @ (reach[:, None] * A[2 * nv :, nv : 2 * nv])
        settled: Vector = np.linalg.solve(np.eye(nv) - dt * back, self.acceleration(q, v, act))
        return settled

    def act_dot_terms(self, q: Vector, v: Vector, act: Vector) -> tuple[Vector, Vector]:
        """Return λ and n of ż = n - λ z."""
        decay = self.linear.decay
        return decay.copy(), self._rate(q, v, act)[2 * q.size :] + decay * act

    def dry_friction_bounds(self, q: Vector, v: Vector, act: Vector) -> tuple[Vector, Vector]:
        """Return zeros."""
        return np.zeros(q.size), np.zeros(q.size)

    def inverse_mass(self, q: Vector) -> Vector:
        """Return an identity, which is used with dry friction only."""
        return np.eye(q.size)

    def set_end_stops(self, lower: Vector, upper: Vector) -> None:
        """Do nothing: a linear system has no end stops."""

    def _rate(self, q: Vector, v: Vector, act: Vector) -> Vector:
        rate: Vector = self.linear.A @ np.concatenate([q, v, act]) + self.input
        return rate
