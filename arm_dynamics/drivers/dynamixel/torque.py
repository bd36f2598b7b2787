"""Torque on, never over a goal that was not read back, and off."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.drivers.dynamixel import control_table as table
from arm_dynamics.drivers.dynamixel.line import TRIES, Line


class Torque:
    """Goals and torque of the motors on ``line``."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._sent: dict[int, int] = {}  # raw goals since the torque was off; some may be lost

    def forget(self) -> None:
        """Nothing is known of what motors were sent."""
        self._sent.clear()

    def aim(self, interface: str, goals: Mapping[int, int]) -> None:
        """Send raw goals; no motor answers."""
        self._line.sync_write(table.GOALS[interface], goals)
        self._sent.update(goals)

    def on(self, ids: Collection[int], interface: str) -> set[int]:
        """Torque on at the goals that were sent, or at rest; those that confirmed it.

        Goals are read back first: a register may hold one of long ago. Who does not confirm its
        goal gets no torque, who does not confirm its torque is told to have none.
        """
        goals = self._still([id for id in ids if id not in self._sent], interface)
        goals |= {id: self._sent[id] for id in ids if id in self._sent}
        ready = self._line.put_all(table.GOALS[interface], goals, TRIES)
        done = self._line.put_all(table.TORQUE_ENABLE, dict.fromkeys(ready, 1), TRIES)
        self._line.sync_write(table.TORQUE_ENABLE, dict.fromkeys(set(ids) - done, 0))
        return done

    def off(self, ids: Collection[int], tries: int = 1) -> set[int]:
        """Torque off; those that confirmed it by reading it back."""
        for id in ids:
            self._sent.pop(id, None)
        return self._line.put_all(table.TORQUE_ENABLE, dict.fromkeys(ids, 0), tries)

    def _still(self, ids: Collection[int], interface: str) -> dict[int, int]:
        """Goals at which motors stay: where they stand, or nothing."""
        if interface != "position":
            return dict.fromkeys(ids, 0)
        return self._line.read(ids, table.PRESENT_POSITION)
