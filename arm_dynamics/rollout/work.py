"""A part of a batch as a value that can be sent to another process, and what is found of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.backends import Setup
from arm_dynamics.rollout.inputs import Start


@dataclass(frozen=True, eq=False)
class Work:
    """Lanes from ``start`` under ``given`` (lanes or 1, periods, n), ``every`` steps a period."""

    arm: ArmModel
    backend: str
    setup: Setup
    start: Start
    given: Vector
    dt: Vector
    varied: Mapping[str, Vector]
    every: int
    stride: int
    outputs: Mapping[str, int]
    """Name → size of the outputs to be recorded."""
    loop: Any = None
    """A control law that runs along, see ``pid_loop.PidLoop``; ``given`` is what it is told."""

    @property
    def lanes(self) -> int:
        """How many."""
        return self.start.lanes

    @property
    def steps(self) -> int:
        """Time steps of each lane."""
        return int(self.given.shape[1]) * self.every

    @property
    def records(self) -> int:
        """Records of each lane."""
        return self.steps // self.stride

    @property
    def bytes(self) -> int:
        """Memory that the records and their times take."""
        number: int = np.dtype(self.setup[2]).itemsize
        return self.lanes * self.records * (sum(self.outputs.values()) * number + 8)

    def part(self, lanes: Any) -> Work:
        """The same of some lanes."""
        return replace(
            self,
            start=self.start.part(lanes),
            given=self.given if len(self.given) == 1 else self.given[lanes],
            dt=self.dt[lanes],
            varied={name: values[lanes] for name, values in self.varied.items()},
            loop=self.loop.part(lanes) if self.loop is not None else None,
        )

    def parts(self, size: int) -> Iterator[tuple[slice, Work]]:
        """Parts of at most ``size`` lanes."""
        for first in range(0, self.lanes, size):
            lanes = slice(first, min(first + size, self.lanes))
            yield lanes, self.part(lanes)


@dataclass(frozen=True, eq=False)
class Done:
    """Records, steps of loss, last states [time, q, v, effort, z] and metrics of a work."""

    arrays: dict[str, Vector]
    failed: Vector
    end: Vector
    metrics: dict[str, Vector]

    @classmethod
    def empty(cls, work: Work) -> Done:
        """Room for what ``work`` will find."""
        shape, n = (work.lanes, work.records), work.arm.nv
        arrays = {
            name: np.empty((*shape, size), work.setup[2]) for name, size in work.outputs.items()
        }
        names = work.loop.metrics if work.loop is not None else ()
        metrics = {name: np.empty((work.lanes, n)) for name in names}
        end = np.empty((work.lanes, 1 + 3 * n + work.arm.na))
        return cls(arrays, np.empty(work.lanes, dtype=int), end, metrics)

    def put(self, lanes: Any, part: Done) -> None:
        """Take over what was found of some lanes."""
        for mine, theirs in ((self.arrays, part.arrays), (self.metrics, part.metrics)):
            for name, values in theirs.items():
                mine[name][lanes] = values
        self.failed[lanes], self.end[lanes] = part.failed, part.end
