"""Independent joint PID."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.base import Controller, Gains
from arm_dynamics.dynamics import mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.parameters import Parameter
from arm_dynamics.state import Command, Reference, State

BANDWIDTH = 30.0
"""Natural frequency [rad/s] of the closed loop when no gains are given."""


class Pid(Controller):
    """tau = kp e + ki ∫e dt + kd (s v_ref - v_f) + feedforward,  e = q_ref - q.

    v_f is the measured velocity through a first-order filter (the derivative acts on the
    measurement: a step of the reference position causes no kick), s = ff_velocity_scale.
    The integral stands still while the output is saturated in its direction (conditional
    integration: Åström and Hägglund, Advanced PID Control (2006), section 3.5), and never
    gives more than i_clamp [N·m].

    Without gains: kp = w² m, kd = 1.6 w m, ki = kp w / 6, with m = M_ii and w = BANDWIDTH.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", None, "N·m/rad", "proportional gain", lower=0, upper=1e6),
        Parameter("i", None, "N·m/(rad·s)", "integral gain", lower=0, upper=1e6),
        Parameter("d", None, "N·m·s/rad", "derivative gain", lower=0, upper=1e6),
        Parameter("i_clamp", inf, "N·m", "largest effort of the integral", lower=0),
        Parameter("d_filter", 0.0, "s", "time constant of the velocity filter", lower=0, upper=1),
        Parameter("ff_velocity_scale", 1.0, "1", "share of v_ref in the derivative", lower=0),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._integral: Vector = np.zeros(arm.nv)
        self._filtered: Vector = np.zeros(arm.nv)

    def reset(self, state: State) -> None:
        """Empty the integral and start the velocity filter at the measurement."""
        self._integral = np.zeros(self.arm.nv)
        self._filtered = state.v

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        g = self.gains
        error = reference.q - state.q
        if dt > 0:
            share = dt / (dt + g["d_filter"])
            self._filtered = self._filtered + share * (state.v - self._filtered)
        damping = g["d"] * (g["ff_velocity_scale"] * reference.v - self._filtered)
        wanted = g["p"] * error + self._integral + damping + self.feedforward(state, reference)
        command = self.limited(wanted, state)
        self._integrate(error, wanted - command.value, dt)
        return command

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """Effort (nv,) [N·m] added to the PID; none here."""
        return np.zeros(self.arm.nv)

    def _integrate(self, error: Vector, excess: Vector, dt: float) -> None:
        free = excess * error <= 0
        grown = self._integral + np.where(free, dt * self.gains["i"] * error, 0.0)
        clamp = self.gains["i_clamp"]
        self._integral = np.minimum(np.maximum(grown, -clamp), clamp)

    def found_from_model(self) -> Gains:
        """Gains of equal bandwidth at the initial pose."""
        inertia = np.diag(mass_matrix(self.arm, self.arm.pose("initial")))
        w = BANDWIDTH
        return {
            name: {"p": w**2 * m, "i": w**3 / 6 * m, "d": 1.6 * w * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }
