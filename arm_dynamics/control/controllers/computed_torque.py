"""Computed torque (inverse dynamics control): the arm as decoupled double integrators."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import clamp_and_integrate
from arm_dynamics.control.controllers.controller import (
    MAX_VALUE,
    REFERENCE,
    STATE,
    CompiledController,
    Gains,
    are_bounded,
)
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    FrictionCompensation,
    compensated_friction,
)
from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

KP, KI, KD, CLAMP, VISCOUS, DRY, INERTIA = range(7)
"""Rows of the table of gains: the parameters, viscous friction b, dry friction f and b / kd."""
INTEGRAL, Q_MODEL, V_MODEL, I_MODEL, ACCELERATION, FRICTION, ERROR = range(7)
"""Rows of the memory: integral, reference model, and values within an update."""


@compiled_for(MATRIX, MATRIX_OUT, REFERENCE, STATE, NUMBER, direct=True)
def commanded_acceleration(
    table: Matrix,
    memory: Matrix,
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    dt: float,
) -> bool:
    """Fill ACCELERATION, FRICTION and ERROR, then advance the reference model.

    Return whether all inputs are valid (``are_bounded``); if not, ``memory`` (7, nv) is unchanged.
    ACCELERATION [rad/s²] is a_ref + kp e + kd ė + ∫.
    """
    if not are_bounded(reference, state, dt, memory.shape[1]):
        return False
    (q_ref, v_ref, a_ref), (q, v) = reference, state
    for j in range(memory.shape[1]):
        kp, ki, kd, clamp = table[KP, j], table[KI, j], table[KD, j], table[CLAMP, j]
        error, integral = q_ref[j] - q[j], memory[INTEGRAL, j]
        memory[ERROR, j] = error
        memory[ACCELERATION, j] = a_ref[j] + kp * error + kd * (v_ref[j] - v[j]) + integral
        q_m, v_m, i_m = memory[Q_MODEL, j], memory[V_MODEL, j], memory[I_MODEL, j]
        q_m, v_m, i_m = reference_model_step(
            (kp, ki, kd, clamp), (q_ref[j], v_ref[j], a_ref[j]), (q_m, v_m, i_m), dt
        )
        memory[Q_MODEL, j], memory[V_MODEL, j], memory[I_MODEL, j] = q_m, v_m, i_m
        friction = compensated_friction(table[VISCOUS, j], table[DRY, j], v_ref[j], v_m)
        memory[FRICTION, j] = friction + table[INERTIA, j] * (kp * error + integral)
    return True


@compiled
def reference_model_step(
    gains: tuple[float, float, float, float],
    reference: tuple[float, float, float],
    model: tuple[float, float, float],
    dt: float,
) -> tuple[float, float, float]:
    """Return q_m, v_m and ∫_m of a joint after an implicit Euler step.

    q̈_m = a_ref + kp (q_ref - q_m) + kd (v_ref - v_m) + ∫_m, and d∫_m/dt = ki (q_ref - q_m).
    """
    (kp, ki, kd, clamp), (q_ref, v_ref, a_ref), (q, v, integral) = gains, reference, model
    error = q_ref - q
    forced = a_ref + kp * error + kd * v_ref + integral + dt * ki * error
    v = (v + dt * forced) / (1.0 + dt * (kd + dt * (kp + dt * ki)))
    q = q + dt * v
    return q, v, clip(integral + dt * ki * (q_ref - q), -clamp, clamp)


@compiled_for(MATRIX, MATRIX_OUT, VECTOR, NUMBER, VECTOR, VECTOR_OUT, direct=True)
def clamped_effort(
    table: Matrix, memory: Matrix, dynamics: Vector, dt: float, limit: Vector, effort: Vector
) -> None:
    """Write the efforts (nv,) [N·m], ``dynamics`` + FRICTION within ±limit; advance INTEGRAL."""
    for j in range(effort.size):
        effort[j] = dynamics[j] + memory[FRICTION, j]
    integrals = table[KI], table[CLAMP], memory[ERROR], memory[INTEGRAL]
    clamp_and_integrate(effort, limit, integrals, dt)


class ComputedTorque(CompiledController):
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
        self._accelerate = direct_call(commanded_acceleration)
        self._clamp = direct_call(clamped_effort)
        self._memory: Matrix = np.zeros((7, arm.nv))

    def reset(self, state: State) -> None:
        """Set the integral so that the first output is the measured effort.

        ∫ = (M + b / kd)⁻¹ (tau - C v - g + M kd v) on a reference at rest; 0 if the effort is
        unknown (NaN), and for a joint with ki = 0. The reference model starts at rest at q.
        """
        state, _ = self.bounded_inputs(state, Reference.hold(state.q))
        self._memory = np.zeros((7, self.arm.nv))
        self._memory[Q_MODEL] = state.q
        if np.isfinite(state.tau).all():
            tau = np.clip(state.tau, -MAX_VALUE, MAX_VALUE)
            braking = self.dynamics.rnea(state.q, state.v, -self.gains["kd"] * state.v)
            carried = np.linalg.solve(self.inertia(state.q), tau - braking)
            clamp = self.gains["i_clamp"]
            integral = np.where(self.gains["ki"] > 0, np.clip(carried, -clamp, clamp), 0.0)
            self._memory[INTEGRAL] = integral

    @property
    def memory(self) -> Vector:
        """∫ [rad/s²], then q_m, v_m and ∫_m of the reference model, (4 nv,)."""
        memory: Vector = self._memory[:ACCELERATION].flatten()
        return memory

    def remember(self, memory: Vector) -> None:
        """Continue from a ``memory`` (4 nv,)."""
        self._memory[:ACCELERATION] = memory.reshape(4, -1)

    def clear_integral(self, joints: IntArray) -> None:
        """Set the integrals of some joints to 0."""
        self._memory[INTEGRAL, joints] = 0.0

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the integral stays. Errors as in Controller."""
        super().set_gains(gains)
        self._store_table()

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; errors as in Controller."""
        super().set_model(arm)
        self._store_table()

    def inertia(self, q: Vector) -> Matrix:
        """Return M(q) + diag(b / kd) (nv, nv): effort per acceleration of kp e and the integral."""
        inertia: Matrix = mass_matrix(self.arm, q) + np.diag(self._table[INERTIA])
        return inertia

    def _store_table(self) -> None:
        """Store the table of gains; b / kd is 0 where kd is."""
        friction = FrictionCompensation(self.arm, self.controller_gains["friction_compensation"])
        viscous, kd = friction.viscous, self.gains["kd"]
        inertia = np.where(kd > 0, viscous / np.where(kd > 0, kd, 1.0), 0.0)
        gains = [self.gains[p.name] for p in self.parameters]
        self._table: Matrix = np.stack([*gains, viscous, friction.dry, inertia])

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m]; return whether inputs are valid."""
        table, memory, q, v = self._table, self._memory, state.q, state.v
        if not self._accelerate(table, memory, (reference.q, reference.v, reference.a), (q, v), dt):
            return False
        dynamics = self.dynamics.rnea(q, v, memory[ACCELERATION])
        self._clamp(table, memory, dynamics, dt, self._limit, effort)
        return True
