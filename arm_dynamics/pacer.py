"""Keeping simulated time in step with the clock on the wall."""

from __future__ import annotations

import time


class Pacer:
    """Sleeps until each period is due; counts deadlines missed and measures the rate.

    A deadline is missed when a period ends more than one period late; the schedule then
    starts anew instead of being caught up in a burst.
    """

    def __init__(self, period: float, factor: float = 1.0) -> None:
        self.period = period
        self.factor = factor
        self.missed = 0
        self._due = time.monotonic()

    def restart(self) -> None:
        """Begin a new schedule now, after a pause."""
        self._due = time.monotonic()

    def wait(self) -> None:
        """Sleep until the next period is due; with factor 0 return at once."""
        if self.factor <= 0:
            return
        interval = self.period / self.factor
        self._due += interval
        ahead = self._due - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        elif ahead < -interval:
            self.missed += 1
            self._due = time.monotonic()


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
