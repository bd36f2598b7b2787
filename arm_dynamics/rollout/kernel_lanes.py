"""Lanes advanced by a generated kernel: a block of them side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.rollout.inputs import Start
from arm_dynamics.rollout.kernel import Kernel
from arm_dynamics.rollout.lanes import Lanes, Out
from arm_dynamics.rollout.law import METRICS

ROWS = {"q": "q", "v": "v", "act": "z", "effort": "effort"}
"""Output → rows of the kernel."""


class KernelLanes(Lanes):
    """One block of ``kernel``; lanes beyond ``start`` repeat its last and are not shown."""

    def __init__(
        self, kernel: Kernel, start: Start, dt: Vector, varied: Mapping[str, Vector]
    ) -> None:
        super().__init__(start.lanes)
        self.kernel = kernel
        blocks = {"q": start.q, "v": start.v, "z": start.z, "dt": dt[:, None], **varied}
        self.x = kernel.block({name: self._padded(values) for name, values in blocks.items()})

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``Lanes.advance``."""
        kernel, lanes = self.kernel, self.kernel.options.lanes
        given = np.broadcast_to(given, (self.size, *given.shape[1:]))
        flat = np.ascontiguousarray(
            self._padded(given).transpose(1, 2, 0), dtype=kernel.dtype
        ).reshape(given.shape[1], -1)
        after = self.count + given.shape[1] * every
        rows = kernel.rows([ROWS[name] for name in out])
        record = np.empty((after // stride - self.count // stride, rows.size, lanes), kernel.dtype)
        failed = kernel.run(self.x, flat, every, stride, rows, record, self.count)[: self.size]
        self.failed = np.where(self.failed < 0, failed, self.failed)
        first, before = 0, self.count // stride
        self.count = after
        for array in out.values():
            width = array.shape[2]
            array[:] = record[:, first : first + width, : self.size].transpose(2, 0, 1)
            first += width
            for lane in np.flatnonzero(self.failed >= 0).tolist():
                array[lane, max(-(-self.failed[lane] // stride) - 1 - before, 0) :] = np.nan

    def rows(self, name: str) -> Vector:
        """A named block of rows, (lane, size)."""
        rows = self.x.reshape(self.kernel.layout.rows, -1)[self.kernel.layout.block(name)]
        found = np.array(rows[:, : self.size].T, dtype=float)
        found[self.failed >= 0] = np.nan
        return found

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``Lanes.state``."""
        return self.rows("q"), self.rows("v"), self.rows("z"), self.rows("effort")

    def metrics(self) -> dict[str, Vector]:
        """As ``Lanes.metrics``."""
        return {name: self.rows(name) for name in METRICS if name in self.kernel.layout.sizes}

    def _padded(self, values: Vector) -> Vector:
        missing = self.kernel.options.lanes - self.size
        return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
