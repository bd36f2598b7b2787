"""Joint PID on top of gravity compensation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import Gains
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.lqr_design.lqr_gain import coulomb, viscous_damping
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel

SLOW = 0.001
"""Speed [rad/s] of the reference from which on all of the dry friction is compensated."""


class PidGravity(Pid):
    """tau = PID(e) + g(q) + s (M(q) a_ref + C(q, v_ref) v_ref + b v_ref + f sgn(v_ref)).

    M, C, g, viscous friction b and dry friction f are those of the controller's own model, and
    s = ff_acceleration_scale, by default 0. With s = 1 and a true model the PID only has to
    correct disturbances; with s = 0 it lags by what its gains need to accelerate the arm. The
    feedforward depends on the reference: it changes no stability margin.

    Source: Siciliano et al., Robotics (2009), sections 8.5.1 and 8.7.1.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        *Pid.parameters,
        Parameter(
            "ff_acceleration_scale",
            0.0,
            "1",
            "share of M a_ref + C v_ref + friction added",
            lower=0,
        ),
    )

    def set_gains(self, gains: Gains) -> None:
        """Take new gains without disturbing the integral; errors as in Controller."""
        super().set_gains(gains)
        self._share = self.gains["ff_acceleration_scale"]
        self._moves = bool(self._share.any())
        self._viscous, self._dry = viscous_damping(self.arm), coulomb(self.arm)

    def set_model(self, arm: ArmModel) -> None:
        """Use another model; errors as in Controller."""
        super().set_model(arm)
        self._viscous, self._dry = viscous_damping(self.arm), coulomb(self.arm)

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """g(q) + s (M(q) a_ref + C(q, v_ref) v_ref + b v_ref + f sgn(v_ref)) (nv,) [N·m]."""
        gravity = self.dynamics.gravity(state.q)
        if not self._moves or not (reference.a.any() or reference.v.any()):
            return gravity
        along = self.dynamics.rnea(state.q, reference.v, reference.a)
        friction = self._viscous * reference.v + self._dry * np.clip(reference.v / SLOW, -1, 1)
        return gravity + self._share * (along - gravity + friction)
