"""Torque off, asked again every cycle until each motor has confirmed it; latched on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

Disable = Callable[[Collection[int]], Collection[int]]
"""Asks motors by id for torque off; those that confirm it."""


class TorqueOffRequest:
    """Motors by id that must still confirm that they apply no torque."""

    def __init__(self) -> None:
        self.pending: frozenset[int] = frozenset()

    def request(self, ids: Collection[int]) -> None:
        """Have these confirm, once more if they did before."""
        self.pending |= frozenset(ids)

    def send(self, disable: Disable) -> None:
        """Ask once, through a bus's ``disable``; those that confirm are done."""
        if self.pending:
            done = frozenset(disable(sorted(self.pending)))
            self.pending -= done  # read again: other threads may have added requests

    def until_confirmed(self, disable: Disable, tries: int) -> None:
        """Send up to ``tries`` requests without a pause."""
        for _ in range(tries):
            self.send(disable)
            if not self.pending:
                break


class EmergencyStopLatch:
    """Latched from any thread; released by ``release`` alone."""

    def __init__(self) -> None:
        self.source = ""
        """Source of the first press; "" while it is not engaged."""
        self.seen = False
        """Whether the loop has acted on it."""
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
        """Let go, unless it was pressed again after ``press`` was the newest; whether it did.

        It releases first and then compares: a press in between latches it again.
        """
        source, self.source = self.source, ""
        if press is not self.press:
            self.seen, self.source = False, self.source or source
        return not self.source


def motors_with_torque(enabled: Mapping[int, bool | None]) -> frozenset[int]:
    """Return the motors that report torque enabled."""
    return frozenset(id for id, on in enabled.items() if on)
