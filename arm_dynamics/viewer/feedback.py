"""One line on the panel: what came of the last action."""

from __future__ import annotations

from html import escape
from typing import Any

from arm_dynamics.viewer.table import STYLE

GOOD, BAD, PLAIN = "#69db7c", "#ff8787", "inherit"


class Feedback:
    """Shows done in green, a rejection with its reason in red, anything else plainly."""

    def __init__(self, gui: Any, *, order: float | None = None) -> None:
        self._line = gui.add_html("", order=order)

    @property
    def html(self) -> str:
        """What stands there."""
        return str(self._line.content)

    def done(self, text: str) -> None:
        """Report an action that was carried out."""
        self._show(GOOD, text)

    def rejected(self, reason: object) -> None:
        """Report an action that was rejected."""
        self._show(BAD, f"rejected: {reason}")

    def note(self, text: str) -> None:
        """Report anything else, such as an action under way."""
        self._show(PLAIN, text)

    def _show(self, color: str, text: str) -> None:
        self._line.content = (
            f'<div role="status" style="{STYLE};color:{color};overflow-wrap:anywhere">'
            f"{escape(text)}</div>"
        )
