"""What tripped: one counter a kind, and the latest message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Listener = Callable[[str, str], None]
LONGEST = 500
"""Characters of a message that are kept: it may repeat what somebody sent."""


class Events:
    """Counts events by kind and tells one listener of each (kind, message).

    What a listener raises goes no further: it counts as ``listener_failed``.
    """

    def __init__(self, listener: Listener | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.latest: dict[str, str] = {}
        self.listener = listener

    def report(self, kind: str, message: str) -> None:
        """Count one event of ``kind`` and pass it on."""
        if len(message) > LONGEST:
            message = f"{message[:LONGEST]}... ({len(message)} characters)"
        self.counts[kind] += 1
        self.latest[kind] = message
        if self.listener is not None:
            try:
                self.listener(kind, message)
            except Exception:  # who listens must not stop what it hears of
                self.counts["listener_failed"] += 1
