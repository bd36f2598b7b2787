"""What services ask of the loop: done between two cycles, the answer waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from arm_dynamics.core.errors import DriverFault

ReturnT = TypeVar("ReturnT")
ENDING = "the node is ending"


class LoopRequests:
    """Work for the thread of the loop, from any other thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Any], Future[Any] | None]] = deque()
        self._closed = False

    def post(self, work: Callable[[], object]) -> None:
        """Have ``work`` done by the loop, and go on; what it raises, the loop raises."""
        self._waiting.append((work, None))

    def ask(self, work: Callable[[], ReturnT]) -> ReturnT:
        """Have ``work`` done by the loop and return its answer, or raise what it raises.

        Raises DriverFault once the loop has ended.
        """
        future: Future[ReturnT] = Future()
        self._waiting.append((work, future))
        if self._closed:
            self.serve(DriverFault(ENDING))
        return future.result()

    def serve(self, refusal: Exception | None = None) -> None:
        """Do what is asked for, or refuse it; called by the loop between two cycles."""
        while self._waiting:
            try:
                work, future = self._waiting.popleft()
            except IndexError:  # the last one was taken by another thread that refuses
                return
            if future is not None:
                _fulfil(work, future, refusal)
            elif refusal is None:
                work()

    def close(self) -> None:
        """Refuse what waits and whatever comes from now on."""
        self._closed = True
        self.serve(DriverFault(ENDING))


def _fulfil(work: Callable[[], Any], future: Future[Any], refusal: Exception | None) -> None:
    try:
        if refusal is not None:
            raise refusal
        future.set_result(work())
    except Exception as error:  # it belongs to whoever asked
        future.set_exception(error)
