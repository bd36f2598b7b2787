"""A batch under a policy in Python, asked once a period for all lanes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.batch.rollout.backends import BLOCK, select_backend
from arm_dynamics.batch.rollout.batch import RolloutResult
from arm_dynamics.batch.rollout.batch_stepper import BatchStepper
from arm_dynamics.batch.rollout.closed_loop_stepper import ClosedLoopStepper, ThreadedStepper, Tick
from arm_dynamics.batch.rollout.memory_limit import require_memory_limit
from arm_dynamics.batch.rollout.rollout import to_result
from arm_dynamics.batch.rollout.task_runner import (
    Progress,
    RolloutData,
    RolloutTask,
    cores,
    run_stepper,
    stepper_factory,
)
from arm_dynamics.batch.rollout.tracking_metrics import METRICS
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import CommandRejected, InvalidValue

Policy = Callable[[Vector, Vector, float], ArrayLike]
"""Measured q and v (lane, nv), time since the start [s] → commands (lane, nv)."""


Flags = NDArray[np.bool_]


def run_with_policy(
    work: RolloutTask,
    policy: Policy,
    every: int,
    way: Vector,
    delay: bool,
    threads: int | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> RolloutResult:
    """``work`` under ``policy``, ``every`` steps a period; raises CommandRefused for bad ones."""
    name, _ = select_backend(work.backend, work.arm, work.setup, tuple(work.varied))
    work = replace(work, backend=name, every=every, stride=work.stride * every)
    require_memory_limit(work.bytes, memory_limit, f"{work.lanes} lanes, {work.records} records")
    make, whole, period = (
        stepper_factory(work),
        RolloutData.empty(replace(work, loop=_Scored())),
        every * work.dt,
    )
    pool = ThreadPoolExecutor(threads or cores()) if threads != 1 else None
    try:
        inner = ThreadedStepper([make(part) for _, part in work.parts(BLOCK)], pool)
        tick = _asked(policy, inner, float(period[0]))
        lanes = ClosedLoopStepper(inner, tick, period, way, delay)
        run_stepper(
            lanes, work, whole, slice(0, work.lanes), _report(work, progress), divisible=False
        )
    finally:
        if pool:
            pool.shutdown()
    return to_result(work, whole)


def _asked(policy: Policy, inner: BatchStepper, period: float) -> Tick:
    """``policy`` as a tick, its commands looked at."""
    ticked = 0

    def tick(q: Vector, v: Vector, reference: Vector, elapsed: Vector) -> Vector:
        nonlocal ticked
        told, lost = policy(q, v, ticked * period), inner.failed >= 0
        try:
            told = np.array(as_readonly(told))
            _require_commands(told, q.shape, lost)
        except InvalidValue as error:
            raise CommandRejected(f"policy at tick {ticked}: {error}") from error
        ticked += 1
        told[lost] = 0.0
        return told

    return tick


def _require_commands(told: Vector, shape: tuple[int, ...], lost: Flags) -> None:
    """Raises InvalidValue, naming the entry, for another shape and what is not finite."""
    if told.shape != shape:
        raise InvalidValue(f"commands of shape {told.shape}, {shape} expected: lanes and joints")
    bad = ~np.isfinite(told) & ~lost[:, None]
    if bad.any():
        lane, joint = np.argwhere(bad)[0].tolist()
        raise InvalidValue(
            f"commands[{lane}, {joint}] = {told[lane, joint]}: a finite number is expected"
        )


def _report(work: RolloutTask, progress: Progress | None) -> Callable[[int], None]:
    spent, total = 0, work.lanes * work.steps

    def report(steps: int) -> None:
        nonlocal spent
        spent += steps
        if progress is not None:
            progress(spent, total)

    return report


class _Scored:
    """Stands for a loop whose metrics there must be room for."""

    metrics = METRICS
