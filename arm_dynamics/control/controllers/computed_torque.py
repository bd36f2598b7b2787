"""Computed torque (inverse dynamics control): the arm as decoupled double integrators."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import anti_windup_step
from arm_dynamics.control.controllers.controller import MAX_VALUE, Controller, Gains
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    FrictionCompensation,
)
from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel


@compiled_for(MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def commanded_acceleration(
    gains: Matrix, integral: Vector, q_ref: Vector, v_ref: Vector, a_ref: Vector, q: Vector,
    v: Vector,
) -> Vector:  # fmt: skip
    """Return a_ref + kp e + kd ė + ∫ (nv,) [rad/s²]; rows of gains (4, nv): the parameters."""
    a = np.empty(q.size)
    for j in range(q.size):
        feedback = gains[0, j] * (q_ref[j] - q[j]) + gains[2, j] * (v_ref[j] - v[j])
        a[j] = a_ref[j] + feedback + integral[j]
    return a


@compiled_for(MATRIX, VECTOR_OUT, VECTOR, VECTOR, VECTOR, VECTOR, NUMBER)
def clamp_and_integrate(
    gains: Matrix, integral: Vector, desired: Vector, limit: Vector, q_ref: Vector, q: Vector,
    dt: float,
) -> Vector:  # fmt: skip
    """Return efforts (nv,) [N·m] within ±limit; changes ``integral`` (nv,) in place."""
    effort, saturated = np.empty(q.size), False
    for j in range(q.size):
        effort[j] = clip(desired[j], -limit[j], limit[j])
        saturated = saturated | (effort[j] != desired[j])
    for j in range(q.size):
        error = q_ref[j] - q[j]
        integral[j] = anti_windup_step(gains[1, j], gains[3, j], error, saturated, integral[j], dt)
    return effort


@compiled_for(MATRIX, MATRIX_OUT, VECTOR, VECTOR, VECTOR, NUMBER)
def advance_reference_model(
    gains: Matrix, model: Matrix, q_ref: Vector, v_ref: Vector, a_ref: Vector, dt: float
) -> None:
    """Advance the rows q_m, v_m, ∫_m (3, nv) of ``model`` by an implicit Euler step, in place.

    q̈_m = a_ref + kp (q_ref - q_m) + kd (v_ref - v_m) + ∫_m, and d∫_m/dt = ki (q_ref - q_m).
    """
    for j in range(q_ref.size):
        kp, ki, kd, clamp = gains[0, j], gains[1, j], gains[2, j], gains[3, j]
        error = q_ref[j] - model[0, j]
        forced = a_ref[j] + kp * error + kd * v_ref[j] + model[2, j] + dt * ki * error
        model[1, j] = (model[1, j] + dt * forced) / (1.0 + dt * (kd + dt * (kp + dt * ki)))
        model[0, j] += dt * model[1, j]
        integral = model[2, j] + dt * ki * (q_ref[j] - model[0, j])
        model[2, j] = clip(integral, -clamp, clamp)


class ComputedTorque(Controller):
    """tau = M(q) (a_ref + kp e + kd ė + ki ∫e dt) + C(q, v) v + g(q) + b v_ref + f s(v_m).

    e = q_ref - q, s(v) = clip(v / SLOW, ±1) (``FrictionCompensation``). M, C, g, viscous friction b
    and dry friction f are those of the controller's model. With an exact model and b = 0 every
    joint satisfies ë + kd ė + kp e + ki ∫e = 0 in every configuration: the gains do not depend on
    the arm. The default gains have poles at -3.6, -18 and -38 1/s and overshoot a step by 14 %.

    v_m is the velocity of a reference model: a joint without friction that satisfies the equation
    above. Along a trajectory v_m = v_ref. After a step of q_ref it is the velocity that the joint
    should have: a joint in stiction then does not disturb the joints that its acceleration was to
    balance. v_m depends on references only: stability does not depend on f.

    A joint with viscous friction gets (b / kd) (kp e + ki ∫e) in addition. It then satisfies
    M ë + (M + b / kd) (kd ė + kp e + ki ∫e) = 0: with little inertia it is controlled with its
    friction's time constant.

    While any effort is saturated the arm does not accelerate as commanded: integrals then only
    decrease. They are limited to i_clamp.

    References
    ----------
    Siciliano et al., Robotics (2009), section 8.5.2 (inverse dynamics control).

    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "kp", 900.0, "1/s²", "acceleration per position error", lower=0, upper=1e6, order=2
        ),
        Parameter("ki", 2500.0, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
        Parameter(
            "kd", 60.0, "1/s", "acceleration per velocity error", lower=0, upper=1e4, order=1
        ),
        Parameter("i_clamp", inf, "rad/s²", "maximum acceleration of the integral", lower=0),
    )
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (FRICTION_COMPENSATION,)

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._integral: Vector = np.zeros(arm.nv)
        self._reference_model: Matrix = np.zeros((3, arm.nv))

    def reset(self, state: State) -> None:
        """Set the integral so that the first output is the measured effort.

        ∫ = (M + b / kd)⁻¹ (tau - C v - g + M kd v) on a reference at rest; 0 if the effort is
        unknown (NaN), and for a joint with ki = 0. The reference model starts at rest at q.
        """
        state, _ = self.bounded_inputs(state, Reference.hold(state.q))
        self._integral = np.zeros(self.arm.nv)
        self._reference_model = np.stack([state.q, self._integral, self._integral])
        if np.isfinite(state.tau).all():
            tau = np.clip(state.tau, -MAX_VALUE, MAX_VALUE)
            braking = self.dynamics.rnea(state.q, state.v, -self.gains["kd"] * state.v)
            carried = np.linalg.solve(self.inertia(state.q), tau - braking)
            clamp = self.gains["i_clamp"]
            self._integral = np.where(self.gains["ki"] > 0, np.clip(carried, -clamp, clamp), 0.0)

    @property
    def memory(self) -> Vector:
        """∫ [rad/s²], then q_m, v_m and ∫_m of the reference model, (4 nv,)."""
        return np.concatenate([self._integral, self._reference_model.ravel()])

    def remember(self, memory: Vector) -> None:
        """Continue from a ``memory`` (4 nv,)."""
        self._integral = memory[: self.arm.nv].copy()
        self._reference_model = memory[self.arm.nv :].reshape(3, -1).copy()

    def clear_integral(self, joints: IntArray) -> None:
        """Set the integrals of some joints to 0."""
        self._integral[joints] = 0.0

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the integral stays. Errors as in Controller."""
        super().set_gains(gains)
        self._table: Matrix = np.stack([self.gains[p.name] for p in self.parameters])
        self._store_friction()

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; errors as in Controller."""
        super().set_model(arm)
        self._store_friction()

    def inertia(self, q: Vector) -> Matrix:
        """Return M(q) + diag(b / kd) (nv, nv): effort per acceleration of kp e and the integral."""
        inertia: Matrix = mass_matrix(self.arm, q) + np.diag(self._viscous_inertia)
        return inertia

    def _store_friction(self) -> None:
        """Store the friction compensation and b / kd, which is 0 where kd is."""
        scale = self.controller_gains["friction_compensation"]
        self._friction = FrictionCompensation(self.arm, scale)
        kd, viscous = self.gains["kd"], self._friction.viscous
        self._viscous_inertia = np.where(kd > 0, viscous / np.where(kd > 0, kd, 1.0), 0.0)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        a = commanded_acceleration(
            self._table, self._integral, reference.q, reference.v, reference.a, state.q, state.v
        )
        advance_reference_model(
            self._table, self._reference_model, reference.q, reference.v, reference.a, dt
        )
        stiffness = self.gains["kp"] * (reference.q - state.q) + self._integral
        along = self._friction.effort(reference.v, self._reference_model[1])
        friction = along + self._viscous_inertia * stiffness
        tau = self.dynamics.rnea(state.q, state.v, a) + friction
        effort = clamp_and_integrate(
            self._table, self._integral, tau, self._limit, reference.q, state.q, dt
        )
        effort.flags.writeable = False
        return Command(self.interface, effort, state.time)
