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
"""Time [s] in which one message of a kind is logged at most."""


class Throttle:
    """A listener for ``Events`` that logs without flooding; counters keep the whole tally."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._last: dict[str, float] = {}

    def warn(self, kind: str, message: str) -> None:
        """Log ``message`` unless one of its kind was logged less than PERIOD ago."""
        now = time.monotonic()
        if now - self._last.get(kind, -PERIOD) >= PERIOD:
            self._last[kind] = now
            self._logger.warning(f"{kind}: {message}")


class Events:
    """Counts events by kind and reports each (kind, message) to one listener.

    Without a listener they are warnings of the logger "arm_dynamics", at most one of a kind each
    PERIOD. What a listener raises goes no further: it counts as ``listener_failed``.
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
