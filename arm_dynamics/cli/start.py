"""Executable ``arm-dynamics``, which Ctrl-C ends at any time with one line.

Importing a command takes seconds, and an interrupt during the import would print a traceback.
Therefore this module imports only the standard library. It imports the commands after the signal
handler is installed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, the convention of shells."""


def main() -> None:
    """Run ``arm-dynamics`` with the arguments of the process; exit with the command's code."""
    command = next(iter(sys.argv[1:]), "")
    try:
        with exit_on_interrupt(command):
            run = import_module("arm_dynamics.cli.main").main
        run()
    except KeyboardInterrupt:  # between the handler above and those of the command
        sys.exit(interrupted(command))


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
