"""Lanes with a control law in Python around them, asked once a period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from arm_dynamics.batch.rollout.batch_stepper import BatchStepper, Out
from arm_dynamics.batch.rollout.tracking_metrics import METRICS, update_metrics
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled

Tick = Callable[[Vector, Vector, Vector, Vector], Vector]
"""Measured q and v (lane, nv), reference [q, v] (lane, 2 nv), time since the last tick (lane,),
0 at the first one → commands (lane, nv)."""


class ClosedLoopStepper(BatchStepper):
    """``inner`` under the commands of ``tick``; given are the rows of ``Law.given``."""

    def __init__(
        self, inner: BatchStepper, tick: Tick, period: Vector, way: Vector, delay: bool
    ) -> None:
        super().__init__(inner.size)
        self.inner, self.tick, self.period, self.way = inner, tick, period, way
        self.pending = np.zeros_like(way) if delay else None
        self.scores = np.zeros((len(METRICS), *way.shape))

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``BatchStepper.advance``."""
        given, base = np.broadcast_to(given, (self.size, *given.shape[1:])), self.count // stride
        for k in range(given.shape[1]):
            row = given[:, k]
            first, self.count = self.count // stride - base, self.count + every
            told = self._told(row)[:, None, :]
            part = slice(first, self.count // stride - base)
            self.inner.advance(told, every, stride, {n: a[:, part] for n, a in out.items()})
            self._score(row)
        self.failed = self.inner.failed

    def _told(self, row: Vector) -> Vector:
        q, v, _, _ = self.inner.state()
        n = q.shape[1]
        if row.shape[1] > 2 * n + 2:
            q, v = q + row[:, 2 * n + 2 : 3 * n + 2], v + row[:, 3 * n + 2 :]
        told = self.tick(q, v, row[:, : 2 * n], row[:, 2 * n] * self.period)
        if self.pending is not None:
            told, self.pending = self.pending, told
        return told

    def _score(self, row: Vector) -> None:
        q, _, _, effort = self.inner.state()
        n = q.shape[1]
        late = np.ascontiguousarray(row[:, 2 * n + 1])
        update_all_metrics(q, effort, row[:, :n].copy(), self.way, late, self.period, self.scores)

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``BatchStepper.state``."""
        return self.inner.state()

    def metrics(self) -> dict[str, Vector]:
        """As ``BatchStepper.metrics``."""
        return dict(zip(METRICS, self.scores, strict=True))


class ThreadedStepper(BatchStepper):
    """Many lanes as blocks that are advanced in threads."""

    def __init__(self, blocks: Sequence[BatchStepper], pool: ThreadPoolExecutor | None) -> None:
        super().__init__(sum(block.size for block in blocks))
        self.blocks, self.pool = tuple(blocks), pool
        ends = np.cumsum([0, *(block.size for block in blocks)]).tolist()
        self.places = [slice(a, b) for a, b in pairwise(ends)]

    def advance(self, given: Vector, every: int, stride: int, out: Out) -> None:
        """As ``BatchStepper.advance``."""
        given = np.broadcast_to(given, (self.size, *given.shape[1:]))

        def one(block: BatchStepper, at: slice) -> None:
            block.advance(given[at], every, stride, {name: a[at] for name, a in out.items()})

        list((self.pool.map if self.pool else map)(one, self.blocks, self.places))
        self.failed = np.concatenate([block.failed for block in self.blocks])
        self.count += given.shape[1] * every

    def state(self) -> tuple[Vector, Vector, Vector, Vector]:
        """As ``BatchStepper.state``."""
        q, v, z, effort = zip(*(block.state() for block in self.blocks), strict=True)
        return np.concatenate(q), np.concatenate(v), np.concatenate(z), np.concatenate(effort)


@compiled
def update_all_metrics(
    q: Vector,
    effort: Vector,
    q_ref: Vector,
    way: Vector,
    late: Vector,
    period: Vector,
    scores: Vector,
) -> None:
    """``update_metrics`` for all lanes and joints (lane, nv); scores (4, lane, nv) in place."""
    for lane in range(q.shape[0]):
        for j in range(q.shape[1]):
            a, b, c, d = update_metrics(
                q[lane, j], effort[lane, j], q_ref[lane, j], way[lane, j],
                scores[0, lane, j], scores[1, lane, j], scores[2, lane, j], scores[3, lane, j],
                late[lane], period[lane],
            )  # fmt: skip
            scores[0, lane, j], scores[1, lane, j] = a, b
            scores[2, lane, j], scores[3, lane, j] = c, d
