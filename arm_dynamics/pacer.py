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
    """Events per second since the last reading."""

    def __init__(self) -> None:
        self.count = 0
        self._read = (0, time.monotonic())

    def per_second(self) -> float:
        """Events counted since the last call, per second."""
        (count, then), now = self._read, time.monotonic()
        self._read = (self.count, now)
        return (self.count - count) / max(now - then, 1e-9)


class RealTimeFactor:
    """Simulated seconds per second of wall time since the last reading."""

    def __init__(self) -> None:
        self._read = (0.0, time.monotonic())

    def since_last(self, simulated: float) -> float:
        """The factor between the last call and this one."""
        (before, then), now = self._read, time.monotonic()
        self._read = (simulated, now)
        return (simulated - before) / max(now - then, 1e-9)
