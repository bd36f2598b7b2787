"""Clocks and timing of loops: counted steps, periods, delays, wall-clock pacing, latencies."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float


class StepClock:
    """Time t = start + n dt, accurate to one ulp for any number n of steps; a sum would drift.

    The count restarts if dt [s] changes or if time is not the last returned value.
    """

    def __init__(self, time: float = 0.0) -> None:
        self._start = self._time = time
        self._count, self._dt = 0, 0.0

    def after(self, time: float, dt: float, steps: int = 1) -> float:
        """Return the time [s] that is ``steps`` of ``dt`` [s] after ``time`` [s]."""
        if time != self._time or dt != self._dt:
            self._start, self._count, self._dt = time, 0, dt
        self._count += steps
        self._time = self._start + self._count * dt
        return self._time


LATEST = 10.0
"""Largest delay [periods] that stability is computed for."""
SIMILAR = 0.1
"""Fraction of a period by which two similar timings may differ."""


@dataclass(frozen=True, slots=True)
class LoopTiming:
    """Control ``period`` [s] and ``delay`` [periods] from a measurement to its command.

    Raises InvalidValue for a negative number and for a delay above LATEST.
    """

    period: float
    delay: float = 0.0

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_float("period [s]", self.period, lower=0)
        check_float("delay [periods]", self.delay, lower=0, upper=LATEST)

    def __str__(self) -> str:
        """Both with their units."""
        return f"period = {self.period:.4g} s, delay = {self.delay:.3g} periods"

    def resembles(self, other: LoopTiming) -> bool:
        """Return whether period and delay equal those of ``other`` within SIMILAR of its period."""
        allowed = SIMILAR * other.period
        lag, theirs = self.delay * self.period, other.delay * other.period
        return abs(self.period - other.period) <= allowed and abs(lag - theirs) <= allowed

    def longer(self, factor: float) -> LoopTiming:
        """Return the same delay in periods that are ``factor`` times as long."""
        return LoopTiming(factor * self.period, self.delay)


UNTIMED = LoopTiming(0.0)
"""A loop without a period: continuous time."""


MIN_PERIOD_FRACTION = 0.9
"""Fraction of a period that remains between two cycles when catching up."""


class Pacer:
    """Schedule of periods in wall-clock time: sleeps until each is due, counts missed deadlines.

    A delay is caught up gradually, so that other programs keep time for their replies. More than
    one period late counts as a missed deadline, and the schedule restarts.
    """

    def __init__(self, period: float, factor: float = 1.0) -> None:
        self.period = period
        self.factor = factor
        self.missed = 0
        self.restart()

    def restart(self) -> None:
        """Start a new schedule now, after a pause."""
        self._last = self._due = time.monotonic()
        self._clock = StepClock()

    def time_left(self) -> float:
        """Return the time [s] until the present period ends; not below 0."""
        interval = self.period / self.factor
        due = max(self._due + interval, self._last + MIN_PERIOD_FRACTION * interval)
        return max(0.0, due - time.monotonic())

    def wait(self) -> bool:
        """Sleep until the present period ends and return True; the next one starts."""
        left = self.time_left()
        if left > 0:
            time.sleep(left)
        self._last = now = time.monotonic()
        self._due = self._clock.after(self._due, self.period / self.factor)
        if now - self._due > self.period / self.factor:
            self.missed += 1
            self._due = now
        return True

    trouble = ""
    """Reason why the schedule is not kept; "" for the wall clock."""


class RateMeter:
    """Rate of a growing number: events, or simulated seconds, per second."""

    def __init__(self) -> None:
        self._read = (0.0, time.monotonic())

    def update(self, value: float) -> float:
        """Return the growth per second of wall time since the last call."""
        (before, then), now = self._read, time.monotonic()
        self._read = (value, now)
        return (value - before) / max(now - then, 1e-9)


PERIOD_SAMPLES = 10
"""Control cycles whose median duration is the measured period."""
MIN_PERIOD_SAMPLES = 5
"""Durations required before their median is used."""
DEFAULT_PERIOD = 0.01
"""Control period [s] assumed if neither a configured nor a measured one exists."""


class PeriodMeter:
    """Measure the control period of the host and the delay of the feedback.

    Parameters
    ----------
    configured : float
        Configured control period [s]; 0 uses the measured one only.
    feedback_delay : float
        Age of a bus's readings [control periods]; 0 derives it from the duration of a read.

    """

    def __init__(self, configured: float, feedback_delay: float) -> None:
        self._configured = check_float("period [s]", configured, lower=0)
        self._feedback_delay = feedback_delay
        self._starts: deque[float] = deque(maxlen=PERIOD_SAMPLES)
        self.read_time = 0.0
        """Duration [s] of the last read."""

    def start_cycle(self, now: float) -> None:
        """Record the start [s] of a control cycle."""
        self._starts.append(now)

    def reset(self) -> None:
        """Discard the measured cycles; those without replies last longer."""
        self._starts.clear()

    @property
    def timing(self) -> LoopTiming | None:
        """Longer of the configured and the measured period, with the delay; None without either."""
        durations = np.diff(self._starts)
        measured = float(np.median(durations)) if durations.size >= MIN_PERIOD_SAMPLES else 0.0
        period = max(self._configured, measured)
        return self._with_delay(period) if period else None

    @property
    def assumed_timing(self) -> LoopTiming:
        """``timing``, else that of DEFAULT_PERIOD."""
        return self.timing or self._with_delay(DEFAULT_PERIOD)

    def _with_delay(self, period: float) -> LoopTiming:
        """Add the delay: fresh readings are about twice the duration of a read old."""
        delay = self._feedback_delay or min(1.0, 2 * self.read_time / period)
        return LoopTiming(period, delay)


BUFFER_CAPACITY = 100_000
"""Largest number of round trips kept between two readings."""
STAMP_TOLERANCE = 1e-6
"""Stamps [s] closer than this are equal: wall-clock floats differ by at least 0.2 µs."""


class RoundTrip:
    """Counter of states sent and answered, and the latencies [s] of those answered."""

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self._latencies: deque[float] = deque(maxlen=BUFFER_CAPACITY)
        self._open: tuple[float, float] | None = None

    def send(self, stamp: float, now: float) -> None:
        """Record that the state of time ``stamp`` [s] was sent at wall time ``now`` [s]."""
        self.sent += 1
        self._open = (stamp, now)

    def receive(self, stamp: float, now: float) -> bool:
        """Record a command of wall time ``now`` [s]; return whether it answers the newest state."""
        if self._open is None or abs(self._open[0] - stamp) > STAMP_TOLERANCE:
            return False
        self.answered += 1
        self._latencies.append(now - self._open[1])
        self._open = None
        return True

    def read(self) -> Vector:
        """Return the latencies [s] since the last reading."""
        latencies = np.array(self._latencies)
        self._latencies.clear()
        return latencies

    def summary(self) -> str:
        """Return the median and 99th percentile [ms] since the last reading, as text."""
        latencies = self.read()
        if latencies.size == 0:
            return "none"
        median, high = np.percentile(latencies, [50, 99]) * 1e3
        return f"{median:.2f} / {high:.2f}"
