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

    def __init__(self, refused: Callable[[str, ArmDynamicsError], None]) -> None:
        self._refused = refused
        self._words = 0
        self._lock = Lock()
        self._thread: Thread | None = None

    def run_now(self, deed: Callable[[], None]) -> None:
        """Call ``deed`` immediately and cancel the current work."""
        with self._lock:
            self._words += 1
            deed()

    def start(self, topic: str, work: Callable[[Pause], Callable[[], None]]) -> None:
        """Start work in the background; errors of this package are reported with the topic."""
        self.run_now(lambda: None)
        arguments = topic, work, self._words
        self._thread = Thread(target=self._do, args=arguments, name="background task", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the current work."""
        self.run_now(lambda: None)
        if self._thread is not None:
            self._thread.join(END)

    def _do(self, topic: str, work: Callable[[Pause], Callable[[], None]], word: int) -> None:
        def pause() -> None:
            self._still(word)
            time.sleep(SLEEP_TIME)

        try:
            deed = work(pause)
            with self._lock:
                self._still(word)
                deed()
        except ArmDynamicsError as error:
            self._refused(topic, error)

    def _still(self, word: int) -> None:
        if word != self._words:
            raise TrajectoryRejected("canceled: another target was received during the check")
