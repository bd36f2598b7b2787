"""Keeping simulated time in step with the clock on the wall."""

from __future__ import annotations

import time

SHORTEST = 0.75
"""Share of a period that is left between two instants even when catching up."""


class Pacer:
    """Sleeps until each period is due; counts deadlines missed.

    A late period is caught up a quarter at a time, so that whoever answers keeps time to do
    so. More than one period late counts as a missed deadline, and the schedule starts anew.
    """

    def __init__(self, period: float, factor: float = 1.0) -> None:
        self.period = period
        self.factor = factor
        self.missed = 0
        self.restart()

    def restart(self) -> None:
        """Begin a new schedule now, after a pause."""
        self._due = self._last = time.monotonic()

    def wait(self) -> None:
        """Sleep until the next period is due."""
        interval = self.period / self.factor
        self._due += interval
        now = time.monotonic()
        if now - self._due > interval:
            self.missed += 1
            self._due = now
        ahead = max(self._due, self._last + SHORTEST * interval) - now
        if ahead > 0:
            time.sleep(ahead)
        self._last = time.monotonic()


class Rate:
    """How fast a growing number grows: events, or simulated seconds, per second."""

    def __init__(self) -> None:
        self._read = (0.0, time.monotonic())

    def of(self, value: float) -> float:
        """Growth per second of wall time since the last call."""
        (before, then), now = self._read, time.monotonic()
        self._read = (value, now)
        return (value - before) / max(now - then, 1e-9)
