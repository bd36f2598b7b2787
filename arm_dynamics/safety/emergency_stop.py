"""Torque off, asked again every cycle until each motor has confirmed it; latched on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

Disable = Callable[[Collection[int]], Collection[int]]
"""Asks motors by id for torque off; those that confirm it."""


class TorqueOff:
    """Motors by id that must still confirm that they apply no torque."""

    def __init__(self) -> None:
        self.pending: frozenset[int] = frozenset()

    def ask(self, ids: Collection[int]) -> None:
        """Have these confirm, once more if they did before."""
        self.pending |= frozenset(ids)

    def cycle(self, disable: Disable) -> None:
        """Ask once, through a bus's ``disable``; those that confirm are done."""
        if self.pending:
            self.pending -= frozenset(disable(sorted(self.pending)))

    def until_confirmed(self, disable: Disable, tries: int) -> None:
        """Ask up to ``tries`` times at once."""
        for _ in range(tries):
            self.cycle(disable)


class EmergencyStop:
    """Latched from any thread; released by ``release`` alone."""

    def __init__(self) -> None:
        self.source = ""
        """Who pressed it first; "" while it is not engaged."""
        self.seen = False
        """Whether the loop has acted on it."""
        self.presses = 0
        """How often it was pressed so far."""

    @property
    def engaged(self) -> bool:
        """Whether it is latched."""
        return bool(self.source)

    def engage(self, source: str) -> None:
        """Latch it; sets attributes only, so that a signal handler may."""
        self.presses += 1
        if not self.source:
            self.seen = False
            self.source = source or "unnamed"

    def release(self, presses: int) -> bool:
        """Let go, unless it was pressed again after the count was ``presses``; whether it did."""
        if presses == self.presses:
            self.source, self.seen = "", False
        return not self.source


def still_on(enabled: Mapping[int, bool | None]) -> frozenset[int]:
    """Motors that say that they apply torque."""
    return frozenset(id for id, on in enabled.items() if on)
