"""``arm-dynamics gain-table ARM``: gains of the law lqr over the configuration, kept in a file."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from math import prod
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from arm_dynamics.cli.arm_options import add_arm, add_options, build_arm, loaded, path_argument
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.lqr_design.gain_table import Axis, GainTable, build_gain_table
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import check_int
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number

MAX_CONFIGURATIONS = 1_000_000
"""Poses of a table: 0.4 GB of gains of a five-joint arm."""
COUNT = Number("--grid count", 1, MAX_CONFIGURATIONS, whole=True)
WORTH = 20_000
"""Poses that take as long as starting a process."""


def run(arguments: Sequence[str]) -> int:
    """Solve for the gains at every pose of the grid, and write them."""
    given = _parser().parse_args(arguments)
    arm = build_arm(given)
    law = check_type(Lqr, "law", build_controller(arm, "lqr", given.gains))
    law.set_model(loaded(arm, given))
    began, grid = time.monotonic(), _grid(given.grid)
    if (poses := prod(count for _, _, count in grid.values())) > MAX_CONFIGURATIONS:
        raise ConfigError(f"--grid = {poses:.3g} poses; expected at most {MAX_CONFIGURATIONS:g}")
    processes = _paying(grid) if given.workers is None else given.workers
    table = _built(law, grid, check_int("--workers", processes, lower=1))
    file = given.output or Path(f"{arm.name}_gains.npz")
    table.save(file)
    poses, seconds = table.gains[..., 0, 0].size, time.monotonic() - began
    size = file.stat().st_size / 1e6
    print(f"{file}: {poses} poses in {seconds:.1f} s, {size:.2f} MB")
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="arm-dynamics gain-table", description=__doc__)
    add = made.add_argument
    add_arm(made)
    add("--grid", nargs="+", required=True, metavar="JOINT=LOWER:UPPER:COUNT", help="rad or m")
    add_options(made, only=("lock", "payload", "configuration", "gains"), gains="file with weights")
    add(
        "--workers",
        type=Number("--workers", 1, 1024, whole=True),
        metavar="N",
        help="default: as many as pay",
    )
    add("--output", type=path_argument, metavar="FILE", help="default: ARM_gains.npz")
    return made


def _grid(texts: Sequence[str]) -> dict[str, Axis]:
    """Axes by joint; raises ConfigError for one that is given twice."""
    grid: dict[str, Axis] = {}
    for joint, axis in map(_axis, texts):
        if joint in grid:
            raise ConfigError(f"--grid: joint '{joint}' is given twice")
        grid[joint] = axis
    return grid


def _axis(text: str) -> tuple[str, Axis]:
    joint, _, numbers = text.partition("=")
    try:
        lower, upper, count = numbers.split(":")
        end = Number("--grid end", -MAX_NUMBER, MAX_NUMBER, "rad or m")
        return joint, (end(lower), end(upper), int(COUNT(count)))
    except ValueError as error:
        raise ConfigError(f"--grid {text}: JOINT=LOWER:UPPER:COUNT is expected") from error


def _built(law: Lqr, grid: dict[str, Axis], processes: int) -> GainTable:
    columns = TextColumn("poses"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress, _workers(processes) as pool:
        line = progress.add_task("poses", total=None)
        return build_gain_table(
            law.arm, law.weights, grid, executor=pool,
            progress=lambda done, of: progress.update(line, completed=done, total=of),
        )  # fmt: skip


def _paying(grid: dict[str, Axis]) -> int:
    """As many processes as save more time than they take to start."""
    poses = prod(count for _, _, count in grid.values())
    return min(os.cpu_count() or 1, 1 + poses // WORTH)


def _workers(processes: int) -> AbstractContextManager[Executor | None]:
    if processes == 1:
        return nullcontext()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes would fight for the cores
    fresh = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
    return ProcessPoolExecutor(processes, mp_context=fresh)
