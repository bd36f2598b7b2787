"""Joint-space PID controllers: alone, and with gravity compensation and feedforward."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import (
    MOMENT,
    REFERENCE,
    STATE,
    CompiledController,
    Gains,
    are_bounded,
)
from arm_dynamics.control.controllers.friction_compensation import (
    FrictionCompensation,
    compensated_friction,
)
from arm_dynamics.core.arrays import IntArray, Matrix, Vector, as_readonly
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
    where,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 30.0
"""Natural frequency of the closed loop without given gains [rad/s]."""
MAX_DAMPING_RATE = 400.0
"""Maximum damping rate of these gains [1/s], for control periods up to about 2 ms."""
DAMPING = 1.6
"""Damping ratio times 2."""
FEEDFORWARD = "ff_acceleration_scale"
"""Gain of the feedforward along the reference, which needs accelerations."""
FILTER, VISCOUS, DRY = 4, 6, 7
"""Rows of d_filter and of the compensated friction in the table of gains."""


def uniform_bandwidth(arm: ArmModel, desired: float, max_rate: float) -> tuple[float, Vector]:
    """Return w [rad/s] and m = M_ii (nv,) at the initial configuration.

    For kp = w² m and kd = 1.6 w m.

    Parameters
    ----------
    arm : ArmModel
        Arm whose joints are controlled.
    desired : float
        Desired natural frequency [rad/s]. w is less if, with coupled joints, the largest
        eigenvalue of M⁻¹ diag(kd) would exceed ``max_rate``.
    max_rate : float
        Maximum damping rate [1/s].

    """
    mass = mass_matrix(arm, arm.configuration("initial"))
    inertia = np.diag(mass)
    rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(DAMPING * desired * inertia)))
    return desired * min(1.0, max_rate / float(rates.real.max())), inertia


@compiled
def pid_effort(
    gains: tuple[float, float, float, float, float, float],
    limit: float,
    feedforward: float,
    reference: tuple[float, float],
    state: tuple[float, float],
    memory: tuple[float, float],
    dt: float,
) -> tuple[float, float, float]:
    """Return the effort of one joint [N·m] within ±limit, and its memory after the update.

    ``gains`` are the parameters of ``Pid`` in their order, ``reference`` and ``state`` position
    and velocity. The memory is the integral [N·m] and v_f [rad/s]; dt = 0 does not change it.
    """
    p, i, d, i_clamp, d_filter, scale = gains
    (q_ref, v_ref), (q, v), (integral, filtered) = reference, state, memory
    weight = dt / where(dt > 0, dt + d_filter, 1.0)
    filtered = where(dt > 0, filtered + weight * (v - filtered), filtered)
    error = q_ref - q
    damping = d * (scale * v_ref - filtered)
    desired = p * error + integral + damping + feedforward
    effort = clip(desired, -limit, limit)
    free = (desired - effort) * error <= 0  # not saturated in the error's direction
    after = where(free, integral + dt * i * error, integral)
    return effort, clip(after, -i_clamp, i_clamp), filtered


@compiled_for(MATRIX, MATRIX_OUT, REFERENCE, STATE, VECTOR, NUMBER, VECTOR, VECTOR_OUT, direct=True)
def pid_efforts(
    table: Matrix,
    memory: Matrix,
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    feedforward: Vector,
    dt: float,
    limit: Vector,
    effort: Vector,
) -> bool:
    """Write the efforts (nv,) [N·m] within ±limit; return whether all inputs are valid.

    Valid is ``are_bounded``. The rows of ``table`` (8, nv) are the parameters of ``Pid`` in their
    order, and the viscous and dry friction compensated in addition to ``feedforward`` (nv,).
    ``memory`` (2, nv), integral and v_f, changes in place if the inputs are valid.
    """
    if not are_bounded(reference, state, dt, effort.size):
        return False
    (q_ref, v_ref, _), (q, v) = reference, state
    for j in range(effort.size):
        gains = (
            table[0, j], table[1, j], table[2, j], table[3, j], table[FILTER, j], table[5, j],
        )  # fmt: skip
        friction = compensated_friction(table[VISCOUS, j], table[DRY, j], v_ref[j], v_ref[j])
        effort[j], memory[0, j], memory[1, j] = pid_effort(
            gains, limit[j], feedforward[j] + friction,
            (q_ref[j], v_ref[j]), (q[j], v[j]), (memory[0, j], memory[1, j]), dt,
        )  # fmt: skip
    return True


class Pid(CompiledController):
    """tau = kp e + ki ∫e dt + kd (s v_ref - v_f) + feedforward,  e = q_ref - q.

    v_f is the measured velocity after a first-order filter: the derivative acts on the measurement,
    so that a step of the reference causes no kick. s = ff_velocity_scale. The integral stops while
    the output is saturated in its direction (conditional integration) and is limited to i_clamp
    [N·m].

    Without gains: kp = w² m, kd = 1.6 w m, ki = kp w / 6, with m = M_ii and w = BANDWIDTH, or
    less if, with coupled joints, the largest eigenvalue of M⁻¹ diag(kd) would exceed
    MAX_DAMPING_RATE.

    References
    ----------
    Åström and Hägglund, Advanced PID Control (2006), section 3.5.

    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", None, "N·m/rad", "proportional gain", lower=0, upper=1e6, order=2),
        Parameter("i", None, "N·m/(rad·s)", "integral gain", lower=0, upper=1e8, order=3),
        Parameter("d", None, "N·m·s/rad", "derivative gain", lower=0, upper=1e6, order=1),
        Parameter("i_clamp", inf, "N·m", "maximum effort of the integral", lower=0),
        Parameter("d_filter", 0.0, "s", "time constant of the velocity filter", lower=0, upper=1),
        Parameter("ff_velocity_scale", 1.0, "1", "fraction of v_ref in the derivative", lower=0),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._efforts = direct_call(pid_efforts)
        self._memory: Matrix = np.zeros((2, arm.nv))
        self._zero = as_readonly(np.zeros(arm.nv))

    def reset(self, state: State) -> None:
        """Set the integral so that the first output is the measured effort.

        Integral = tau - feedforward + kd v; 0 for a joint whose effort is unknown (NaN) or without
        integral gain. The velocity filter starts at the measured velocity.
        """
        state, rest = self.bounded_inputs(state, Reference.hold(state.q))
        carried = state.tau - self.feedforward(state, rest) + self.gains["d"] * state.v
        has_effort = np.isfinite(state.tau) & (self.gains["i"] > 0)
        clamp = self.gains["i_clamp"]
        integral = np.where(has_effort, np.clip(carried, -clamp, clamp), 0.0)
        self.set_memory(integral, state.v)

    def set_memory(self, integral: Vector, filtered: Vector) -> None:
        """Set the memory: integral (nv,) [N·m] and v_f (nv,) [rad/s]."""
        self._memory = np.stack([integral, filtered])

    @property
    def memory(self) -> Vector:
        """Integral [N·m] and v_f [rad/s], (2 nv,)."""
        memory: Vector = self._memory.reshape(-1).copy()
        return memory

    def remember(self, memory: Vector) -> None:
        """Continue from integral [N·m] and v_f [rad/s], (2 nv,)."""
        self._memory = memory.reshape(2, -1).copy()

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Return as Controller, with v̇_f = (v - v_f) / d_filter, or v_f = v if d_filter is 0."""
        del acceleration
        state, reference = self.bounded_inputs(state, reference)
        integral, filtered = memory.reshape(2, -1)
        lag = self.gains["d_filter"]
        constant = np.where(lag > 0, filtered, state.v)
        after, table = np.stack([integral, constant]), self._table.copy()
        table[FILTER] = inf  # v_f stays constant during the integration
        effort = np.empty(lag.size)
        pid_efforts(
            table, after, (reference.q, reference.v, reference.a), (state.q, state.v),
            self.feedforward(state, reference), MOMENT, self._limit, effort,
        )  # fmt: skip
        effort.flags.writeable = False
        change = np.divide(state.v - constant, lag, out=np.zeros_like(lag), where=lag > 0)
        rate = np.concatenate([(after[0] - integral) / MOMENT, change])
        return Command(self.interface, effort, state.time), rate

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m]; return whether inputs are valid."""
        return self._efforts(
            self._table, self._memory, (reference.q, reference.v, reference.a), (state.q, state.v),
            self.feedforward(state, reference), dt, self._limit, effort,
        )  # fmt: skip

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the integral stays. Errors as in Controller."""
        super().set_gains(gains)
        rows = [self.gains[p.name] for p in Pid.parameters]
        self._table: Matrix = np.stack([*rows, *self.compensated_rows()])

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """Return the effort (nv,) [N·m] added to PID and friction compensation: 0."""
        return self._zero

    def compensated_rows(self) -> Matrix:
        """Return viscous and dry friction (2, nv) that are compensated: 0."""
        return np.zeros((2, self.arm.nv))

    def clear_integral(self, joints: IntArray) -> None:
        """Set the integrals of some joints to 0."""
        self._memory[0, joints] = 0.0

    def default_gains(self) -> Gains:
        """Return gains of uniform bandwidth at the initial configuration."""
        w, inertia = uniform_bandwidth(self.arm, BANDWIDTH, MAX_DAMPING_RATE)
        return {
            name: {"p": w**2 * m, "i": w**3 / 6 * m, "d": DAMPING * w * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }


class PidGravity(Pid):
    """tau = PID(e) + g(q) + s (M(q) a_ref + C(q, v_ref) v_ref + F(v_ref)).

    M, C, g and the friction compensation F (``FrictionCompensation``) are those of the controller's
    model, and s = ff_acceleration_scale, by default 0. With s = 1 and an exact model the PID only
    corrects disturbances; with s = 0 the arm lags by what the gains need to accelerate it. The
    feedforward depends on the reference only: it does not change the stability margins.

    References
    ----------
    Siciliano et al., Robotics (2009), sections 8.5.1 and 8.7.1.

    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        *Pid.parameters,
        Parameter(
            FEEDFORWARD,
            0.0,
            "1",
            "fraction of M a_ref + C v_ref + friction added",
            lower=0,
        ),
    )

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the integral stays. Errors as in Controller."""
        super().set_gains(gains)
        scale = self.gains[FEEDFORWARD]
        self._is_complete, self._has_none = bool((scale == 1.0).all()), not scale.any()

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; errors as in Controller."""
        super().set_model(arm)
        self._table[VISCOUS:] = self.compensated_rows()

    def compensated_rows(self) -> Matrix:
        """Return s times the friction of the model, viscous and dry (2, nv)."""
        friction = FrictionCompensation(self.arm)
        rows: Matrix = self.gains[FEEDFORWARD] * np.stack([friction.viscous, friction.dry])
        return rows

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """Return g(q) + s (M(q) a_ref + C(q, v_ref) v_ref) (nv,) [N·m], without friction."""
        if self._has_none:
            return self.dynamics.gravity(state.q)
        along = self.dynamics.rnea(state.q, reference.v, reference.a)
        if self._is_complete:
            return along
        gravity = self.dynamics.gravity(state.q)
        return gravity + self.gains[FEEDFORWARD] * (along - gravity)
