"""A batch of rollouts as a value that can be divided and sent to other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from arm_dynamics.batch.rollouts.backends import Setup
from arm_dynamics.batch.rollouts.closed_loop_stepper import PidLoop
from arm_dynamics.batch.rollouts.inputs import InitialStates
from arm_dynamics.batch.rollouts.output_injection import OutputInjection
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel

MEMORY_FRACTION = 0.5
"""Default limit of the records, as a fraction of the machine's memory."""


@dataclass(frozen=True, eq=False)
class RolloutTask:
    """What to simulate.

    Attributes
    ----------
    arm : ArmModel
        Nominal arm.
    backend : str
        Backend, see ``backends.BACKENDS``.
    setup : Setup
        Integrator, command interface and precision.
    start : InitialStates
        Initial states.
    commands : FloatArray
        Commands, or with ``loop`` the rows of ``control_rows``; shape (batch or 1, periods, n).
    dt : Vector
        Time steps [s], shape (batch,).
    varied : Mapping[str, Matrix]
        Quantities that differ between rollouts, shape (batch, size).
    steps_per_command, record_every : int
        Time steps per period, and per record.
    outputs : Mapping[str, int]
        Recorded outputs and their sizes.
    loop : PidLoop, optional
        PID controller.
    injection : OutputInjection, optional
        Corrections of the states by measured positions.

    """

    arm: ArmModel
    backend: str
    setup: Setup
    start: InitialStates
    commands: FloatArray
    dt: Vector
    varied: Mapping[str, Matrix]
    steps_per_command: int
    record_every: int
    outputs: Mapping[str, int]
    loop: PidLoop | None = None
    injection: OutputInjection | None = None

    @property
    def size(self) -> int:
        """Number of rollouts."""
        return self.start.size

    @property
    def steps(self) -> int:
        """Time steps of each rollout."""
        return int(self.commands.shape[1]) * self.steps_per_command

    @property
    def records(self) -> int:
        """Records of each rollout."""
        return self.steps // self.record_every

    @property
    def record_times(self) -> Matrix:
        """Times of the records since the start [s], shape (batch, records)."""
        times: Matrix = self.dt[:, None] * ((np.arange(self.records) + 1) * self.record_every)
        return times

    @property
    def bytes(self) -> int:
        """Memory of the records and their times."""
        number: int = np.dtype(self.setup.precision).itemsize
        return self.size * self.records * (sum(self.outputs.values()) * number + 8)

    def part(self, rollouts: Any) -> RolloutTask:
        """Return the task of some rollouts."""
        return replace(
            self,
            start=self.start.part(rollouts),
            commands=self.commands if len(self.commands) == 1 else self.commands[rollouts],
            dt=self.dt[rollouts],
            varied={name: values[rollouts] for name, values in self.varied.items()},
            loop=self.loop.part(rollouts) if self.loop is not None else None,
        )

    def parts(self, size: int) -> Iterator[tuple[slice, RolloutTask]]:
        """Yield tasks of at most ``size`` rollouts."""
        for first in range(0, self.size, size):
            rollouts = slice(first, min(first + size, self.size))
            yield rollouts, self.part(rollouts)


@dataclass(frozen=True, eq=False)
class RolloutData:
    """Records, failed steps, last states and metrics of a task, see ``RolloutResult``."""

    arrays: dict[str, FloatArray]
    failed_step: IntArray
    final_array: Matrix
    metrics: dict[str, Matrix]

    @classmethod
    def empty(cls, task: RolloutTask, metrics: tuple[str, ...] = ()) -> RolloutData:
        """Return arrays for the results of ``task`` with these metrics."""
        shape, n = (task.size, task.records), task.arm.nv
        precision = task.setup.precision
        return cls(
            {name: np.empty((*shape, size), precision) for name, size in task.outputs.items()},
            np.empty(task.size, dtype=int),
            np.empty((task.size, 1 + 3 * n + task.arm.na)),
            {name: np.empty((task.size, n)) for name in metrics},
        )

    def put(self, rollouts: Any, part: RolloutData) -> None:
        """Copy the results of some rollouts."""
        for mine, theirs in ((self.arrays, part.arrays), (self.metrics, part.metrics)):
            for name, values in theirs.items():
                mine[name][rollouts] = values
        self.failed_step[rollouts] = part.failed_step
        self.final_array[rollouts] = part.final_array


def require_memory_limit(need: int, limit: float | None, content: str) -> None:
    """Raise InvalidValue if records of ``need`` bytes exceed ``limit``.

    Parameters
    ----------
    need : int
        Bytes that ``content`` takes.
    limit : float or None
        Allowed bytes; None: half of the machine's memory.
    content : str
        Content, for the message.

    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = (
        MEMORY_FRACTION * machine if limit is None else check_float("memory_limit", limit, lower=0)
    )
    if need > allowed:
        raise InvalidValue(
            f"rollout: memory of the records = {need} bytes ({content}); expected at most"
            f" {int(allowed)} bytes; increase record_every or memory_limit, or reduce outputs,"
            " batch size or precision"
        )
