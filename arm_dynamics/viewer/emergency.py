"""Emergency stop of a page: button, state, and release if the page permits it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.viewer.controls import Action
from arm_dynamics.viewer.feedback import BAD, GOOD, Feedback
from arm_dynamics.viewer.table import STYLE

RELEASED = "emergency stop released"
QUESTION = "The arm may move again as soon as the emergency stop is released."


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
