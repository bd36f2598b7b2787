"""Signals that end a process, also while it compiles, and SIGUSR1, the emergency stop.

Python calls a signal handler in the main thread, between two of its instructions. A call of LLVM
is one instruction and lasts up to tens of seconds. Therefore a second thread, which
``signal.set_wakeup_fd`` wakes, ends a process that compiles. This module imports only the standard
library: executables install their handlers before they import anything else.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from math import inf
from threading import Lock, Thread, main_thread
from typing import Any, NoReturn

STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP")
    if hasattr(signal, name)
)  # fmt: skip
"""Signals that end a program in order."""
INTERRUPTS = signal.SIGINT, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else [])
"""Signals that end a command with one line: Ctrl-C, and the emergency stop, also without an arm."""
FLUSH_TIMEOUT = 1.0
"""Longest time [s] to write the last output: a terminal may not accept it."""
POLL = 0.02
"""Time [s] between two checks of a flag that the main thread has not read."""

_ending = Lock()
compiling: list[int] = []
"""Threads that compile, by ident; ``compiled_math`` enters and removes them."""
before_end: list[Callable[[], None]] = []
"""Called before a process ends immediately."""


class StopHandler:
    """Signal handler of the main thread that a second thread supports."""

    @abstractmethod
    def __call__(self, number: int = 0, frame: Any = None) -> None:
        """React in the main thread."""

    @abstractmethod
    def watch(self) -> None:
        """React in the second thread, when the signal arrives."""


class EndProcess(StopHandler):
    """Handler that ends the process immediately, with an exit code and a line on standard error.

    An exception does not suffice, because callbacks of the compiler discard it.
    """

    def __init__(self, code: int = 0, text: str = "") -> None:
        self.code, self._text = code, text

    def __call__(self, number: int = 0, frame: Any = None) -> NoReturn:
        """End the process, from any thread and any number of times."""
        if _ending.acquire(blocking=False):
            try:  # in threads: the interrupted instruction may hold the lock of a stream
                for work in (self._flush, partial(time.sleep, FLUSH_TIMEOUT)):
                    Thread(target=self._exit_after, args=(work,), daemon=True).start()
            except RuntimeError:  # the interpreter shuts down and starts no thread
                os._exit(self.code)
        while True:
            time.sleep(POLL)

    def watch(self) -> NoReturn:
        """End the process."""
        self()

    def report(self) -> int:
        """Print the line; return the exit code."""
        if self._text:
            print(self._text, file=sys.stderr, flush=True)
        return self.code

    def _exit_after(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            os._exit(self.code)

    def _flush(self) -> None:
        self.report()
        sys.stdout.flush()
        sys.stderr.flush()
        for flush in before_end:
            flush()


class Interrupt(StopHandler):
    """Handler that raises KeyboardInterrupt; while any thread compiles, it ends the process."""

    def __init__(self, end: EndProcess) -> None:
        self._end = end

    def __call__(self, number: int = 0, frame: Any = None) -> None:
        """Raise KeyboardInterrupt, which LLVM's callbacks would discard."""
        self.watch()
        raise KeyboardInterrupt

    def watch(self) -> None:
        """End the process if a thread compiles."""
        if compiling:
            self._end()


class ShutdownFlag(StopHandler):
    """Handler that sets a flag, which a loop in the main thread reads.

    Not a threading.Event: its lock deadlocks if a second signal arrives while the handler of the
    first one holds it. If the main thread compiles instead of reading the flag, or does not read
    it for ``patience``, the process ends immediately, unless the flag is no longer a handler.

    Parameters
    ----------
    end : EndProcess, optional
        End of a process whose main thread does not read the flag.
    last_resort : callable, optional
        Called before that, in the second thread: disables torque.
    patience : float
        Longest time [s] from a signal until the flag is read.

    """

    def __init__(
        self,
        end: EndProcess | None = None,
        last_resort: Callable[[], object] = lambda: None,
        patience: float = inf,
    ) -> None:
        self._end, self.last_resort, self._patience = end or EndProcess(), last_resort, patience
        self._requested = self._read = False

    def __call__(self, number: int = 0, frame: Any = None) -> None:
        """Set the flag."""
        self.set()

    def watch(self) -> None:
        """End the process if the main thread does not read the flag while it is a handler."""
        until = time.monotonic() + self._patience
        while not self._read and any(signal.getsignal(n) is self for n in signal.valid_signals()):
            if main_thread().ident in compiling or time.monotonic() > until:
                try:
                    self.last_resort()
                finally:
                    self._end()
            time.sleep(POLL)

    def set(self) -> None:
        """Request the shutdown."""
        self._requested = True

    def is_set(self) -> bool:
        """Return whether a shutdown was requested."""
        if self._requested:
            self._read = True
        return self._requested

    def wait(self, timeout: float) -> bool:
        """Sleep for ``timeout`` [s]; return whether a shutdown was requested."""
        time.sleep(timeout)
        return self.is_set()


class EmergencySignal:
    """Handler of SIGUSR1: calls the listener; one that is connected later is called then."""

    def __init__(self) -> None:
        self._listener: Callable[[], None] | None = None
        self._pending = False

    def __call__(self, *_: object) -> None:
        """Call the listener."""
        if self._listener is None:
            self._pending = True
        else:
            self._listener()

    @property
    def connected(self) -> bool:
        """Whether there is a listener."""
        return self._listener is not None

    def connect(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` in the main thread at each signal, and now if one came before."""
        self._listener = listener
        if self._pending:
            self._pending = False
            listener()

    def disconnect(self) -> None:
        """Release the listener of a node that ends: another one may run in this process."""
        self._listener = None


emergency_signal = EmergencySignal()
"""SIGUSR1 of a node."""


def install(handler: Any, *numbers: int) -> dict[int, Any]:
    """Handle signals; return the previous handlers.

    An ignored SIGHUP stays ignored (nohup). A SIGINT that ``delaying_interrupts`` has delayed
    arrives here. Processes call this before they start threads, which inherit the signal mask.
    Outside of the main thread, which alone receives signals, it has no effect.
    """
    if isinstance(handler, StopHandler):
        _start_watching()
    before: dict[int, Any] = {}
    with suppress(ValueError):
        for number in numbers:
            ignored = signal.getsignal(number) is signal.SIG_IGN
            if not (ignored and number == getattr(signal, "SIGHUP", None)):
                before[number] = signal.signal(number, handler)
        if signal.SIGINT in before and hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return before


@contextmanager
def handling(handler: Any, *numbers: int) -> Iterator[None]:
    """Handle signals until the block ends, or until it installs another handler."""
    before = install(handler, *numbers)
    try:
        yield
    finally:
        for number, previous in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, previous)


def ending_immediately() -> AbstractContextManager[None]:
    """Return a context in which stop signals end the process with code 0: nothing is to be stopped.

    For a start, which may compile for a minute.
    """
    return handling(EndProcess(), *STOP_SIGNALS)


def end_on_signals() -> None:
    """Have the stop signals end this process of a node with code 0, and note SIGUSR1."""
    install(EndProcess(), *STOP_SIGNALS)
    install(emergency_signal, signal.SIGUSR1)


def stop_on_signals(end: EndProcess | None = None) -> ShutdownFlag:
    """Return a flag that the stop signals set; note SIGUSR1.

    ``end`` ends the process if its main thread compiles instead of reading the flag.
    """
    stop = ShutdownFlag(end)
    install(stop, *STOP_SIGNALS)
    install(emergency_signal, signal.SIGUSR1)
    return stop


def ignore_further_signals() -> None:
    """Ignore further signals: Python removes its handlers before the process has ended."""
    install(signal.SIG_IGN, *STOP_SIGNALS, signal.SIGUSR1)
    emergency_signal.disconnect()


def exit_with_parent(parent: int) -> None:
    """Have Linux end this process with SIGTERM when its parent, of process id ``parent``, ends."""
    if sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the request above
        sys.exit(1)


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


_watched: set[int] = set()
"""Process ids with a second thread: this one's and, in a fork, its parent's."""


def _start_watching() -> None:
    """Start the second thread, once in a process."""
    if os.getpid() in _watched:
        return
    source, target = os.pipe()
    os.set_blocking(target, False)
    try:
        signal.set_wakeup_fd(target, warn_on_full_buffer=False)
    except ValueError:  # not in the main thread
        os.close(source)
        os.close(target)
        return
    _watched.add(os.getpid())
    thread = Thread(target=_watch, args=(source,), name="signals", daemon=True)
    thread.start()
    atexit.register(_stop_watching, target, thread)


def _stop_watching(target: int, thread: Thread) -> None:
    """End the second thread before the interpreter ends."""
    _wake_no_thread()
    os.close(target)
    thread.join(FLUSH_TIMEOUT)


def _watch(source: int) -> None:
    while numbers := os.read(source, 64):
        for number in numbers:
            handler = signal.getsignal(number)
            if isinstance(handler, StopHandler):
                handler.watch()


def _wake_no_thread() -> None:
    """Wake no second thread any longer: that of a parent process, or one that ends."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_wake_no_thread)
