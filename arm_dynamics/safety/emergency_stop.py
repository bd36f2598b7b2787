"""Torque off, requested in every cycle until each motor confirms it; latched if requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

Disable = Callable[[Collection[int]], Collection[int]]
"""Function that requests torque off from motors by id; returns those that confirm it."""


class TorqueOffRequest:
    """Motors by id that must still confirm that they apply no torque."""

    def __init__(self) -> None:
        self.pending: frozenset[int] = frozenset()

    def request(self, ids: Collection[int]) -> None:
        """Request torque off from these, again if they confirmed it before."""
        self.pending |= frozenset(ids)

    def send(self, disable: Disable) -> None:
        """Send the request once through a bus's ``disable``; motors that confirm are removed."""
        if self.pending:
            done = frozenset(disable(sorted(self.pending)))
            self.pending -= done  # read again: other threads may have added requests

    def until_confirmed(self, disable: Disable, tries: int) -> None:
        """Send up to ``tries`` requests without a pause."""
        for _ in range(tries):
            self.send(disable)


class EmergencyStopLatch:
    """Emergency stop, latched from any thread; only ``release`` releases it."""

    def __init__(self) -> None:
        self.source = ""
        """Source of the first press; "" while it is not engaged."""
        self.seen = False
        """Whether the loop has reacted to it."""
        self.press = object()
        """The newest press: another object each time."""

    @property
    def engaged(self) -> bool:
        """Whether it is latched."""
        return bool(self.source)

    def engage(self, source: str) -> None:
        """Latch it; sets attributes only, so that a signal handler may."""
        self.press = object()
        if not self.source:
            self.seen = False
            self.source = source or "unnamed"

    def release(self, press: object) -> bool:
        """Release it unless pressed again after ``press`` was the newest; return if released.

        It releases first and then compares: a press in between latches it again.
        """
        source, self.source = self.source, ""
        if press is not self.press:
            self.seen, self.source = False, self.source or source
        return not self.source


def motors_with_torque(enabled: Mapping[int, bool | None]) -> frozenset[int]:
    """Return the motors that report torque enabled."""
    return frozenset(id for id, on in enabled.items() if on)
