"""Keeping simulated time in step with the clock on the wall."""

from __future__ import annotations

import time

from arm_dynamics.step_clock import StepClock

SHORTEST = 0.9
"""Share of a period that is left between two instants even when catching up."""


class Pacer:
    """Tells when each period is due, sleeps until then, and counts deadlines missed.

    A late period is caught up little by little, so that whoever answers keeps time to do so.
    More than one period late counts as a missed deadline, and the schedule starts anew.
    """

    def __init__(self, period: float, factor: float = 1.0) -> None:
        self.period = period
        self.factor = factor
        self.missed = 0
        self.restart()

    def restart(self) -> None:
        """Begin a new schedule now, after a pause."""
        self._last = self._due = time.monotonic()
        self._clock = StepClock()

    def left(self) -> float:
        """Time [s] until the present period is over; not below 0."""
        interval = self.period / self.factor
        due = max(self._due + interval, self._last + SHORTEST * interval)
        return max(0.0, due - time.monotonic())

    def wait(self) -> bool:
        """Sleep until the present period is over, and return True; the next one begins."""
        left = self.left()
        if left > 0:
            time.sleep(left)
        self._last = now = time.monotonic()
        self._due = self._clock.after(self._due, self.period / self.factor)
        if now - self._due > self.period / self.factor:
            self.missed += 1
            self._due = now
        return True

    trouble = ""
    """Why time does not pass as it should: never, by the wall clock."""


class Rate:
    """How fast a growing number grows: events, or simulated seconds, per second."""

    def __init__(self) -> None:
        self._read = (0.0, time.monotonic())

    def of(self, value: float) -> float:
        """Growth per second of wall time since the last call."""
        (before, then), now = self._read, time.monotonic()
        self._read = (value, now)
        return (value - before) / max(now - then, 1e-9)
