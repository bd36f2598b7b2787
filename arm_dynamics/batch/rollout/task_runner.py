"""A batch in this process's threads, or in parts to whoever takes tasks.

A part of a batch as a value that can be sent to another process, and what is found of it.

A part of a batch done: block by block, piece by piece, in threads or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.backends import BLOCK, Setup, select_backend
from arm_dynamics.batch.rollout.batch_stepper import BatchStepper
from arm_dynamics.batch.rollout.inputs import InitialStates
from arm_dynamics.batch.rollout.tool_output import advance_with_tool
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel

Progress = Callable[[int, int], None]
"""Told how many steps of lanes are done, and of how many."""
PARTS = 16
"""Tasks that a batch is cut into for an executor, where it has lanes enough."""


def spread(
    work: RolloutTask,
    threads: int | None,
    executor: Executor | None,
    progress: Progress | None,
) -> RolloutData:
    """``work`` done; a task that fails raises here what it raised there."""
    counter = _Counter(work.lanes * work.steps, progress)
    if executor is None:
        return run_task(work, 1 if work.backend != "generated" else threads, counter.add)
    blocks = -(-work.lanes // BLOCK)
    size = BLOCK * -(-blocks // PARTS)
    try:
        tasks = {executor.submit(run_task, part): lanes for lanes, part in work.parts(size)}
    except RuntimeError as error:  # it is shut down, or broken
        raise _given_up(executor, error) from error
    return _collected(work, executor, tasks, counter)


def _collected(
    work: RolloutTask,
    executor: Executor,
    tasks: Mapping[Future[RolloutData], slice],
    counter: _Counter,
) -> RolloutData:
    """What all tasks found; those that wait are called off when one fails."""
    whole = RolloutData.empty(work)
    try:
        for task in as_completed(tasks):
            lanes = tasks[task]
            whole.put(lanes, task.result())
            counter.add((lanes.stop - lanes.start) * work.steps)
    except (BrokenExecutor, CancelledError) as error:
        raise _given_up(executor, error) from error
    finally:
        for task in tasks:
            task.cancel()
    return whole


def _given_up(executor: Executor, error: BaseException) -> ConfigError:
    return ConfigError(
        f"executor {type(executor).__name__} gave up its tasks"
        f" ({type(error).__name__}: {error or 'called off'}): a fresh one, or none, is expected"
    )


class _Counter:
    """Adds up steps from several threads."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0
        self.lock = Lock()

    def add(self, steps: int) -> None:
        with self.lock:
            self.done += steps
            if self.progress is not None:
                self.progress(self.done, self.total)


@dataclass(frozen=True, eq=False)
class RolloutTask:
    """Lanes from ``start`` under ``given`` (lanes or 1, periods, n), ``every`` steps a period."""

    arm: ArmModel
    backend: str
    setup: Setup
    start: InitialStates
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

    def part(self, lanes: Any) -> RolloutTask:
        """The same of some lanes."""
        return replace(
            self,
            start=self.start.part(lanes),
            given=self.given if len(self.given) == 1 else self.given[lanes],
            dt=self.dt[lanes],
            varied={name: values[lanes] for name, values in self.varied.items()},
            loop=self.loop.part(lanes) if self.loop is not None else None,
        )

    def parts(self, size: int) -> Iterator[tuple[slice, RolloutTask]]:
        """Parts of at most ``size`` lanes."""
        for first in range(0, self.lanes, size):
            lanes = slice(first, min(first + size, self.lanes))
            yield lanes, self.part(lanes)


@dataclass(frozen=True, eq=False)
class RolloutData:
    """Records, steps of loss, last states [time, q, v, effort, z] and metrics of a work."""

    arrays: dict[str, Vector]
    failed: Vector
    end: Vector
    metrics: dict[str, Vector]

    @classmethod
    def empty(cls, work: RolloutTask) -> RolloutData:
        """Room for what ``work`` will find."""
        shape, n = (work.lanes, work.records), work.arm.nv
        arrays = {
            name: np.empty((*shape, size), work.setup[2]) for name, size in work.outputs.items()
        }
        names = work.loop.metrics if work.loop is not None else ()
        metrics = {name: np.empty((work.lanes, n)) for name in names}
        end = np.empty((work.lanes, 1 + 3 * n + work.arm.na))
        return cls(arrays, np.empty(work.lanes, dtype=int), end, metrics)

    def put(self, lanes: Any, part: RolloutData) -> None:
        """Take over what was found of some lanes."""
        for mine, theirs in ((self.arrays, part.arrays), (self.metrics, part.metrics)):
            for name, values in theirs.items():
                mine[name][lanes] = values
        self.failed[lanes], self.end[lanes] = part.failed, part.end


SEGMENT = 10_000
"""Steps of a block between two reports, and between two looks at Ctrl-C."""
ProgressCallback = Callable[[int], None]
"""Told the number of steps of lanes just done."""


def run_task(
    work: RolloutTask, threads: int | None = 1, report: ProgressCallback = lambda steps: None
) -> RolloutData:
    """Do ``work``, block by block, in ``threads`` (default: one a core); a block never splits."""
    make, whole, stopped = stepper_factory(work), RolloutData.empty(work), Event()

    def heard(steps: int) -> None:
        if stopped.is_set():
            raise CancelledError
        report(steps)

    def one(piece: tuple[slice, RolloutTask]) -> None:
        if not stopped.is_set():
            run_stepper(make(piece[1]), piece[1], whole, piece[0], heard, work.loop is None)

    pieces = work.parts(BLOCK)
    if threads == 1 or work.lanes <= BLOCK:
        for piece in pieces:
            one(piece)
    else:
        _in_threads(one, pieces, threads or cores(), stopped)
    return whole


def _in_threads(
    one: Callable[[tuple[slice, RolloutTask]], None],
    pieces: Iterator[tuple[slice, RolloutTask]],
    threads: int,
    stopped: Event,
) -> None:
    """Every piece in one of ``threads``; a failure or Ctrl-C calls off what is not done yet."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            tasks = [pool.submit(one, piece) for piece in pieces]
            for task in wait(tasks, return_when=FIRST_EXCEPTION).done:
                task.result()
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def stepper_factory(work: RolloutTask) -> Callable[[RolloutTask], BatchStepper]:
    """What makes the lanes of parts of ``work``."""
    if work.loop is not None:
        found: Callable[[RolloutTask], BatchStepper] = work.loop.maker(work)
        return found
    _, make = select_backend(work.backend, work.arm, work.setup, tuple(work.varied))
    return lambda part: make(part.start, part.dt, part.varied)


def run_stepper(
    lanes: BatchStepper,
    work: RolloutTask,
    whole: RolloutData,
    at: slice,
    report: ProgressCallback,
    divisible: bool,
) -> None:
    """Take ``lanes`` through ``work``, what is found to ``whole``; see ``split_commands``."""
    for given, every in split_commands(work.given, work.every, divisible):
        steps = given.shape[1] * every
        first, last = lanes.count // work.stride, (lanes.count + steps) // work.stride
        out = {name: array[at, first:last] for name, array in whole.arrays.items()}
        advance_with_tool(lanes, work.arm, given, every, work.stride, out)
        report(steps * work.lanes)
    q, v, z, effort = lanes.state()
    time = work.start.time + work.dt * work.steps
    whole.end[at] = np.concatenate([time[:, None], q, v, effort, z], axis=1)
    whole.failed[at] = lanes.failed
    for name, values in lanes.metrics().items():
        whole.metrics[name][at] = np.where(lanes.failed[:, None] < 0, values, np.nan)


def split_commands(given: Vector, every: int, divisible: bool) -> Iterator[tuple[Vector, int]]:
    """``given`` in pieces of about SEGMENT steps: whole periods or, where ``divisible``, less."""
    periods = max(SEGMENT // every, 1)
    most = min(every, SEGMENT) if divisible else every
    for first in range(0, given.shape[1], periods):
        piece, left = given[:, first : first + periods], every
        while left:
            yield piece, min(most, left)
            left -= min(most, left)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
