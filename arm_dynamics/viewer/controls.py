"""Controls of a page: joint sliders, buttons, parameter fields."""

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
"""Returns a message about the action, or raises an ArmDynamicsError that rejects it."""


class ActionRow:
    """Row of buttons, one for each action; only those ``offered`` are visible until ``offer``."""

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
        """Names of the visible buttons."""
        return tuple(self._row.options)

    def offer(self, *names: str) -> None:
        """Show these buttons, in this order."""
        if names != self.offered:
            self._row.options = names

    def press(self, name: str) -> None:
        """Run the action ``name`` in the caller's thread, and report its result.

        It is rejected while another action runs.
        """
        if not self._busy.acquire(blocking=False):
            self._feedback.rejected(f"{name}: another action is running")
            return
        try:
            self._feedback.note(f"{name} ...")
            self._feedback.done(self._actions[name]())
        except ArmDynamicsError as error:
            self._feedback.rejected(error)
        finally:
            self._busy.release()


class Controls:
    """Joint sliders, and the buttons and parameter fields added to them."""

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
        """Add a row of buttons above the sliders; ``offered`` are visible first, by default all."""
        return ActionRow(
            self._gui, label, actions, self.feedback, offered=offered, order=layout.ACTIONS
        )

    def add_parameters(
        self, title: str, numbers: Numbers, accept: Accept, *, folded: bool = False
    ) -> ParameterFields:
        """Add a folder of editable ``numbers`` to the panel, open or ``folded``.

        ``accept(owner, label, number)`` applies an edit or raises an ArmDynamicsError.
        """
        order = layout.FOLDED if folded else layout.EDITED
        return ParameterFields(self._gui, title, numbers, accept, order=order, folded=folded)
