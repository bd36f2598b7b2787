"""Steppers of a closed loop: controllers in Python around other steppers; PID values by rollout."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import (
    GAINS,
    ControlTick,
    PidSpec,
    controllers_by_rollout,
    python_tick,
)
from arm_dynamics.batch.kernels.tracking_metrics import METRICS, update_all_metrics
from arm_dynamics.batch.rollouts.backends import BatchStepper, Records
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.dynamics.rigid_body import gravity


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

    def replace_state(self, q: Matrix, v: Matrix, act: Matrix) -> None:
        """As ``BatchStepper.replace_state``."""
        self.inner.replace_state(q, v, act)

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

    def replace_state(self, q: Matrix, v: Matrix, act: Matrix) -> None:
        """As ``BatchStepper.replace_state``."""
        for block, at in zip(self.blocks, self.slices, strict=True):
            block.replace_state(q[at], v[at], act[at])


@dataclass(frozen=True, eq=False)
class PidLoop:
    """The structure of a PID controller, and what differs between rollouts.

    Attributes
    ----------
    spec : PidSpec
        Structure.
    gains : FloatArray
        Gains in the order of ``GAINS``, shape (batch, 6, nv).
    integral, filtered : Matrix
        Memory at the start, shape (batch, nv).
    direction : Matrix
        Sign of the first error, of which the opposite is overshoot; shape (batch, nv).
    period : Vector
        Control period [s], shape (batch,).

    """

    spec: PidSpec
    gains: FloatArray
    integral: Matrix
    filtered: Matrix
    direction: Matrix
    period: Vector

    def part(self, rollouts: Any) -> PidLoop:
        """Return the same for some rollouts."""
        arrays = (self.gains, self.integral, self.filtered, self.direction, self.period)
        return PidLoop(self.spec, *(x[rollouts] for x in arrays))

    def rows(self) -> dict[str, Matrix]:
        """Return the rows of a kernel that contains the controller, shape (batch, size)."""
        gains = {f"gains.{name}": self.gains[:, i] for i, name in enumerate(GAINS)}
        memory = {"integral": self.integral, "filtered": self.filtered}
        return {"period": self.period[:, None], **gains, **memory, "direction": self.direction}

    def wrap(self, stepper: BatchStepper) -> BatchStepper:
        """Return ``stepper`` under one controller in Python per rollout."""
        controllers = controllers_by_rollout(self.spec, self.gains, self.integral, self.filtered)
        tick = python_tick(controllers, self.spec.voltage)
        return ClosedLoopStepper(stepper, tick, self.period, self.direction, self.spec.delay)


def initial_memory(
    spec: PidSpec, gains: FloatArray, start: InitialStates, v: Matrix
) -> tuple[Matrix, Matrix]:
    """Return integral and filtered velocity (batch, nv) at the start, as ``Pid.reset`` sets them.

    Parameters
    ----------
    spec : PidSpec
        Structure of the controller.
    gains : FloatArray
        Gains in the order of ``GAINS``, shape (batch, 6, nv).
    start : InitialStates
        Initial states; where their efforts are known, the integral continues from them.
    v : Matrix
        Measured velocities, shape (batch, nv).

    """
    known = np.isfinite(start.effort) & (gains[:, 1] > 0)
    integral = start.effort + gains[:, 2] * v
    if spec.gravity and known.any():
        integral = integral - np.array([gravity(spec.arm, q) for q in start.q])
    clamp = gains[:, 3]
    return np.where(known, np.clip(integral, -clamp, clamp), 0.0), v.copy()
