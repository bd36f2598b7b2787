"""Events by kind, and trips: which joint exceeded which limit, by how much, and when."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Listener = Callable[[str, str], None]
MAX_MESSAGE_LENGTH = 500
"""Characters of a message that are kept: it may contain the input of a client."""
PERIOD = 1.0
"""Time [s] in which one message of a kind is logged at most, BURST of those in SINGLE."""
SINGLE = frozenset({"goal_rejected", "goal_aborted", "activation_rejected", "request_rejected"})
"""Kinds whose events each answer one request of a client; all others are of streams."""
BURST = 20
"""Messages of a kind in SINGLE that are logged within PERIOD."""


class Throttle:
    """A listener for ``Events`` that limits the rate of log lines.

    The next message of a kind that is logged states the number of those that were not.
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
        self._lasting: dict[str, str] = {}

    def report_lasting(self, kind: str, cause: str) -> None:
        """Report a cause that lasts, evaluated in each cycle, once; "" ends it."""
        if cause != self._lasting.get(kind, ""):
            self._lasting[kind] = cause
            if cause:
                self.report(kind, cause)

    def report(self, kind: str, message: str) -> None:
        """Count one event of ``kind`` and pass it to the listener."""
        if len(message) > MAX_MESSAGE_LENGTH:
            message = f"{message[:MAX_MESSAGE_LENGTH]}... ({len(message)} characters)"
        self.counts[kind] += 1
        self.latest[kind] = message
        try:
            self.listener(kind, message)
        except Exception:  # an error of a listener must not stop the control cycle
            self.counts["listener_failed"] += 1


def event_values(events: Events) -> dict[str, str]:
    """Return counter and latest message of every kind of event; safe from any thread."""
    return {
        **{kind: str(count) for kind, count in sorted(dict(events.counts).items())},
        **{f"last {kind}": text for kind, text in sorted(dict(events.latest).items())},
    }


COMMUNICATION = ("feedback_missing", "feedback_stale", "command_timeout", "connection_lost")
"""Trips that clear automatically when communication recovers."""


@dataclass(frozen=True, slots=True)
class Trip:
    """``kind`` at ``time`` [s]: ``value`` of ``joint`` against ``limit``, both in ``unit``.

    ``joint`` is "" for a trip of the whole arm; ``detail`` is the text of a motor or port.
    """

    kind: str
    joint: str
    value: float
    limit: float
    unit: str
    time: float
    detail: str = ""

    def __str__(self) -> str:
        """Joint, kind, value, limit and time in a line."""
        owner = f"joint '{self.joint}': " if self.joint else ""
        detail = f" ({self.detail})" if self.detail else ""
        numbers = f" {self.value:.4g} {self.unit}, limit {self.limit:.4g}" if self.unit else ""
        return f"{owner}{self.kind}{numbers}{detail} at {self.time:.3f} s"

    @property
    def self_clearing(self) -> bool:
        """Whether it clears with its cause; the others latch until a reset."""
        return self.kind in COMMUNICATION


class Trips:
    """Active trips, newest last: one entry and one event for each kind and joint."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._active: dict[tuple[str, str], Trip] = {}

    def add(self, trip: Trip) -> None:
        """Add and report a trip, unless its kind is active for the joint already."""
        if (trip.kind, trip.joint) not in self._active:
            self._active[trip.kind, trip.joint] = trip
            self.events.report(trip.kind, str(trip))

    def __iter__(self) -> Iterator[Trip]:
        return iter(tuple(self._active.values()))

    def is_active(self, kind: str) -> bool:
        """Return whether a trip of ``kind`` is active."""
        return any(active == kind for active, _ in self._active)

    @property
    def latched(self) -> tuple[Trip, ...]:
        """Trips that require a reset."""
        return tuple(trip for trip in self if not trip.self_clearing)

    def clear_self_clearing(self) -> None:
        """Remove the trips that clear with their cause."""
        self._active = {key: trip for key, trip in self._active.items() if not trip.self_clearing}

    def clear(self) -> None:
        """Remove all trips."""
        self._active.clear()
