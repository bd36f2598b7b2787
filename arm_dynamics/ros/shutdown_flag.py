"""Shutdown on SIGINT and SIGTERM: immediate during the start, then by a flag."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ShutdownFlag:
    """Flag that requests the end of a process.

    Not a threading.Event: its lock deadlocks if a second signal arrives while the handler of the
    first one holds it.
    """

    def __init__(self) -> None:
        self._asked = False

    def set(self, *_: object) -> None:
        """Request the shutdown; also a signal handler."""
        self._asked = True

    def is_set(self) -> bool:
        """Return whether a shutdown was requested."""
        return self._asked

    def wait(self, timeout: float) -> bool:
        """Sleep for ``timeout`` [s]; return whether a shutdown was requested."""
        time.sleep(timeout)
        return self._asked


def ignore_further_signals() -> None:
    """Ignore further signals: Python removes its handlers before the process has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Have SIGINT and SIGTERM end the process with code 0 during a start, which may compile long.

    During a start nothing requires an ordered end. An exception does not suffice, because callbacks
    of the compiler discard it.
    """
    before = end_on_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_on_signals() -> dict[int, Any]:
    """Have SIGINT and SIGTERM end the process with code 0; return the previous handlers."""
    return {n: signal.signal(n, _end) for n in (signal.SIGINT, signal.SIGTERM)}


def _end(*_: object) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def stop_on_signals() -> ShutdownFlag:
    """Return a flag that SIGINT and SIGTERM set."""
    stop = ShutdownFlag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop.set)
    return stop
