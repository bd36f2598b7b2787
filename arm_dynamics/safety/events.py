"""What tripped: one counter a kind, and the latest message."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

Listener = Callable[[str, str], None]
LONGEST = 500
"""Characters of a message that are kept: it may repeat what somebody sent."""
PERIOD = 1.0
"""Time [s] in which one message of a kind is logged at most, BURST of those in SINGLE."""
SINGLE = frozenset({"goal_refused", "goal_aborted", "activation_refused", "request_rejected"})
"""Kinds whose events each answer one request of a client; all others are of streams."""
BURST = 20
"""Messages of a kind in SINGLE that are logged within PERIOD."""


class Throttle:
    """A listener for ``Events`` that logs without flooding; counters keep the whole tally.

    The next message that is logged has the number of those that were not.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._periods: dict[str, tuple[float, int]] = {}
        """Of each kind: start [s] of the present period, number of its messages."""

    def warn(self, kind: str, message: str) -> None:
        """Log ``message`` unless as many of its kind as allowed were logged within PERIOD."""
        allowed = BURST if kind in SINGLE else 1
        now = time.monotonic()
        start, count = self._periods.get(kind, (now, 0))
        skipped = 0
        if now - start >= PERIOD:
            start, count, skipped = now, 0, max(0, count - allowed)
        self._periods[kind] = start, count + 1
        if count < allowed:
            more = f" (before it {skipped} more, not logged)" if skipped else ""
            self._logger.warning(f"{kind}: {message}{more}")


class Events:
    """Counts events by kind and reports each (kind, message) to one listener.

    Without a listener they are warnings of the logger "arm_dynamics", throttled. What a listener
    raises goes no further: it counts as ``listener_failed``.
    """

    def __init__(self, listener: Listener | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.latest: dict[str, str] = {}
        self.listener = listener or Throttle(logging.getLogger("arm_dynamics")).warn

    def report(self, kind: str, message: str) -> None:
        """Count one event of ``kind`` and pass it on."""
        if len(message) > LONGEST:
            message = f"{message[:LONGEST]}... ({len(message)} characters)"
        self.counts[kind] += 1
        self.latest[kind] = message
        try:
            self.listener(kind, message)
        except Exception:  # a listener must not stop what it listens to
            self.counts["listener_failed"] += 1
