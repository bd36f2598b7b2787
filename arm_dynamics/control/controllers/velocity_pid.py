"""PID of the velocity error: proportional in velocity, its integral the position error."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import (
    NO_MEMORY,
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
from arm_dynamics.control.controllers.pid import DAMPING, FEEDFORWARD, uniform_bandwidth
from arm_dynamics.control.lqr_design.lqr_gain import viscous_damping
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 30.0
"""Natural frequency of a single joint without given gains [rad/s]."""
MAX_DAMPING_RATE = 400.0
"""Maximum damping rate of these gains [1/s], for control periods up to about 2 ms."""
MAX_ITERATIONS, CONVERGENCE_TOLERANCE = 100, 1e-13
"""Iterations of effort and acceleration in continuous time, and their relative tolerance."""


@compiled_for(MATRIX, (VECTOR, VECTOR), REFERENCE, STATE, NUMBER, VECTOR, VECTOR_OUT, direct=True)
def velocity_pid_efforts(
    table: Matrix,
    dynamics: tuple[Vector, Vector],
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    dt: float,
    limit: Vector,
    effort: Vector,
) -> bool:
    """Write tau of ``VelocityPid`` without ka a within ±limit; return whether inputs are valid.

    The rows of ``table`` (7, nv) are kv, kx, ka, s_a, s, and the friction that is compensated,
    viscous and dry. ``dynamics``: g(q) and the inverse dynamics of the reference (nv,).
    """
    if not are_bounded(reference, state, dt, effort.size):
        return False
    (q_ref, v_ref, a_ref), (q, v), (gravity, along) = reference, state, dynamics
    for j in range(effort.size):
        tau = table[0, j] * (v_ref[j] - v[j]) + table[1, j] * (q_ref[j] - q[j])
        tau += table[2, j] * a_ref[j] + table[4, j] * gravity[j]
        tau += compensated_friction(table[5, j], table[6, j], v_ref[j], v_ref[j])
        tau += table[3, j] * (along[j] - gravity[j])
        effort[j] = clip(tau, -limit[j], limit[j])
    return True


class VelocityPid(CompiledController):
    """tau = kv ė + kx e + ka (a_ref - a) + s g(q) + F(v_ref) + s_a (M a_ref + C v_ref).

    e = q_ref - q,  ė = v_ref - v. F is the friction compensation (``FrictionCompensation``);
    s_a = ff_acceleration_scale is 0 by default: the published control law.

    A PID of the velocity error with the integral written out: ∫ė dt = e, so no integral winds up.
    g is that of the controller's model; s = gravity_scale is 1, or 0 without gravity compensation.
    a is the arm's actual acceleration, so that together with the arm

        (M + ka) a = kv ė + kx e + ka a_ref + s g_model(q) - C(q, v) v - g(q) - b v,

    and a model error enters only by s g_model. With the ``two_link`` gains and the model's masses
    and lengths 5 % too large, the cubic of 4 s ends, at 5 s, with errors of (6.6e-3, 3.1e-3) rad,
    as published; with an acceleration from that model it would be (9.2e-3, 1.0e-3).

    tau and a depend on each other at the same instant. In discrete time the mean acceleration of
    the last period, (v - v_last) / dt, is measured, and the model predicts its change:
    a = (v - v_last) / dt + M⁻¹ (tau - tau_last). Its errors act for one period at most, and not at
    rest. In the first update a = M⁻¹ (tau - C v - g - b v). Noise of v enters tau by up to ka / dt.
    In continuous time tau and a are solved for together (``instant``).

    Without gains: kx = w² m, kv = 1.6 w m, ka = 0, with m = M_ii at the initial configuration and
    w = BANDWIDTH, or less if, with coupled joints, the largest eigenvalue of M⁻¹ diag(kv) would
    exceed MAX_DAMPING_RATE. Published for the arm ``two_link`` (MCEN90028) with kv = 100, 20;
    kx = 200, 50; ka = 0.5, 0.05.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "kv", None, "N·m·s/rad", "effort per velocity error", lower=0, upper=1e6, order=1
        ),
        Parameter("kx", None, "N·m/rad", "effort per position error", lower=0, upper=1e6, order=2),
        Parameter("ka", 0.0, "kg·m²", "effort per acceleration error", lower=0, upper=1e6),
        Parameter(FEEDFORWARD, 0.0, "1", "fraction of M a_ref + C v_ref added", lower=0),
    )
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gravity_scale", 1.0, "1", "fraction of the gravity torque added", lower=0),
        FRICTION_COMPENSATION,
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._efforts = direct_call(velocity_pid_efforts)
        self._last: tuple[Vector, Vector] | None = None

    def reset(self, state: State) -> None:
        """Clear the last velocity and effort."""
        self._last = None

    def set_gains(self, gains: Gains) -> None:
        """Set gains; errors as in Controller."""
        super().set_gains(gains)
        self._store_table()

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; errors as in Controller."""
        super().set_model(arm)
        self._store_table()

    def _store_table(self) -> None:
        once, nv = self.controller_gains, self.arm.nv
        self._viscous, self._unlimited = viscous_damping(self.arm), np.full(nv, inf)
        friction = FrictionCompensation(self.arm, once["friction_compensation"], viscous_only=False)
        gains = [self.gains[p.name] for p in self.parameters]
        rows = (*gains, np.full(nv, once["gravity_scale"]), friction.viscous, friction.dry)
        self._table: Matrix = np.stack(rows)
        self._has_feedforward = bool(self.gains[FEEDFORWARD].any())
        self._reads_acceleration = bool(self.gains["ka"].any())

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m]; return whether inputs are valid."""
        limit = self._unlimited if self._reads_acceleration else self._limit
        if not self._write_without_acceleration(effort, state, reference, dt, limit):
            return False
        if not self._reads_acceleration:
            return True
        q, v = state.q, state.v
        mass = self.dynamics.mass_matrix(q)
        if self._last is None or dt == 0.0:
            residual = -self.dynamics.nle(q, v) - self._viscous * v
        else:
            v_last, tau_last = self._last
            residual = mass @ ((v - v_last) / dt) - tau_last
        tau = effort - self._sensitivity(mass) @ (effort + residual)
        np.clip(tau, -self._limit, self._limit, out=effort)
        self._last = v, effort
        return True

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Return as Controller: the fixed point of discrete updates at one instant.

        Raises
        ------
        InvalidValue
            If the iteration does not converge because the model is far too heavy.

        """
        state, reference = self.bounded_inputs(state, reference)
        effort = np.empty(self.arm.nv)
        self._write_without_acceleration(effort, state, reference, 0.0, self._unlimited)
        command = self.effort_command(effort, state)
        if not self._reads_acceleration:
            return command, NO_MEMORY
        mass = self.dynamics.mass_matrix(state.q)
        sensitivity = self._sensitivity(mass)
        for _ in range(MAX_ITERATIONS):
            tau = command.value
            residual = mass @ acceleration(tau) - tau
            command = self.effort_command(effort - sensitivity @ (effort + residual), state)
            tolerance = CONVERGENCE_TOLERANCE * (1 + np.abs(tau).max())
            if np.abs(command.value - tau).max() <= tolerance:
                return command, NO_MEMORY
        raise InvalidValue(
            f"controller VelocityPid at t = {state.time:g} s: effort and acceleration do not"
            f" converge in {MAX_ITERATIONS} iterations; expected a model less than twice as heavy"
            " as the arm"
        )

    def _write_without_acceleration(
        self, effort: Vector, state: State, reference: Reference, dt: float, limit: Vector
    ) -> bool:
        """Write tau without ka a within ±limit (nv,) [N·m]; return whether inputs are valid."""
        q, v, a = reference.q, reference.v, reference.a
        along = gravity = self.dynamics.gravity(state.q)
        if self._has_feedforward:
            along = self.dynamics.rnea(state.q, v, a)
        return self._efforts(
            self._table, (gravity, along), (q, v, a), (state.q, state.v), dt, limit, effort
        )

    def _sensitivity(self, mass: Matrix) -> Matrix:
        """Return S = ka (M + ka)⁻¹ (nv, nv).

        M a = tau + f and tau = u - ka a give tau = u - S (u + f).
        """
        ka = self.gains["ka"]
        sensitivity: Matrix = ka[:, None] * np.linalg.inv(mass + np.diag(ka))
        return sensitivity

    def default_gains(self) -> Gains:
        """Return gains of uniform bandwidth at the initial configuration."""
        w, inertia = uniform_bandwidth(self.arm, BANDWIDTH, MAX_DAMPING_RATE)
        return {
            name: {"kv": DAMPING * w * m, "kx": w**2 * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }
