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
    return _install(_end)


def _end(*_: object) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def stop_on_signals() -> ShutdownFlag:
    """Return a flag that SIGINT and SIGTERM set."""
    stop = ShutdownFlag()
    _install(stop.set)
    return stop


def _install(handler: Any) -> dict[int, Any]:
    """Handle SIGINT and SIGTERM; return the previous handlers.

    A SIGINT that ``delaying_interrupts`` has delayed arrives here. Nodes call this before they
    start threads, which inherit the signal mask.
    """
    before: dict[int, Any] = {n: signal.signal(n, handler) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return before


@contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread; a process that it starts here inherits the signal mask.

    SIGINT then waits for the handlers of a child, which are not installed for its first 0.1 s, and
    does not kill it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
