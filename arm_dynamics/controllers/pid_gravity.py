"""Joint PID on top of gravity compensation."""

from __future__ import annotations

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.state import Reference, State


class PidGravity(Pid):
    """tau = PID(e) + g(q), with g of the controller's own model.

    Source: Siciliano et al., Robotics (2009), section 8.5.1.
    """

    def feedforward(self, state: State, reference: Reference) -> Vector:
        """g(q) (nv,) [N·m]."""
        return self.body.gravity(state.q)
