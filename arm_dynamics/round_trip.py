"""How long a state waits for its answer, and how many get one in time."""

from __future__ import annotations

from collections import deque

import numpy as np

from arm_dynamics.arrays import Vector

KEPT = 100_000
"""Round trips kept at most between two readings."""
SAME = 1e-6
"""Stamps [s] closer than this are the same: floats of the wall clock are 0.2 µs apart."""


class RoundTrip:
    """Counts states sent and answered; keeps the latencies [s] of those answered."""

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self._latencies: deque[float] = deque(maxlen=KEPT)
        self._open: tuple[float, float] | None = None

    def send(self, stamp: float, now: float) -> None:
        """The state of time ``stamp`` [s] went out at wall time ``now`` [s]."""
        self.sent += 1
        self._open = (stamp, now)

    def receive(self, stamp: float, now: float) -> bool:
        """A command came; whether it answers the newest state, and not an older one."""
        if self._open is None or abs(self._open[0] - stamp) > SAME:
            return False
        self.answered += 1
        self._latencies.append(now - self._open[1])
        self._open = None
        return True

    def read(self) -> Vector:
        """Latencies [s] since the last reading."""
        latencies = np.array(self._latencies)
        self._latencies.clear()
        return latencies

    def summary(self) -> str:
        """Median and 99th percentile [ms] since the last reading, as text."""
        latencies = self.read()
        if latencies.size == 0:
            return "none"
        median, high = np.percentile(latencies, [50, 99]) * 1e3
        return f"{median:.2f} / {high:.2f}"
