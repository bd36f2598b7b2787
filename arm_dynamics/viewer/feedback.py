"""Line of the panel with the result of the last action."""

from __future__ import annotations

from html import escape
from typing import Any

from arm_dynamics.viewer.table import STYLE

GOOD, BAD, PLAIN = "#69db7c", "#ff8787", "inherit"


class Feedback:
    """Line of text: green for a completed action, red for a rejected one, else without color."""

    def __init__(self, gui: Any, *, order: float | None = None) -> None:
        self._line = gui.add_html("", order=order)

    @property
    def html(self) -> str:
        """HTML text of the line."""
        return str(self._line.content)

    def done(self, text: str) -> None:
        """Show the result of a completed action."""
        self._show(GOOD, text)

    def rejected(self, reason: object) -> None:
        """Show the reason of a rejected action."""
        self._show(BAD, f"rejected: {reason}")

    def note(self, text: str) -> None:
        """Show another message, such as that of a running action."""
        self._show(PLAIN, text)

    def _show(self, color: str, text: str) -> None:
        self._line.content = (
            f'<div role="status" style="{STYLE};color:{color};overflow-wrap:anywhere">'
            f"{escape(text)}</div>"
        )
