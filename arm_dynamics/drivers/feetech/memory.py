"""Registers of several servos, asked for until they answer and written until they are read back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.drivers.feetech.line import Line
from arm_dynamics.drivers.feetech.registers import Register

ATTEMPTS = 3
"""How often a servo is asked before it counts as silent."""


class Memory:
    """What stands in the servos on ``line``."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def read(self, register: Register, ids: Collection[int]) -> dict[int, int]:
        """A register's value by id; servos that never answered are left out."""
        found: dict[int, int] = {}
        for _ in range(ATTEMPTS):
            found |= self._line.read(set(ids) - found.keys(), register)
        return found

    def set(self, register: Register, wanted: Mapping[int, int]) -> set[int]:
        """Write values; the servos that were read to have them."""
        done: set[int] = set()
        for _ in range(ATTEMPTS):
            left = {id: value for id, value in wanted.items() if id not in done}
            self._line.write(register.address, {id: register.pack(v) for id, v in left.items()})
            found = self._line.read(left, register)
            done |= {id for id, value in found.items() if value == left[id]}
        return done
