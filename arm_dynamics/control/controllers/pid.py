"""How fast a law may be that damps joints by themselves.

Independent joint PID.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import MOMENT, Controller, Gains
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import (
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    clip,
    compiled,
    compiled_for,
    where,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

DAMPING = 1.6
"""Damping ratio times 2."""


def uniform_bandwidth(arm: ArmModel, wanted: float, fastest: float) -> tuple[float, Vector]:
    """w [rad/s] and m = M_ii (nv,) at the initial pose, for kp = w² m and kd = 1.6 w m.

    w is the ``wanted`` one, or less where coupled joints would make the fastest rate, the largest
    eigenvalue of M⁻¹ diag(kd), exceed ``fastest`` [1/s].
    """
    mass = mass_matrix(arm, arm.configuration("initial"))
    inertia = np.diag(mass)
    rates = np.linalg.eigvals(np.linalg.solve(mass, np.diag(DAMPING * wanted * inertia)))
    return wanted * min(1.0, fastest / float(rates.real.max())), inertia


BANDWIDTH = 30.0
"""Natural frequency [rad/s] of the closed loop when no gains are given."""
MAX_DAMPING_RATE = 400.0
"""Highest damping rate [1/s] of these gains, for control periods up to some 2 ms."""
FILTER = 4
"""Row of d_filter in the gains' table."""


@compiled
def pid_effort(
    p: float,
    i: float,
    d: float,
    i_clamp: float,
    d_filter: float,
    scale: float,
    limit: float,
    feedforward: float,
    q_ref: float,
    v_ref: float,
    q: float,
    v: float,
    integral: float,
    filtered: float,
    dt: float,
) -> tuple[float, float, float]:
    """Effort [N·m] of one joint within ±limit, and its memory ∫ [N·m] and v_f [rad/s] after it.

    The first six are the parameters of ``Pid`` in their order; dt = 0 leaves the memory as it is.
    """
    share = dt / where(dt > 0, dt + d_filter, 1.0)
    filtered = where(dt > 0, filtered + share * (v - filtered), filtered)
    error = q_ref - q
    damping = d * (scale * v_ref - filtered)
    wanted = p * error + integral + damping + feedforward
    effort = clip(wanted, -limit, limit)
    free = (wanted - effort) * error <= 0  # not saturated in the error's direction
    grown = where(free, integral + dt * i * error, integral)
    return effort, clip(grown, -i_clamp, i_clamp), filtered


@compiled_for(MATRIX, MATRIX_OUT, *[VECTOR] * 6, NUMBER)
def pid_efforts(
    gains: Vector,
    memory: Vector,
    limit: Vector,
    feedforward: Vector,
    q_ref: Vector,
    v_ref: Vector,
    q: Vector,
    v: Vector,
    dt: float,
) -> Vector:
    """Effort (nv,) [N·m] of every joint; ``memory`` (2, nv), ∫ and v_f, is changed in place.

    gains (6, nv): the rows are the parameters of ``Pid`` in their order.
    """
    effort = np.empty(q.size)
    for j in range(q.size):
        effort[j], memory[0, j], memory[1, j] = pid_effort(
            gains[0, j], gains[1, j], gains[2, j], gains[3, j], gains[4, j], gains[5, j],
            limit[j], feedforward[j], q_ref[j], v_ref[j], q[j], v[j],
            memory[0, j], memory[1, j], dt,
        )  # fmt: skip
    return effort


class Pid(Controller):
    """tau = kp e + ki ∫e dt + kd (s v_ref - v_f) + feedforward,  e = q_ref - q.

    v_f is the measured velocity through a first-order filter (the derivative acts on the
    measurement: a step of the reference position causes no kick), s = ff_velocity_scale.
    The integral stands still while the output is saturated in its direction (conditional
    integration: Åström and Hägglund, Advanced PID Control (2006), section 3.5), and never
    gives more than i_clamp [N·m].

    Without gains: kp = w² m, kd = 1.6 w m, ki = kp w / 6, with m = M_ii and w = BANDWIDTH, or
    less where coupled joints would make the fastest rate, the largest eigenvalue of M⁻¹ diag(kd),
    exceed FASTEST.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", None, "N·m/rad", "proportional gain", lower=0, upper=1e6, order=2),
        Parameter("i", None, "N·m/(rad·s)", "integral gain", lower=0, upper=1e8, order=3),
        Parameter("d", None, "N·m·s/rad", "derivative gain", lower=0, upper=1e6, order=1),
        Parameter("i_clamp", inf, "N·m", "largest effort of the integral", lower=0),
        Parameter("d_filter", 0.0, "s", "time constant of the velocity filter", lower=0, upper=1),
        Parameter("ff_velocity_scale", 1.0, "1", "share of v_ref in the derivative", lower=0),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._memory: Vector = np.zeros((2, arm.nv))
        self._none = as_readonly(np.zeros(arm.nv))

    def reset(self, state: State) -> None:
        """Take over without a step of the effort, where the arm's effort is known.

        ∫ = tau - feedforward + kd v, so that the first output is the effort measured now; 0
        for a joint whose effort is unknown (NaN) or that has no integral gain. The velocity
        filter starts at the measurement.
        """
        state, rest = self.bounded_inputs(state, Reference.hold(state.q))
        carried = state.tau - self.feedforward(state, rest) + self.gains["d"] * state.v
        known = np.isfinite(state.tau) & (self.gains["i"] > 0)
        clamp = self.gains["i_clamp"]
        integral = np.where(known, np.clip(carried, -clamp, clamp), 0.0)
        self.set_memory(integral, state.v)

    def set_memory(self, integral: Vector, filtered: Vector) -> None:
        """Go on from a memory: ∫ (nv,) [N·m] and v_f (nv,) [rad/s]."""
        self._memory = np.stack([integral, filtered])

    @property
    def memory(self) -> Vector:
        """∫ [N·m] and v_f [rad/s] (2 nv,)."""
        memory: Vector = self._memory.reshape(-1).copy()
        return memory

    def remember(self, memory: Vector) -> None:
        """Go on from ∫ [N·m] and v_f [rad/s] (2 nv,)."""
        self._memory = memory.reshape(2, -1).copy()

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """As in Controller, with v̇_f = (v - v_f) / d_filter, or v_f = v where d_filter is 0."""
        del acceleration
        state, reference = self.bounded_inputs(state, reference)
        integral, filtered = memory.reshape(2, -1)
        lag = self.gains["d_filter"]
        still = np.where(lag > 0, filtered, state.v)
        after, table = np.stack([integral, still]), self._table.copy()
        table[FILTER] = inf  # the filter stands still while the law integrates
        effort = pid_efforts(
            table, after, self._limit, self.feedforward(state, reference),
            reference.q, reference.v, state.q, state.v, MOMENT,
        )  # fmt: skip
        effort.flags.writeable = False
        change = np.divide(state.v - still, lag, out=np.zeros_like(lag), where=lag > 0)
        rate = np.concatenate([(after[0] - integral) / MOMENT, change])
        return Command(self.interface, effort, state.time), rate

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        effort = pid_efforts(
            self._table, self._memory, self._limit, self.feedforward(state, reference),
            reference.q, reference.v, state.q, state.v, dt,
        )  # fmt: skip
        effort.flags.writeable = False
        return Command(self.interface, effort, state.time)

    def set_gains(self, gains: Gains) -> None:
        """Take new gains without disturbing the integral; errors as in Controller."""
        super().set_gains(gains)
        self._table: Vector = np.stack([self.gains[p.name] for p in self.parameters])

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """Effort (nv,) [N·m] added to the PID; none here."""
        return self._none

    def default_gains(self) -> Gains:
        """Gains of equal bandwidth at the initial pose."""
        w, inertia = uniform_bandwidth(self.arm, BANDWIDTH, MAX_DAMPING_RATE)
        return {
            name: {"p": w**2 * m, "i": w**3 / 6 * m, "d": DAMPING * w * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }
