"""Progress on a terminal: a status line, lines for log files, and a timer for silent work."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from types import TracebackType

from rich.console import Console

PERIOD = 0.1
"""Between two texts [s]: faster than the eye needs no line."""


class StatusLine:
    """``show`` writes over what it showed before; ``end`` leaves a text there."""

    def __init__(self) -> None:
        self._next, self._shown = 0.0, False

    def __enter__(self) -> StatusLine:
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


EVERY = 10.0
"""Period of progress lines in a log file [s]."""
SILENCE = 2.0
"""Time before the first line of ``waiting`` [s]."""


class ProgressLines:
    """Lines on ``console``, none where it is a terminal: that has a display of its own."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, time.monotonic() + EVERY

    def update(self, text: str) -> None:
        """Print ``text``, unless the last line is younger than EVERY."""
        if self._console.is_terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show ``text`` with the time that has passed, on standard error, from SILENCE on.

    On a terminal one line that is cleared at the end, elsewhere a line each EVERY.
    """
    console, ended = Console(stderr=True), threading.Event()
    began = time.monotonic()

    def tell() -> None:
        if ended.wait(SILENCE):
            return
        if console.is_terminal:
            with console.status(text) as status:
                while not ended.wait(1.0):
                    status.update(f"{text} ({time.monotonic() - began:.0f} s)")
            return
        while True:
            line = f"{text} ({time.monotonic() - began:.0f} s)"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
            if ended.wait(EVERY):
                return

    thread = threading.Thread(target=tell, name="waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
