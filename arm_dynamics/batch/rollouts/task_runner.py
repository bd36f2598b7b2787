"""Execution of a task: block by block, in threads of this process or in an executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from dataclasses import dataclass
from threading import Event, Lock

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.batch.rollouts.backends import BLOCK, BatchStepper, select_backend
from arm_dynamics.batch.rollouts.rollout_task import RolloutData, RolloutTask
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import FloatArray, check_int
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel

Progress = Callable[[int, int], None]
"""Called with the time steps done and their total, over all rollouts."""
ProgressCallback = Callable[[int], None]
"""Called with the number of time steps just done, over all rollouts of a block."""
EXECUTOR_TASKS = 16
"""Tasks into which a batch is divided for an executor, if it is large enough."""
SEGMENT = 10_000
"""Time steps of a block between two calls of ``progress``, which Ctrl-C can interrupt."""
TOOL = "tool_position"


@dataclass(frozen=True)
class Execution:
    """Where a task runs, and what observes it; the options of ``rollout`` of the same names."""

    threads: int | None = None
    executor: Executor | None = None
    memory_limit: float | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Raise InvalidValue for an option of another type."""
        if self.threads is not None:
            check_int("threads", self.threads, lower=1)
        if self.executor is not None:
            check_type(Executor, "executor", self.executor, "one of concurrent.futures")
        if self.progress is not None and not callable(self.progress):
            raise InvalidValue(f"progress = {self.progress!r}; expected a callable (done, total)")


def execute(
    task: RolloutTask, execution: Execution, counter: StepCounter | None = None
) -> RolloutData:
    """Return the results of ``task``; an exception of a part is raised here.

    ``counter`` counts the time steps of several tasks; by default those of this one.
    """
    counter = counter or StepCounter(task.size * task.steps, execution.progress)
    executor = execution.executor
    if executor is None:
        return run_task(task, 1 if task.backend == "plant" else execution.threads, counter.add)
    blocks = -(-task.size // BLOCK)
    size = BLOCK * -(-blocks // EXECUTOR_TASKS)
    try:
        parts = {executor.submit(run_task, part): at for at, part in task.parts(size)}
    except RuntimeError as error:  # it is shut down, or broken
        raise _executor_failed(executor, error) from error
    result = _empty(task)
    try:
        for part in as_completed(parts):
            at = parts[part]
            result.put(at, part.result())
            counter.add((at.stop - at.start) * task.steps)
    except (BrokenExecutor, CancelledError) as error:
        raise _executor_failed(executor, error) from error
    finally:  # if one part fails, the waiting ones are not needed
        for part in parts:
            part.cancel()
    return result


def _executor_failed(executor: Executor, error: BaseException) -> ConfigError:
    return ConfigError(
        f"executor {type(executor).__name__}: state = {type(error).__name__}"
        f" ({str(error) or 'canceled'}); expected running; use a new executor, or none"
    )


class StepCounter:
    """Sum of the time steps done by several threads, which is passed on to ``progress``."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0
        self.lock = Lock()

    def add(self, steps: int) -> None:
        """Add ``steps`` of all rollouts of a block."""
        with self.lock:
            self.done += steps
            if self.progress is not None:
                self.progress(self.done, self.total)


def run_task(
    task: RolloutTask, threads: int | None = 1, report: ProgressCallback = lambda steps: None
) -> RolloutData:
    """Run ``task`` block by block in this process.

    Parameters
    ----------
    task : RolloutTask
        Task.
    threads : int, optional
        Number of threads; None: one per core. A block is never divided.
    report : callable
        Called after each segment of a block.

    """
    make, result, stopped = stepper_factory(task), _empty(task), Event()

    def report_unless_stopped(steps: int) -> None:
        if stopped.is_set():
            raise CancelledError
        report(steps)

    def run_block(block: tuple[slice, RolloutTask]) -> None:
        if not stopped.is_set():
            at, part = block
            run_stepper(make(part), part, result, at, report_unless_stopped, task.loop is None)

    blocks = task.parts(BLOCK)
    if threads == 1 or task.size <= BLOCK:
        for block in blocks:
            run_block(block)
        return result
    with ThreadPoolExecutor(threads or cores()) as pool:
        try:
            futures = [pool.submit(run_block, block) for block in blocks]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:  # also Ctrl-C: cancel what has not started
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return result


def _empty(task: RolloutTask) -> RolloutData:
    return RolloutData.empty(task, () if task.loop is None else METRICS)


def stepper_factory(task: RolloutTask) -> Callable[[RolloutTask], BatchStepper]:
    """Return the function that makes the steppers of parts of ``task``."""
    loop = task.loop
    pid = None if loop is None else loop.spec
    name, make = select_backend(task.backend, task.arm, task.setup, tuple(task.varied), pid)

    def make_stepper(part: RolloutTask) -> BatchStepper:
        if part.loop is None:
            return make(part.start, part.dt, part.varied)
        if name == "generated":
            return make(part.start, part.dt, {**part.varied, **part.loop.rows()})
        return part.loop.wrap(make(part.start, part.dt, part.varied))

    return make_stepper


def run_stepper(
    stepper: BatchStepper,
    task: RolloutTask,
    result: RolloutData,
    at: slice,
    report: ProgressCallback,
    divisible: bool,
) -> None:
    """Advance ``stepper`` through ``task``; write the results to rows ``at`` of ``result``."""
    injection, longest = task.injection, SEGMENT
    if injection is not None:
        longest, divisible = injection.periods * task.steps_per_command, False
    parts = split_commands(task.commands, task.steps_per_command, divisible, longest)
    for k, (commands, steps) in enumerate(parts):
        segment = commands.shape[1] * steps
        first = stepper.count // task.record_every
        last = (stepper.count + segment) // task.record_every
        records = {name: array[at, first:last] for name, array in result.arrays.items()}
        tool = records.pop(TOOL, None)
        if tool is not None and "q" not in records:
            records["q"] = np.empty((*tool.shape[:2], task.arm.nv))
        stepper.advance(commands, steps, task.record_every, records)
        if tool is not None:
            tool[:] = tool_positions(task.arm, records["q"])
        report(segment * task.size)
        if injection is not None and k < len(injection.measured):
            q, v, act, _ = stepper.state()
            stepper.replace_state(*injection.corrected(k, q, v, act))
    q, v, act, effort = stepper.state()
    time = task.start.time + task.dt * task.steps
    result.final_array[at] = np.concatenate([time[:, None], q, v, effort, act], axis=1)
    result.failed_step[at] = stepper.failed_step
    for name, values in stepper.metrics().items():
        result.metrics[name][at] = np.where(stepper.failed_step[:, None] < 0, values, np.nan)


def split_commands(
    commands: FloatArray, steps_per_command: int, divisible: bool, longest: int = SEGMENT
) -> Iterator[tuple[FloatArray, int]]:
    """Yield segments of about ``longest`` steps: whole periods, or parts if ``divisible``."""
    periods = max(longest // steps_per_command, 1)
    limit = min(steps_per_command, longest) if divisible else steps_per_command
    for first in range(0, commands.shape[1], periods):
        segment, left = commands[:, first : first + periods], steps_per_command
        while left:
            yield segment, min(limit, left)
            left -= min(limit, left)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def tool_positions(arm: ArmModel, q: FloatArray) -> FloatArray:
    """Return the position of the tool frame in the base frame.

    From the tool to the base, p <- R Rz(q) p + t, or p <- R (p + q z) + t for a prismatic joint,
    for all configurations at the same time.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    q : FloatArray
        Configurations [rad or m], shape (..., nv).

    Returns
    -------
    FloatArray
        Positions [m], shape (..., 3).

    """
    frame, q = (
        arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)],
        arm.tree_positions(q),
    )
    table, i, point = bodies(arm), frame.parentJoint - 1, frame.placement.translation
    point = np.broadcast_to(table[i].turn.T @ point if i >= 0 else point, (*q.shape[:-1], 3))
    while i >= 0:
        body, value = table[i], np.asarray(q[..., i], dtype=float)
        x, y, z = np.moveaxis(point, -1, 0)
        if body.prismatic:
            moved = np.stack([x, y, z + value], axis=-1)
        else:
            c, s = np.cos(value), np.sin(value)
            moved = np.stack([c * x - s * y, s * x + c * y, z], axis=-1)
        point, i = moved @ body.rotation.T + body.translation, body.parent
    return np.array(point)
