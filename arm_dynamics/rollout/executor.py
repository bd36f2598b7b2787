"""A batch in this process's threads, or in parts to whoever takes tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from threading import Lock

from arm_dynamics.errors import ConfigError
from arm_dynamics.rollout.backends import BLOCK
from arm_dynamics.rollout.run import done
from arm_dynamics.rollout.work import Done, Work

Progress = Callable[[int, int], None]
"""Told how many steps of lanes are done, and of how many."""
PARTS = 16
"""Tasks that a batch is cut into for an executor, where it has lanes enough."""


def spread(
    work: Work,
    threads: int | None,
    executor: Executor | None,
    progress: Progress | None,
) -> Done:
    """``work`` done; a task that fails raises here what it raised there."""
    counter = _Counter(work.lanes * work.steps, progress)
    if executor is None:
        return done(work, 1 if work.backend != "generated" else threads, counter.add)
    blocks = -(-work.lanes // BLOCK)
    size = BLOCK * -(-blocks // PARTS)
    try:
        tasks = {executor.submit(done, part): lanes for lanes, part in work.parts(size)}
    except RuntimeError as error:  # it is shut down, or broken
        raise _given_up(executor, error) from error
    return _collected(work, executor, tasks, counter)


def _collected(
    work: Work, executor: Executor, tasks: Mapping[Future[Done], slice], counter: _Counter
) -> Done:
    """What all tasks found; those that wait are called off when one fails."""
    whole = Done.empty(work)
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
