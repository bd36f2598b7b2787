"""Transition between two task-space references without a jump: a difference that decays.

A rotation difference is the rotation vector φ of E = exp([φ]×). Its angular velocity is
Ω = J(φ) φ̇ with the left Jacobian J = 1 + A [φ]× + B [φ]×², A = (1 - cos θ) / θ²,
B = (θ - sin θ) / θ³, θ = |φ|; singular at θ = 2π. Reference: Sola, Deray, Atchuthan, A micro Lie
theory (2018), eq. 145; the derivatives follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, sin, sqrt

import numpy as np
import pinocchio as pin

from arm_dynamics.control.trajectories.polynomials import boundary_polynomial, evaluate
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics.frames import acceleration, pose, twist
from arm_dynamics.model.arm_model import ArmModel

ZERO_TWIST = as_readonly(np.zeros(6))
ROUNDING = 1e-12
"""Difference that counts as 0."""
SMALL = 1e-2
"""Angle below which series are more exact than the quotients [rad]."""
ZERO_ANGLE_TOLERANCE = 1e-100
"""Angle that replaces 0 in a denominator [rad]."""


@dataclass(frozen=True, slots=True, eq=False)
class TransitionBlend:
    """Difference added to a plan from ``begin`` to ``end`` [s].

    A quintic polynomial of 12 + nv columns: position, rotation vector, wrench and posture. It ends
    at 0 with its first two derivatives.
    """

    begin: float
    end: float
    coefficients: Matrix

    @classmethod
    def between(
        cls, planned: TaskReference, current: TaskReference, begin: float, end: float
    ) -> TransitionBlend | None:
        """Return the transition from ``current`` to ``planned``, both at ``begin``; None if equal.

        R = E R_plan, ω = Ω + E ω_plan, ω̇ = Ω̇ + E ω̇_plan + Ω × E ω_plan.

        Parameters
        ----------
        planned, current : TaskReference
            References at the time ``begin``.
        begin, end : float
            Start and end of the transition [s].

        """
        phi = pin.log3(current.rotation @ planned.rotation.T)
        E = pin.exp3(phi)
        base = E @ planned.twist[3:]
        omega = current.twist[3:] - base
        alpha = current.acceleration[3:] - E @ planned.acceleration[3:] - pin.skew(omega) @ base
        rate, second = rotation_vector_derivatives(phi, omega, alpha)
        p, v, a = (
            current.position - planned.position,
            current.twist[:3] - planned.twist[:3],
            current.acceleration[:3] - planned.acceleration[:3],
        )
        difference = (
            np.concatenate([p, phi, current.wrench - planned.wrench, current.q - planned.q]),
            np.concatenate([v, rate, ZERO_TWIST, current.v - planned.v]),
            np.concatenate([a, second, ZERO_TWIST, current.a - planned.a]),
        )
        if max(np.abs(x).max() for x in difference) < ROUNDING:
            return None
        ends = ((x, np.zeros_like(x)) for x in difference)
        return cls(begin, end, as_readonly(boundary_polynomial(end - begin, *ends)))

    def added(self, planned: TaskReference, time: float) -> TaskReference:
        """Return ``planned`` with the difference; both at ``time`` [s]."""
        x, v, a = evaluate(self.coefficients, time - self.begin)
        E, omega, alpha = rotation_and_derivatives(x[3:6], v[3:6], a[3:6])
        base = E @ planned.twist[3:]
        change = alpha + E @ planned.acceleration[3:] + pin.skew(omega) @ base
        return TaskReference(
            as_readonly(planned.q + x[12:]),
            as_readonly(planned.v + v[12:]),
            as_readonly(planned.a + a[12:]),
            position=as_readonly(planned.position + x[:3]),
            rotation=as_readonly(E @ planned.rotation),
            twist=as_readonly(np.concatenate([planned.twist[:3] + v[:3], omega + base])),
            acceleration=as_readonly(np.concatenate([planned.acceleration[:3] + a[:3], change])),
            wrench=as_readonly(planned.wrench + x[6:12]),
        )


def to_task_reference(arm: ArmModel, reference: Reference) -> TaskReference:
    """Return a joint reference as that of its tool: p, R of q, J v, J a + J̇ v, no wrench.

    Parameters
    ----------
    arm : ArmModel
        Arm with the tool.
    reference : Reference
        Joint reference; a TaskReference is returned unchanged.

    Returns
    -------
    TaskReference

    """
    if isinstance(reference, TaskReference):
        return reference
    q, v, a = reference.q, reference.v, reference.a
    rates, changes = twist(arm, q, v), acceleration(arm, q, v, a)
    return TaskReference(q, v, a, *pose(arm, q), rates, changes, ZERO_TWIST)


def at_rest(r: TaskReference) -> TaskReference:
    """Return the reference at rest at the pose of ``r``."""
    zero = as_readonly(np.zeros_like(r.q))
    return TaskReference(
        r.q, zero, zero, position=r.position, rotation=r.rotation,
        twist=ZERO_TWIST, acceleration=ZERO_TWIST, wrench=r.wrench,
    )  # fmt: skip


def rotation_and_derivatives(
    phi: Vector, rate: Vector, second: Vector
) -> tuple[Matrix, Vector, Vector]:
    """Return E (3, 3), angular velocity Ω [rad/s] and acceleration Ω̇ [rad/s²] from φ, φ̇, φ̈."""
    J = left_jacobian(phi)
    return pin.exp3(phi), J @ rate, J @ second + _drift(phi, rate)


def angular_velocities(phi: Matrix, rate: Matrix) -> Matrix:
    """Return Ω (n, 3) = φ̇ + A φ × φ̇ + B φ × (φ × φ̇) of φ and φ̇, each (n, 3)."""
    t = np.linalg.norm(phi, axis=1)[:, None]
    once = np.cross(phi, rate)
    A = np.sinc(t / 2 / np.pi) ** 2 / 2
    B = (1 - np.sinc(t / np.pi)) / np.maximum(t, ZERO_ANGLE_TOLERANCE) ** 2
    omega: Matrix = rate + A * once + B * np.cross(phi, once)  # B's rounding decreases with φ²
    return omega


def rotation_vector_derivatives(phi: Vector, omega: Vector, alpha: Vector) -> tuple[Vector, Vector]:
    """Return φ̇ and φ̈ of a rotation φ with angular velocity Ω and acceleration Ω̇."""
    inverse = np.linalg.inv(left_jacobian(phi))
    rate: Vector = inverse @ omega
    second: Vector = inverse @ (alpha - _drift(phi, rate))
    return rate, second


def left_jacobian(phi: Vector) -> Matrix:
    """Return J(φ) (3, 3)."""
    A, B, _, _ = _factors(phi)
    cross = pin.skew(phi)
    J: Matrix = np.eye(3) + A * cross + B * cross @ cross
    return J


def _drift(phi: Vector, rate: Vector) -> Vector:
    """Return J̇ φ̇ = Ȧ φ×φ̇ + Ḃ φ×(φ×φ̇) + B φ̇×(φ×φ̇)."""
    _, B, dA, dB = _factors(phi)
    cross = pin.skew(phi)
    turned = cross @ rate
    drift: Vector = phi @ rate * (dA * turned + dB * cross @ turned) + B * pin.skew(rate) @ turned
    return drift


def _factors(phi: Vector) -> tuple[float, float, float, float]:
    """Return A, B, and A' / θ, B' / θ, so that Ȧ = (A' / θ) φ·φ̇."""
    t = sqrt(phi @ phi)
    if t < SMALL:
        t2 = t * t
        return (
            1 / 2 - t2 / 24 + t2 * t2 / 720,
            1 / 6 - t2 / 120 + t2 * t2 / 5040,
            -1 / 12 + t2 / 180 - t2 * t2 / 6720,
            -1 / 60 + t2 / 1260 - t2 * t2 / 60480,
        )
    A, B = (1 - cos(t)) / t**2, (t - sin(t)) / t**3
    return A, B, (sin(t) / t - 2 * A) / t**2, (A - 3 * B) / t**2
