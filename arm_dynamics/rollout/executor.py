"""A batch in this process's threads, or in parts to whoever takes tasks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, as_completed
from threading import Lock

from arm_dynamics.rollout.backends import BLOCK
from arm_dynamics.rollout.work import Done, Work, done

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
    tasks = {executor.submit(done, part): lanes for lanes, part in work.parts(size)}
    whole = Done.empty(work)
    for task in as_completed(tasks):
        lanes = tasks[task]
        whole.put(lanes, task.result())
        counter.add((lanes.stop - lanes.start) * work.steps)
    return whole


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
