"""Computed torque: the arm as decoupled double integrators."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.base import LARGEST, Controller, Gains
from arm_dynamics.controllers.integral import grown_integral
from arm_dynamics.dynamics import mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.parameters import Parameter
from arm_dynamics.regulation.regulator import coulomb, viscous
from arm_dynamics.scalar import MATRIX, NUMBER, VECTOR, VECTOR_OUT, clip, compiled_for
from arm_dynamics.state import Command, Reference, State

SLOW = 0.005
"""Reference speed [rad/s] from which on all of the dry friction is compensated."""


@compiled_for(MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def wanted_accelerations(
    gains: Vector, integral: Vector, q_ref: Vector, v_ref: Vector, a_ref: Vector, q: Vector,
    v: Vector,
) -> Vector:  # fmt: skip
    """a_ref + kp e + kd ė + ∫ (nv,) [rad/s²]; gains (4, nv): the parameters in their order."""
    wanted = np.empty(q.size)
    for j in range(q.size):
        feedback = gains[0, j] * (q_ref[j] - q[j]) + gains[2, j] * (v_ref[j] - v[j])
        wanted[j] = a_ref[j] + feedback + integral[j]
    return wanted


@compiled_for(MATRIX, VECTOR_OUT, VECTOR, VECTOR, VECTOR, VECTOR, NUMBER)
def limit_and_integrate(
    gains: Vector, integral: Vector, wanted: Vector, limit: Vector, q_ref: Vector, q: Vector,
    dt: float,
) -> Vector:  # fmt: skip
    """Efforts (nv,) [N·m] within ±limit; ``integral`` (nv,) is changed in place."""
    effort, saturated = np.empty(q.size), False
    for j in range(q.size):
        effort[j] = clip(wanted[j], -limit[j], limit[j])
        saturated = saturated | (effort[j] != wanted[j])
    for j in range(q.size):
        error = q_ref[j] - q[j]
        integral[j] = grown_integral(gains[1, j], gains[3, j], error, saturated, integral[j], dt)
    return effort


class ComputedTorque(Controller):
    """tau = M(q) (a_ref + kp e + kd ė + ki ∫e dt) + C(q, v) v + g(q) + b v_ref + f s(v_ref).

    e = q_ref - q, s(v) = clip(v / SLOW, ±1). M, C, g, viscous friction b and dry friction f are
    those of the controller's model. With a true model and b = 0 every joint obeys
    ë + kd ė + kp e + ki ∫e = 0 in every configuration; so the gains do not depend on the arm.
    The default ones have poles of 18 to 38 rad/s and overshoot a step by 16 %.

    A joint with viscous friction gets (b / kd) (kp e + ki ∫e) in addition. It then obeys
    M ë + (M + b / kd) (kd ė + kp e + ki ∫e) = 0: with little inertia it is held by its friction's
    time constant instead of hardly at all.

    While any effort is saturated the arm does not accelerate as commanded: integrals then only
    shrink. They never pass i_clamp.

    Source: Siciliano et al., Robotics (2009), section 8.5.2 (inverse dynamics control).
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "kp", 900.0, "1/s²", "acceleration per position error", lower=0, upper=1e6, order=2
        ),
        Parameter("ki", 3000.0, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
        Parameter(
            "kd", 60.0, "1/s", "acceleration per velocity error", lower=0, upper=1e4, order=1
        ),
        Parameter("i_clamp", inf, "rad/s²", "largest acceleration of the integral", lower=0),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._integral: Vector = np.zeros(arm.nv)

    def reset(self, state: State) -> None:
        """Take over without a step of the effort, where the arm's effort is known.

        ∫ = (M + b / kd)⁻¹ (tau - C v - g + M kd v), so that the first output on a reference at
        rest is the effort measured now; 0 where the effort is unknown (NaN), and for a joint with
        ki = 0.
        """
        state, _ = self.readable(state, Reference.hold(state.q))
        self._integral = np.zeros(self.arm.nv)
        if np.isfinite(state.tau).all():
            tau = np.clip(state.tau, -LARGEST, LARGEST)
            braking = self.body.rnea(state.q, state.v, -self.gains["kd"] * state.v)
            carried = np.linalg.solve(self.inertia(state.q), tau - braking)
            clamp = self.gains["i_clamp"]
            self._integral = np.where(self.gains["ki"] > 0, np.clip(carried, -clamp, clamp), 0.0)

    @property
    def memory(self) -> Vector:
        """∫ (nv,) [rad/s²]."""
        memory: Vector = self._integral.copy()
        return memory

    def remember(self, memory: Vector) -> None:
        """Go on from ∫ (nv,) [rad/s²]."""
        self._integral = memory.copy()

    def configure(self, gains: Gains) -> None:
        """Take new gains without disturbing the integral; errors as in Controller."""
        super().configure(gains)
        self._table: Vector = np.stack([self.gains[p.name] for p in self.parameters])
        self._note_friction()

    def use_model(self, arm: ArmModel) -> None:
        """Tell the law another model; errors as in Controller."""
        super().use_model(arm)
        self._note_friction()

    def inertia(self, q: Vector) -> Vector:
        """M(q) + diag(b / kd) (nv, nv): effort per acceleration that kp e and the integral ask."""
        inertia: Vector = mass_matrix(self.arm, q) + np.diag(self._slow)
        return inertia

    def _note_friction(self) -> None:
        """b, f and b / kd, which is 0 where kd is."""
        self._viscous, self._dry = viscous(self.arm), coulomb(self.arm)
        kd = self.gains["kd"]
        self._slow = np.where(kd > 0, self._viscous / np.where(kd > 0, kd, 1.0), 0.0)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.readable(state, reference, dt)
        wanted = wanted_accelerations(
            self._table, self._integral, reference.q, reference.v, reference.a, state.q, state.v
        )
        dry = self._dry * np.clip(reference.v / SLOW, -1, 1)
        held = self._slow * (self.gains["kp"] * (reference.q - state.q) + self._integral)
        friction = self._viscous * reference.v + held + dry
        tau = self.body.rnea(state.q, state.v, wanted) + friction
        effort = limit_and_integrate(
            self._table, self._integral, tau, self._limit, reference.q, state.q, dt
        )
        effort.flags.writeable = False
        return Command(self.interface, effort, state.time)
