"""Tells a line whose answers come late from one that lost some: a question with a mark.

A feedback frame has no number of its question: one that comes cycles late would pass for a fresh
one. Before a line gets so late there is a cycle in which nobody answers. After one, a motor is
asked for a register, another one each time, before anything is believed. Frames keep their order:
what comes after that register was asked for after it. CubeMars motors have no registers: a line
of them alone is not told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import cycle

from arm_dynamics.drivers.mit_can.registers import Registers

MARKS = range(36)
"""Registers of Damiao motors that may be read; as many cycles late are noticed."""
TRIES = 2
"""Marks that are asked for in one cycle."""


class Fence:
    """``doubtful`` from a cycle without any answer until a mark has passed."""

    def __init__(self, registers: Registers, ids: Sequence[int]) -> None:
        """``ids`` are those of the motors that have registers."""
        self._registers = registers
        self._ids, self._marks = cycle(ids), cycle(MARKS)
        self._known = frozenset(ids)
        self.doubtful = False

    def passes(self) -> bool:
        """Ask for marks, of one motor after the other."""
        for _ in range(TRIES):
            if self._registers.whole(next(self._ids), next(self._marks), 1) is not None:
                self.doubtful = False
                return True
        return False

    def look(self, heard: Collection[int]) -> None:
        """Who was ``heard`` in a cycle."""
        self.doubtful = bool(self._known) and self._known.isdisjoint(heard)
