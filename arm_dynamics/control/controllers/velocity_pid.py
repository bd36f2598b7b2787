"""PID of the velocity error: proportional in speed, its integral the position error."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import NO_MEMORY, Controller, Gains
from arm_dynamics.control.controllers.pid import DAMPING, uniform_bandwidth
from arm_dynamics.control.lqr_design.lqr_gain import viscous_damping
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 30.0
"""Natural frequency [rad/s] of a joint by itself when no gains are given."""
MAX_DAMPING_RATE = 400.0
"""Highest damping rate [1/s] of these gains, for control periods up to some 2 ms."""
MOST_ROUNDS, CLOSE = 100, 1e-13
"""Rounds in which effort and acceleration settle in continuous time, to this, relative."""


class VelocityPid(Controller):
    """tau = kv ė + kx e + ka (a_ref - a) + s g(q),  e = q_ref - q,  ė = v_ref - v.

    A PID of the velocity error with the integral written out: ∫ė dt = e. So there is no integral
    to wind up. g is that of the controller's own model; s = gravity is 1, or 0 without gravity
    compensation. a is the arm's actual acceleration, so that together with the arm

        (M + ka) a = kv ė + kx e + ka a_ref + s g_model(q) - C(q, v) v - g(q) - b v,

    and an error of the model enters by s g_model alone. With the ``two_link`` gains and masses and
    lengths of the model 5 % too large the cubic of 4 s so ends, at 5 s, at errors of (6.6e-3,
    3.1e-3) rad, as published; with an acceleration from that model it would be (9.2e-3, 1.0e-3).

    tau and a depend on each other at the same instant. Sampled, the mean acceleration of the last
    period, (v - v_last) / dt, is measured, and the model predicts its change:
    a = (v - v_last) / dt + M⁻¹ (tau - tau_last). Its errors so act for one period at most, and not
    at all at rest. In the first update a = M⁻¹ (tau - C v - g - b v). Noise of v enters tau by up
    to ka / dt. In continuous time tau and a are solved for together (``instant``).

    Without gains: kx = w² m, kv = 1.6 w m, ka = 0, with m = M_ii at the initial pose and
    w = BANDWIDTH, or less where coupled joints would make the fastest rate, the largest eigenvalue
    of M⁻¹ diag(kv), exceed FASTEST. Published for the arm ``two_link`` (MCEN90028)
    with kv = 100, 20; kx = 200, 50; ka = 0.5, 0.05.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "kv", None, "N·m·s/rad", "effort per velocity error", lower=0, upper=1e6, order=1
        ),
        Parameter("kx", None, "N·m/rad", "effort per position error", lower=0, upper=1e6, order=2),
        Parameter("ka", 0.0, "kg·m²", "effort per acceleration error", lower=0, upper=1e6),
    )
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gravity", 1.0, "1", "share of the model's weight that is added", lower=0),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._last: tuple[Vector, Vector] | None = None

    def reset(self, state: State) -> None:
        """Forget the last velocity and effort."""
        self._last = None

    def set_gains(self, gains: Gains) -> None:
        """Take new gains; errors as in Controller."""
        super().set_gains(gains)
        self._viscous = viscous_damping(self.arm)

    def set_model(self, arm: ArmModel) -> None:
        """Tell the controller another model; errors as in Controller."""
        super().set_model(arm)
        self._viscous = viscous_damping(arm)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        known, q, v = self._without_acceleration(state, reference), state.q, state.v
        if not self.gains["ka"].any():
            return self.effort_command(known, state)
        mass = self.dynamics.mass_matrix(q)
        if self._last is None or dt == 0.0:
            other = -self.dynamics.nle(q, v) - self._viscous * v
        else:
            v_last, tau_last = self._last
            other = mass @ ((v - v_last) / dt) - tau_last
        command = self.effort_command(known - self._share(mass) @ (known + other), state)
        self._last = v, command.value
        return command

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """As in Controller: what sampled updates settle to while no time passes.

        Raises InvalidValue where they do not settle, because the model is far too heavy.
        """
        state, reference = self.bounded_inputs(state, reference)
        known = self._without_acceleration(state, reference)
        command = self.effort_command(known, state)
        if not self.gains["ka"].any():
            return command, NO_MEMORY
        mass = self.dynamics.mass_matrix(state.q)
        share = self._share(mass)
        for _ in range(MOST_ROUNDS):
            tau = command.value
            other = mass @ acceleration(tau) - tau
            command = self.effort_command(known - share @ (known + other), state)
            if np.abs(command.value - tau).max() <= CLOSE * (1 + np.abs(tau).max()):
                return command, NO_MEMORY
        raise InvalidValue(
            f"controller VelocityPid at t = {state.time:g} s: effort and acceleration do not"
            f" settle in {MOST_ROUNDS} rounds; expected a model less than twice as heavy as the arm"
        )

    def _without_acceleration(self, state: State, reference: Reference) -> Vector:
        """kv ė + kx e + ka a_ref + s g(q)."""
        gains, q = self.gains, state.q
        tau = gains["kv"] * (reference.v - state.v) + gains["kx"] * (reference.q - q)
        return (
            tau
            + gains["ka"] * reference.a
            + self.controller_gains["gravity"] * self.dynamics.gravity(q)
        )

    def _share(self, mass: Vector) -> Vector:
        """S = ka (M + ka)⁻¹ (nv, nv): M a = tau + f and tau = u - ka a give tau = u - S (u + f)."""
        ka = self.gains["ka"]
        share: Vector = ka[:, None] * np.linalg.inv(mass + np.diag(ka))
        return share

    def default_gains(self) -> Gains:
        """Gains of equal bandwidth at the initial pose."""
        w, inertia = uniform_bandwidth(self.arm, BANDWIDTH, MAX_DAMPING_RATE)
        return {
            name: {"kv": DAMPING * w * m, "kx": w**2 * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }
