"""Work aside from a node's services: in a thread that lets the thread of the loop go first."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread

from arm_dynamics.core.errors import ArmDynamicsError, TrajectoryRejected

SLEEP_TIME = 1e-4
"""Time [s] of a pause: the interpreter is free meanwhile, and the core too."""
END = 1.0
"""Time [s] in which work that is given up should have come to a pause."""

Pause = Callable[[], None]


class BackgroundTask:
    """Does the latest piece of work; one that another word overtakes is given up.

    The work calls the pause that it is given, often, and ends in what is to be done if nothing
    was said meanwhile. All methods are for one thread.
    """

    def __init__(self, refused: Callable[[str, ArmDynamicsError], None]) -> None:
        self._refused = refused
        self._words = 0
        self._lock = Lock()
        self._thread: Thread | None = None

    def run_now(self, deed: Callable[[], None]) -> None:
        """Do this at once: work under way is given up."""
        with self._lock:
            self._words += 1
            deed()

    def start(self, topic: str, work: Callable[[Pause], Callable[[], None]]) -> None:
        """Have it done aside; what it raises of the package's errors is told with the topic."""
        self.run_now(lambda: None)
        arguments = topic, work, self._words
        self._thread = Thread(target=self._do, args=arguments, name="aside", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Give up the work under way."""
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
            raise TrajectoryRejected("given up: another goal came before the check was over")
