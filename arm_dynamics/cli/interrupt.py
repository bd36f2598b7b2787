"""Ctrl-C in a command: one line and an exit code; imports only the standard library."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, the convention of shells."""


@contextmanager
def exit_on_interrupt(command: str) -> Iterator[None]:
    """Exit immediately on Ctrl-C, because an import of compiled code can lose KeyboardInterrupt."""

    def end(*_: object) -> None:
        os._exit(interrupted(command))

    try:
        before = signal.signal(signal.SIGINT, end)
    except ValueError:  # only the main thread receives signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(command: str) -> int:
    """Print that ``command`` was interrupted; return its exit code.

    The exit code is 0 for ``sim``, which always ends by Ctrl-C.
    """
    print(f"arm-dynamics {command}: interrupted", file=sys.stderr, flush=True)
    return 0 if command == "sim" else INTERRUPTED
