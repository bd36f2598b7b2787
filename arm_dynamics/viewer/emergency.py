"""The emergency stop of a page: press, state, and release where the page may do so."""

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
    """A red button, a line with the state, and a button "Release" while it is engaged."""

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
        """Let ``release`` be called once a user has confirmed it; None: no release here."""
        self._release = release
        self._offer()

    def show(self, engaged: str) -> None:
        """Show by what it is engaged, "" for released."""
        if engaged != self._engaged:
            self._engaged = engaged
            text, color = (engaged, BAD) if engaged else (RELEASED, GOOD)
            self._state.content = (
                f'<div role="status" style="{STYLE};color:{color}">{escape(text)}</div>'
            )
            self._offer()

    def _offer(self) -> None:
        self._button.visible = bool(self._engaged) and self._release is not None

    def _confirm(self, client: Any) -> None:
        """Ask the user who pressed, on no other page."""
        dialog = client.gui.add_modal("Release the emergency stop?")
        with dialog:
            client.gui.add_markdown(QUESTION)
            yes, no = client.gui.add_button("Release now"), client.gui.add_button("Cancel")

        def confirmed(_: Any) -> None:
            dialog.close()
            self._do_release()

        yes.on_click(confirmed)
        no.on_click(lambda _: dialog.close())

    def _do_release(self) -> None:
        if self._release is None:
            return
        try:
            self._feedback.done(self._release())
        except ArmDynamicsError as error:
            self._feedback.rejected(error)
