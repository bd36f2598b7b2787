"""What a page lets a user do to an arm: joint sliders, buttons, numbers to edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arm_dynamics.arrays import Vector
from arm_dynamics.viewer import layout
from arm_dynamics.viewer.actions import Action, ActionRow
from arm_dynamics.viewer.feedback import Feedback
from arm_dynamics.viewer.parameter_fields import Accept, Numbers, ParameterFields
from arm_dynamics.viewer.sliders import JointSliders


class Controls:
    """Sliders from the start; buttons and numbers as they are added."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        units: Sequence[str],
        initial: Vector,
        feedback: Feedback,
    ) -> None:
        self._gui, self.feedback = gui, feedback
        self.sliders = JointSliders(gui, names, limits, initial.tolist(), units, order=layout.GOALS)

    def add_actions(
        self, label: str, actions: Mapping[str, Action], offered: Sequence[str] = ()
    ) -> ActionRow:
        """Put a row of buttons above the sliders: those ``offered`` at first, by default all."""
        return ActionRow(
            self._gui, label, actions, self.feedback, offered=offered, order=layout.ACTIONS
        )

    def add_parameters(
        self, title: str, numbers: Numbers, accept: Accept, *, folded: bool = False
    ) -> ParameterFields:
        """Put ``numbers`` on the panel for a user to edit, in view or ``folded``.

        ``accept(owner, label, number)`` takes an edit or raises an ArmDynamicsError.
        """
        order = layout.FOLDED if folded else layout.EDITED
        return ParameterFields(self._gui, title, numbers, accept, order=order, folded=folded)
