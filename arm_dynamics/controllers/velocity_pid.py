"""PID of the velocity error: proportional in speed, its integral the position error."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.controllers.bandwidth import DAMPING, equal_bandwidth
from arm_dynamics.controllers.base import Controller, Gains
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.parameters import Parameter
from arm_dynamics.regulation.regulator import viscous
from arm_dynamics.state import Command, Reference, State

BANDWIDTH = 30.0
"""Natural frequency [rad/s] of a joint by itself when no gains are given."""
FASTEST = 400.0
"""Highest damping rate [1/s] of these gains, for control periods up to some 2 ms."""


class VelocityPid(Controller):
    """tau = kv ė + kx e + ka (a_ref - a) + s g(q),  e = q_ref - q,  ė = v_ref - v.

    A PID of the velocity error with the integral written out: ∫ė dt = e. So it remembers nothing
    and can not wind up. The acceleration a is not measured but what tau itself will cause,
    M a + C v + g + b v = tau, in the law's own model: the two are solved together, and where that
    model weighs too much, ka adds to the error at rest. s = gravity is 1, or 0 for the law without
    gravity compensation.

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
    law_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gravity", 1.0, "1", "share of the model's weight that is added", lower=0),
    )

    def configure(self, gains: Gains) -> None:
        """Take new gains; errors as in Controller."""
        super().configure(gains)
        self._viscous = viscous(self.arm)

    def use_model(self, arm: ArmModel) -> None:
        """Tell the law another model; errors as in Controller."""
        super().use_model(arm)
        self._viscous = viscous(arm)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.readable(state, reference, dt)
        ka, q, v = self.gains["ka"], state.q, state.v
        tau = self.gains["kv"] * (reference.v - v) + self.gains["kx"] * (reference.q - q)
        tau += ka * reference.a + self.law_gains["gravity"] * self.body.gravity(q)
        if ka.any():
            mass = self.body.mass_matrix(q) + np.diag(ka)
            tau -= ka * np.linalg.solve(mass, tau - self.body.nle(q, v) - self._viscous * v)
        return self.limited(tau, state)

    def found_from_model(self) -> Gains:
        """Gains of equal bandwidth at the initial pose."""
        w, inertia = equal_bandwidth(self.arm, BANDWIDTH, FASTEST)
        return {
            name: {"kv": DAMPING * w * m, "kx": w**2 * m}
            for name, m in zip(self.arm.joint_names, inertia.tolist(), strict=True)
        }
