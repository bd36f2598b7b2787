"""A sign of life during work that shows none of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

SILENCE, EVERY = 2.0, 10.0
"""Time [s] before the first line, and between two lines of a log file."""


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
