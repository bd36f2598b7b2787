"""Work that is passed between the threads of a process.

Services pass functions to the loop's thread, which executes them between two cycles. Long checks
run in a background thread that yields to the loop's thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeVar

from arm_dynamics.core.errors import ArmDynamicsError, DriverFault, TrajectoryRejected

ReturnT = TypeVar("ReturnT")
ENDING = "the loop has ended"


class LoopRequests:
    """Functions for the loop's thread, queued from any other thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Any], Future[Any] | None]] = deque()
        self._closed = False

    def post(self, work: Callable[[], object]) -> None:
        """Queue ``work`` and return; the loop raises its errors."""
        self._waiting.append((work, None))

    def call(self, work: Callable[[], ReturnT]) -> ReturnT:
        """Queue ``work``, wait for it, and return its result or raise its error.

        Raise DriverFault after the loop has ended.
        """
        future: Future[ReturnT] = Future()
        self._waiting.append((work, future))
        if self._closed:
            self.serve(DriverFault(ENDING))
        return future.result()

    def serve(self, rejection: Exception | None = None) -> None:
        """Execute or reject queued work; the loop calls it between two cycles."""
        while self._waiting:
            try:
                work, future = self._waiting.popleft()
            except IndexError:  # another thread that rejects took the last one
                return
            if future is None:
                if rejection is None:
                    work()
                continue
            try:
                if rejection is not None:
                    raise rejection
                future.set_result(work())
            except Exception as error:  # for the thread that waits
                future.set_exception(error)

    def close(self) -> None:
        """Reject queued and future work."""
        self._closed = True
        self.serve(DriverFault(ENDING))


SLEEP_TIME = 1e-4
"""Time [s] of a pause, during which interpreter and processor are free."""
CANCEL_TIMEOUT = 1.0
"""Maximum time [s] for canceled work to reach a pause."""

Pause = Callable[[], None]


class BackgroundTask:
    """Runs the latest work; a later request cancels it.

    The work frequently calls the pause that it receives. It returns a function that is called if no
    other request was made during this time. All methods are for one thread.
    """

    def __init__(self, reject: Callable[[str, ArmDynamicsError], None]) -> None:
        self._reject = reject
        self._request_id = 0
        self._lock = Lock()
        self._thread: Thread | None = None

    def run_now(self, finish: Callable[[], None]) -> None:
        """Call ``finish`` immediately and cancel the current work."""
        with self._lock:
            self._request_id += 1
            finish()

    def start(self, topic: str, work: Callable[[Pause], Callable[[], None]]) -> None:
        """Start work in the background; errors of this package are reported with the topic."""
        self.run_now(lambda: None)
        arguments = topic, work, self._request_id
        self._thread = Thread(target=self._run, args=arguments, name="background task", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the current work."""
        self.run_now(lambda: None)
        if self._thread is not None:
            self._thread.join(CANCEL_TIMEOUT)

    def _run(
        self, topic: str, work: Callable[[Pause], Callable[[], None]], request_id: int
    ) -> None:
        def pause() -> None:
            self._require_current(request_id)
            time.sleep(SLEEP_TIME)

        try:
            finish = work(pause)
            with self._lock:
                self._require_current(request_id)
                finish()
        except ArmDynamicsError as error:
            self._reject(topic, error)

    def _require_current(self, request_id: int) -> None:
        if request_id != self._request_id:
            raise TrajectoryRejected("canceled: another target was received during the check")
