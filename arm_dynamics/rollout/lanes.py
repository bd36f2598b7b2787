"""Some lanes of a batch on their way: the seam of every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.rollout.inputs import Start

Out = Mapping[str, Vector]
"""Name of an output → array (lane, record, size) to be filled from the front."""


class Lanes(ABC):
    """States q, v, z and efforts of ``size`` lanes after ``count`` steps; failed as in Batch."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.failed = np.full(size, -1)

    @abstractmethod
    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """``every`` steps under each entry of ``given`` (lanes or 1, periods, n), in place.

        States after a number of steps that ``stride`` divides go to ``out``.
        """

    @abstractmethod
    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """q, v, z and effort as they are now, (lane, size) each."""

    def metrics(self) -> dict[str, Vector]:
        """Name → (lane, nv) of what a closed loop adds up; nothing here."""
        return {}


class SingleLanes(Lanes):
    """Lanes that are advanced one after the other."""

    def __init__(self, start: Start) -> None:
        super().__init__(start.lanes)
        self.q, self.v, self.z = start.q.copy(), start.v.copy(), start.z.copy()
        self.effort = np.full_like(start.q, np.nan)

    @abstractmethod
    def go(self, lane: int, told: Vector, steps: int) -> int:
        """Advance a lane in place under one command; the step at which it was lost, or -1."""

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``Lanes.advance``."""
        given = np.broadcast_to(given, (self.size, *given.shape[1:]))
        for lane in range(self.size):
            self._advance_lane(lane, given[lane], every, stride, out)
        self.count += given.shape[1] * every

    def _advance_lane(self, lane: int, given: Vector, every: int, stride: int, out: Out) -> None:
        count, record = self.count, 0
        for told in given:
            left = every
            while left:
                steps = min(left, stride - count % stride)
                self._go(lane, told, steps, count)
                count, left = count + steps, left - steps
                if count % stride == 0:
                    self._note(lane, record, out)
                    record += 1

    def _go(self, lane: int, told: Vector, steps: int, count: int) -> None:
        if self.failed[lane] >= 0:
            return
        lost = self.go(lane, told, steps)
        if lost >= 0:
            self.failed[lane] = count + lost
            self.q[lane] = self.v[lane] = self.z[lane] = self.effort[lane] = np.nan

    def _note(self, lane: int, record: int, out: Out) -> None:
        now = {"q": self.q, "v": self.v, "act": self.z, "effort": self.effort}
        for name, array in out.items():
            array[lane, record] = now[name][lane]

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``Lanes.state``."""
        return self.q, self.v, self.z, self.effort
