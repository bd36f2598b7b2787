"""Position commands for arms whose joints go where they are told."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.state import Command, Reference, State


class PositionController(Controller):
    """u = q_ref: the reference's position as a command; the actuators do the rest."""

    interface: ClassVar[str] = "position"

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Position command (nv,) [rad or m]; nothing but the reference enters."""
        state, reference = self.bounded_inputs(state, reference, dt)
        return Command(self.interface, as_readonly(reference.q), state.time)
