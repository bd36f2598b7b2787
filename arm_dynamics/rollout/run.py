"""A part of a batch done: block by block, piece by piece, in threads or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from threading import Event

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.rollout.backends import BLOCK, chosen
from arm_dynamics.rollout.lanes import Lanes
from arm_dynamics.rollout.tool import advance_with_tool
from arm_dynamics.rollout.work import Done, Work

SEGMENT = 10_000
"""Steps of a block between two reports, and between two looks at Ctrl-C."""
Report = Callable[[int], None]
"""Told the number of steps of lanes just done."""


def done(work: Work, threads: int | None = 1, report: Report = lambda steps: None) -> Done:
    """Do ``work``, block by block, in ``threads`` (default: one a core); a block never splits."""
    make, whole, stopped = maker(work), Done.empty(work), Event()

    def heard(steps: int) -> None:
        if stopped.is_set():
            raise CancelledError
        report(steps)

    def one(piece: tuple[slice, Work]) -> None:
        if not stopped.is_set():
            run(make(piece[1]), piece[1], whole, piece[0], heard, work.loop is None)

    pieces = work.parts(BLOCK)
    if threads == 1 or work.lanes <= BLOCK:
        for piece in pieces:
            one(piece)
    else:
        _in_threads(one, pieces, threads or cores(), stopped)
    return whole


def _in_threads(
    one: Callable[[tuple[slice, Work]], None],
    pieces: Iterator[tuple[slice, Work]],
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


def maker(work: Work) -> Callable[[Work], Lanes]:
    """What makes the lanes of parts of ``work``."""
    if work.loop is not None:
        found: Callable[[Work], Lanes] = work.loop.maker(work)
        return found
    _, make = chosen(work.backend, work.arm, work.setup, tuple(work.varied))
    return lambda part: make(part.start, part.dt, part.varied)


def run(lanes: Lanes, work: Work, whole: Done, at: slice, report: Report, divisible: bool) -> None:
    """Take ``lanes`` through ``work``, what is found to ``whole``; see ``segments``."""
    for given, every in segments(work.given, work.every, divisible):
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


def segments(given: Vector, every: int, divisible: bool) -> Iterator[tuple[Vector, int]]:
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
