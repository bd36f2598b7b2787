"""Time counted in steps: a sum of rounded steps drifts, a product does not."""

from __future__ import annotations


class StepClock:
    """t = start + n dt, correct to an ulp after any number n of steps.

    The count restarts where dt [s] changes, and where time is not what the clock returned last.
    """

    def __init__(self, time: float = 0.0) -> None:
        self._start = self._time = time
        self._count, self._dt = 0, 0.0

    def after(self, time: float, dt: float, steps: int = 1) -> float:
        """Return the time [s] that is ``steps`` of ``dt`` [s] behind ``time`` [s]."""
        if time != self._time or dt != self._dt:
            self._start, self._count, self._dt = time, 0, dt
        self._count += steps
        self._time = self._start + self._count * dt
        return self._time
