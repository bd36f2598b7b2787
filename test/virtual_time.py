"""Time that advances only while all threads of a test sleep."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from arm_dynamics.cli import teleop, terminal
from arm_dynamics.cli.hardware import jog, keyboard, run, torque_session
from arm_dynamics.core import timing
from arm_dynamics.safety import events

TIMED_MODULES = (timing, events, terminal, torque_session, run, jog, teleop)


class VirtualTime:
    """Replacement of ``time`` for the thread that creates it, and for those of ``thread``.

    When all these threads sleep, the time becomes the earliest end of a sleep, and ``on_advance``
    is called with it. While a thread is ``idle``, the others sleep in wall time too.
    """

    def __init__(self) -> None:
        self.on_advance: Callable[[float], None] = lambda now: None
        self._now, self._idle = 0.0, 0
        self._threads = {threading.get_ident()}
        self._number_of_threads = 1
        self._wakes: dict[int, float] = {}
        self._changed = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        return self._now

    def sleep(self, duration: float) -> None:
        me = threading.get_ident()
        if me not in self._threads:
            time.sleep(duration)
            return
        if self._idle:
            time.sleep(duration)
        with self._changed:
            self._wakes[me] = self._now + max(0.0, duration)
            self._advance()
            try:
                self._changed.wait_for(lambda: me not in self._wakes)
            finally:
                self._wakes.pop(me, None)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Context in which the present thread waits for something else than time."""
        with self._changed:
            self._idle += 1
            self._advance()
        try:
            yield
        finally:
            with self._changed:
                self._idle -= 1

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        """Return a thread that is started, with this time until ``run`` returns."""

        def timed() -> None:
            self._threads.add(threading.get_ident())
            try:
                run()
            finally:
                with self._changed:
                    self._threads.discard(threading.get_ident())
                    self._number_of_threads -= 1
                    self._advance()

        self._number_of_threads += 1
        thread = threading.Thread(target=timed, daemon=True)
        thread.start()
        return thread

    def _advance(self) -> None:
        if self._wakes and len(self._wakes) + self._idle >= self._number_of_threads:
            self._now = min(self._wakes.values())
            self.on_advance(self._now)
            self._wakes = {id: wake for id, wake in self._wakes.items() if wake > self._now}
            self._changed.notify_all()


def install_virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """Return the virtual time of the commands that read or move motors, until the test ends."""
    clock = VirtualTime()

    def answer(question: str) -> str:
        with clock.idle():
            return input(question)

    def ready(*streams_and_wait: Any) -> Any:
        *streams, wait = streams_and_wait
        if wait and not any(select.select(*streams, 0)):
            clock.sleep(wait)
        return select.select(*streams, 0)

    for module in TIMED_MODULES:
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(torque_session, "output_in_background", nullcontext)  # waits in wall time
    monkeypatch.setattr(keyboard, "input", answer, raising=False)
    monkeypatch.setattr(keyboard, "select", SimpleNamespace(select=ready))
    return clock
