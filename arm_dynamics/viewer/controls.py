"""Controls of a page: joint sliders, buttons, parameter fields, emergency stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.viewer import layout
from arm_dynamics.viewer.feedback import BAD, GOOD, Feedback
from arm_dynamics.viewer.parameter_fields import Accept, Numbers, ParameterFields
from arm_dynamics.viewer.sliders import JointSliders
from arm_dynamics.viewer.table import STYLE

LOG = logging.getLogger(__name__)
Action = Callable[[], str]
"""Returns a message about the action, or raises an ArmDynamicsError that rejects it."""
RELEASED = "emergency stop released"
QUESTION = "The arm may move again as soon as the emergency stop is released."


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


class EmergencyPanel:
    """A red button, a line with the state, and a button "Release" while the stop is engaged."""

    def __init__(
        self, gui: Any, press: Callable[[], None], feedback: Feedback, *, order: float
    ) -> None:
        self._feedback = feedback
        self._release: Action | None = None
        button = gui.add_button("EMERGENCY STOP", color="red", order=order)
        button.on_click(lambda _: press())
        self._state = gui.add_html("", order=order + 0.1)
        self._button = gui.add_button("Release", visible=False, order=order + 0.2)
        self._button.on_click(lambda event: self._confirm(event.client))
        self._engaged: str | None = None

    def allow_release(self, release: Action | None) -> None:
        """Set the action of the release, called after confirmation; None disables the release."""
        self._release = release
        self._update_button()

    def show(self, engaged: str) -> None:
        """Show the source of the emergency stop; "" if it is released."""
        if engaged != self._engaged:
            self._engaged = engaged
            text, color = (engaged, BAD) if engaged else (RELEASED, GOOD)
            self._state.content = (
                f'<div role="status" style="{STYLE};color:{color}">{escape(text)}</div>'
            )
            self._update_button()

    def _update_button(self) -> None:
        self._button.visible = bool(self._engaged) and self._release is not None

    def _confirm(self, client: Any) -> None:
        """Open a dialog on the page of the browser that pressed "Release"."""
        dialog = client.gui.add_modal("Release the emergency stop?")
        with dialog:
            client.gui.add_markdown(QUESTION)
            yes, no = client.gui.add_button("Release now"), client.gui.add_button("Cancel")

        def confirmed(_: Any) -> None:
            dialog.close()
            if self._release is None:
                return
            try:
                self._feedback.done(self._release())
            except ArmDynamicsError as error:
                self._feedback.rejected(error)

        yes.on_click(confirmed)
        no.on_click(lambda _: dialog.close())
