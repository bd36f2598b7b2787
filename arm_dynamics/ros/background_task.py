"""Task in a background thread that yields to the thread of the loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread

from arm_dynamics.core.errors import ArmDynamicsError, TrajectoryRejected

SLEEP_TIME = 1e-4
"""Time [s] of a pause, during which interpreter and processor are free."""
END = 1.0
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
            self._thread.join(END)

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
