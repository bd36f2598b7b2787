"""Gravity compensation: the arm can be guided by hand."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State


class GravityCompensation(Controller):
    """tau = g(q) - d v, with the gravity torque g of the controller's model.

    The reference is ignored.

    References
    ----------
    Siciliano et al., Robotics (2009), section 8.5.1.

    """

    tracks_reference: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("d", 0.0, "N·m·s/rad", "added damping", lower=0, upper=1e6),
    )

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        effort = self.dynamics.gravity(state.q) - self.gains["d"] * state.v
        return self.effort_command(effort, state)
