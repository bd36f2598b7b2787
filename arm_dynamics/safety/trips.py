"""What tripped: which joint, which value, which limit and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from arm_dynamics.safety.events import Events

LINK = ("silent", "stale", "command_timeout", "port")
"""Trips that pass by themselves once the link is good again."""


@dataclass(frozen=True, slots=True)
class Trip:
    """``kind`` at ``time`` [s]: ``value`` of ``joint`` against ``limit``, both in ``unit``.

    ``joint`` is "" for what concerns the whole arm; ``detail`` is a motor's or port's own word.
    """

    kind: str
    joint: str
    value: float
    limit: float
    unit: str
    time: float
    detail: str = ""

    def __str__(self) -> str:
        """One line: joint, what, value, limit, time."""
        owner = f"joint '{self.joint}': " if self.joint else ""
        said = f" ({self.detail})" if self.detail else ""
        numbers = f" {self.value:.4g} {self.unit}, limit {self.limit:.4g}" if self.unit else ""
        return f"{owner}{self.kind}{numbers}{said} at {self.time:.3f} s"

    @property
    def passes(self) -> bool:
        """Whether it goes by itself with its cause; the others latch until a reset."""
        return self.kind in LINK


class Trips:
    """What has tripped and still holds, newest last: one entry and one event a kind and joint."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._held: dict[tuple[str, str], Trip] = {}

    def add(self, trip: Trip) -> None:
        """Hold and report it, unless its kind holds for the joint already."""
        if (trip.kind, trip.joint) not in self._held:
            self._held[trip.kind, trip.joint] = trip
            self._events.report(trip.kind, str(trip))

    def __iter__(self) -> Iterator[Trip]:
        return iter(tuple(self._held.values()))

    def holds(self, kind: str) -> bool:
        """Whether a trip of ``kind`` holds."""
        return any(held == kind for held, _ in self._held)

    @property
    def latched(self) -> tuple[Trip, ...]:
        """Those that wait for a reset."""
        return tuple(trip for trip in self if not trip.passes)

    def pass_by(self) -> None:
        """Let go of those that pass with their cause."""
        self._held = {key: trip for key, trip in self._held.items() if not trip.passes}

    def clear(self) -> None:
        """Let go of all."""
        self._held.clear()
