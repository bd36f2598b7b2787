"""A row of buttons, each of which does something and reports what came of it.

What a page lets a user do to an arm: joint sliders, buttons, numbers to edit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.viewer import layout
from arm_dynamics.viewer.feedback import Feedback
from arm_dynamics.viewer.parameter_fields import Accept, Numbers, ParameterFields
from arm_dynamics.viewer.sliders import JointSliders

LOG = logging.getLogger(__name__)
Action = Callable[[], str]
"""Returns what was done, or raises an ArmDynamicsError with the reason why not."""


class ActionRow:
    """Buttons named by ``actions``, of which those ``offered`` are there until ``offer``."""

    def __init__(
        self,
        gui: Any,
        label: str,
        actions: Mapping[str, Action],
        feedback: Feedback,
        *,
        offered: Sequence[str] = (),
        order: float | None = None,
    ) -> None:
        self._actions, self._feedback = dict(actions), feedback
        self._busy = threading.Lock()
        self._row = gui.add_button_group(label, tuple(offered or actions), order=order)
        self._row.on_click(lambda event: self.press(event.target.value))

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the buttons that are there."""
        return tuple(self._row.options)

    def offer(self, *names: str) -> None:
        """Show these buttons, in this order."""
        if names != self.offered:
            self._row.options = names

    def press(self, name: str) -> None:
        """Do what the button ``name`` is for; in the caller's thread, one action at a time."""
        if not self._busy.acquire(blocking=False):
            self._feedback.rejected(f"{name}: another action is under way")
            return
        try:
            self._feedback.note(f"{name} ...")
            self._feedback.done(self._actions[name]())
        except ArmDynamicsError as error:
            self._feedback.rejected(error)
        finally:
            self._busy.release()


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
