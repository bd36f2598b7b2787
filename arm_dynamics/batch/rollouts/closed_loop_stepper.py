"""Steppers of a closed loop: a controller in Python around other steppers, and threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import ControlTick
from arm_dynamics.batch.kernels.tracking_metrics import METRICS, update_all_metrics
from arm_dynamics.batch.rollouts.steppers import BatchStepper, Records
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector


class ClosedLoopStepper(BatchStepper):
    """``inner`` under the commands of ``tick``; its inputs are the rows of ``PidSpec.inputs``."""

    def __init__(
        self,
        inner: BatchStepper,
        tick: ControlTick,
        period: Vector,
        direction: Matrix,
        delay: bool,
    ) -> None:
        super().__init__(inner.size)
        self.inner, self.tick, self.period, self.direction = inner, tick, period, direction
        self.pending = np.zeros_like(direction) if delay else None
        self.values = np.zeros((len(METRICS), *direction.shape))

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``; ``commands`` are rows of ``control_rows``."""
        rows = np.broadcast_to(commands, (self.size, *commands.shape[1:]))
        base = self.count // record_every
        for k in range(rows.shape[1]):
            row = rows[:, k]
            first, self.count = self.count // record_every - base, self.count + steps_per_command
            command = self._command(row)[:, None, :]
            part = slice(first, self.count // record_every - base)
            part_records = {name: array[:, part] for name, array in records.items()}
            self.inner.advance(command, steps_per_command, record_every, part_records)
            q, _, _, effort = self.inner.state()
            n = q.shape[1]
            late = np.ascontiguousarray(row[:, 2 * n + 1])
            update_all_metrics(
                q, effort, row[:, :n].copy(), self.direction, late, self.period, self.values
            )
        self.failed_step = self.inner.failed_step

    def _command(self, row: Matrix) -> Matrix:
        q, v, _, _ = self.inner.state()
        n = q.shape[1]
        if row.shape[1] > 2 * n + 2:  # noise of the measured q and v
            q, v = q + row[:, 2 * n + 2 : 3 * n + 2], v + row[:, 3 * n + 2 :]
        command = self.tick(q, v, row[:, : 2 * n], row[:, 2 * n] * self.period)
        if self.pending is not None:
            command, self.pending = self.pending, command
        return command

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        return self.inner.state()

    def metrics(self) -> dict[str, Matrix]:
        """As ``BatchStepper.metrics``."""
        return dict(zip(METRICS, self.values, strict=True))


class ThreadedStepper(BatchStepper):
    """Several steppers as one, advanced in the threads of ``pool``."""

    def __init__(self, blocks: Sequence[BatchStepper], pool: ThreadPoolExecutor | None) -> None:
        super().__init__(sum(block.size for block in blocks))
        self.blocks, self.pool = tuple(blocks), pool
        ends = np.cumsum([0, *(block.size for block in blocks)]).tolist()
        self.slices = [slice(a, b) for a, b in pairwise(ends)]

    def advance(
        self, commands: FloatArray, steps_per_command: int, record_every: int, records: Records
    ) -> None:
        """As ``BatchStepper.advance``."""
        commands = np.broadcast_to(commands, (self.size, *commands.shape[1:]))

        def advance_block(block: BatchStepper, at: slice) -> None:
            part = {name: array[at] for name, array in records.items()}
            block.advance(commands[at], steps_per_command, record_every, part)

        list((self.pool.map if self.pool else map)(advance_block, self.blocks, self.slices))
        self.failed_step = np.concatenate([block.failed_step for block in self.blocks])
        self.count += commands.shape[1] * steps_per_command

    def state(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """As ``BatchStepper.state``."""
        q, v, act, effort = zip(*(block.state() for block in self.blocks), strict=True)
        return tuple(map(np.concatenate, (q, v, act, effort)))  # type: ignore[return-value]
