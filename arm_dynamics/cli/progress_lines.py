"""Progress where no live display is: a line now and then, as in a log file."""

from __future__ import annotations

import time

from rich.console import Console

EVERY = 10.0
"""Seconds between two lines."""


class ProgressLines:
    """Lines on ``console``, none where it is a terminal: that has a display of its own."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, time.monotonic() + EVERY

    def say(self, text: str) -> None:
        """Print ``text``, unless the last line is younger than EVERY."""
        if self._console.is_terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)
