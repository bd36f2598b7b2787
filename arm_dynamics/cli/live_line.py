"""One line of the terminal that is written over and over."""

from __future__ import annotations

import sys
import time
from shutil import get_terminal_size
from types import TracebackType

PERIOD = 0.1
"""Between two texts [s]: faster than the eye needs no line."""


class LiveLine:
    """``show`` writes over what it showed before; ``end`` leaves a text there."""

    def __init__(self) -> None:
        self._next, self._shown = 0.0, False

    def __enter__(self) -> LiveLine:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the line."""
        if self._shown:
            print()

    def show(self, text: str) -> None:
        """Write ``text`` unless the last one is younger than PERIOD; cut at the line's end."""
        now = time.monotonic()
        if now >= self._next:
            self._next, self._shown = now + PERIOD, True
            sys.stdout.write(f"\r\x1b[K{text[: get_terminal_size().columns - 1]}")
            sys.stdout.flush()

    def end(self, text: str) -> None:
        """Write ``text``, which stays."""
        self._next, self._shown = 0.0, False
        print(f"\r\x1b[K{text}", flush=True)
