"""A request to stop that a signal may make at any moment."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ShutdownFlag:
    """Set once, asked often.

    Not a threading.Event: its lock deadlocks when a second signal comes while the handler of
    the first one holds it.
    """

    def __init__(self) -> None:
        self._asked = False

    def set(self, *_: object) -> None:
        """Ask to stop; also a signal handler."""
        self._asked = True

    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._asked

    def wait(self, timeout: float) -> bool:
        """Sleep for ``timeout`` [s]; whether somebody asked."""
        time.sleep(timeout)
        return self._asked


def ignore_further_signals() -> None:
    """Ignore further requests: Python takes its handlers away before it has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """SIGINT and SIGTERM end the process with code 0: for a start, which may compile for long.

    Nothing acts yet that would have to end in order. An exception would not do: it is lost in
    callbacks of the compiler.
    """
    before = end_on_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_on_signals() -> dict[int, Any]:
    """Have SIGINT and SIGTERM end the process with code 0; returns the handlers before."""
    return {n: signal.signal(n, _end) for n in (signal.SIGINT, signal.SIGTERM)}


def _end(*_: object) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def stop_on_signals() -> ShutdownFlag:
    """A request that SIGINT and SIGTERM make."""
    stop = ShutdownFlag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop.set)
    return stop
