"""Requests of services, executed by the loop's thread between two cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from arm_dynamics.core.errors import DriverFault

ReturnT = TypeVar("ReturnT")
ENDING = "the node is ending"


class LoopRequests:
    """Functions for the loop's thread, queued from any other thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Any], Future[Any] | None]] = deque()
        self._closed = False

    def post(self, work: Callable[[], object]) -> None:
        """Queue ``work`` and return; the loop raises its errors."""
        self._waiting.append((work, None))

    def ask(self, work: Callable[[], ReturnT]) -> ReturnT:
        """Queue ``work``, wait for it, and return its result or raise its error.

        Raise DriverFault after the loop has ended.
        """
        future: Future[ReturnT] = Future()
        self._waiting.append((work, future))
        if self._closed:
            self.serve(DriverFault(ENDING))
        return future.result()

    def serve(self, refusal: Exception | None = None) -> None:
        """Execute or reject queued work; the loop calls it between two cycles."""
        while self._waiting:
            try:
                work, future = self._waiting.popleft()
            except IndexError:  # another thread that rejects took the last one
                return
            if future is not None:
                _fulfil(work, future, refusal)
            elif refusal is None:
                work()

    def close(self) -> None:
        """Reject queued and future work."""
        self._closed = True
        self.serve(DriverFault(ENDING))


def _fulfil(work: Callable[[], Any], future: Future[Any], refusal: Exception | None) -> None:
    try:
        if refusal is not None:
            raise refusal
        future.set_result(work())
    except Exception as error:  # for the thread that waits
        future.set_exception(error)
