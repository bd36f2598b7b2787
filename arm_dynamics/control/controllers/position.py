"""Position commands for arms with position servos."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.state import Command, Reference, State


class PositionController(Controller):
    """u = q_ref: the reference position as a position command."""

    interface: ClassVar[str] = "position"

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the position command (nv,) [rad or m]."""
        state, reference = self.bounded_inputs(state, reference, dt)
        return Command(self.interface, as_readonly(reference.q), state.time)
