"""Compute LQR gains on a grid of configurations and write them to a file."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from math import prod
from pathlib import Path

from arm_dynamics.cli.arm_options import (
    add_arm,
    add_options,
    build_arm,
    path_argument,
    with_payload,
)
from arm_dynamics.cli.interrupt import interruption
from arm_dynamics.cli.terminal import progress_bar
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.lqr_design.gain_table import Axis, build_gain_table
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import check_int
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number
from arm_dynamics.core.signals import (
    INTERRUPTS,
    delaying_interrupts,
    exit_with_parent,
    handling,
    install,
)
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.core.warning_filters import ignoring

MAX_CONFIGURATIONS = 1_000_000
"""Largest grid: 0.4 GB of gains of a five-joint arm."""
COUNT = Number("--grid count", 1, MAX_CONFIGURATIONS, whole=True)
CONFIGURATIONS_PER_PROCESS_START = 20_000
"""Configurations that take as long as the start of a process."""


def run(arguments: Sequence[str]) -> int:
    """Compute the gains at every configuration of the grid and write them."""
    args = command_parser().parse_args(arguments)
    arm, grid = build_arm(args), _read_grid(args.grid)
    controller = check_type(Lqr, "controller", build_controller(arm, "lqr", args.gains))
    controller.set_model(with_payload(arm, args))
    start, count = time.monotonic(), prod(number for _, _, number in grid.values())
    if count > MAX_CONFIGURATIONS:
        raise ConfigError(
            f"--grid = {count:.3g} configurations; expected at most {MAX_CONFIGURATIONS:g}"
        )
    useful = min(os.cpu_count() or 1, 1 + count // CONFIGURATIONS_PER_PROCESS_START)
    workers = check_int("--workers", useful if args.workers is None else args.workers, lower=1)
    try:
        # At a signal the workers end with this process: the end of an executor computes the rest.
        ending = handling(interruption("gain-table"), *INTERRUPTS)
        with ending, progress_bar("configurations") as progress, _pool(workers) as executor:
            if executor is not None:
                with delaying_interrupts():  # no KeyboardInterrupt in the imports of the workers
                    for _ in range(workers):  # each starts one
                        executor.submit(os.getpid)
            table = build_gain_table(
                controller.arm, controller.weights, grid, executor=executor, progress=progress
            )
    except BrokenProcessPool as error:
        raise ArmDynamicsError(
            f"one of {workers} processes was killed; expected enough memory for all of them;"
            " reduce --workers"
        ) from error
    file = args.output or Path(f"{arm.name}_gains.npz")
    table.save(file)
    count, duration = table.gains[..., 0, 0].size, time.monotonic() - start
    size = file.stat().st_size / 1e6
    print(f"{file}: {count} configurations in {duration:.1f} s, {size:.2f} MB")
    return 0


def _pool(workers: int) -> AbstractContextManager[Executor | None]:
    """Return an executor with ``workers`` processes; None for one, which is this process."""
    if workers == 1:
        return nullcontext()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads would compete for the cores
    # At a signal this process ends without its finalizers: the tracker then cleans up.
    os.environ |= ignoring("UserWarning", "multiprocessing.resource_tracker")
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
    return ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(os.getpid(),)
    )


def _start_worker(parent: int) -> None:
    """Leave the end of this process to its parent, which receives the signals of a terminal too."""
    install(signal.SIG_IGN, *INTERRUPTS)
    exit_with_parent(parent)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics gain-table", description=__doc__)
    add = parser.add_argument
    add_arm(parser)
    text = "axis of the grid: joint, lower and upper position [rad; m], number of points"
    add("--grid", nargs="+", required=True, metavar="JOINT=LOWER:UPPER:COUNT", help=text)
    only = ("lock", "payload", "configuration", "gains")
    add_options(parser, only, gains="parameter file with weights")
    number = Number("--workers", 1, 1024, whole=True)
    text = "processes (default: as many as shorten the computation)"
    add("--workers", type=number, metavar="N", help=text)
    text = "file of the gains (default: ARM_gains.npz)"
    add("--output", type=path_argument, metavar="FILE", help=text)
    return parser


def _read_grid(texts: Sequence[str]) -> dict[str, Axis]:
    """Return the axes by joint; raises ConfigError for an invalid axis or two of one joint."""
    grid: dict[str, Axis] = {}
    end = Number("--grid end", -MAX_NUMBER, MAX_NUMBER, "rad or m")
    for text in texts:
        joint, _, numbers = text.partition("=")
        if joint in grid:
            raise ConfigError(f"--grid: axes of joint '{joint}' = 2; expected 1")
        try:
            lower, upper, count = numbers.split(":")
            grid[joint] = end(lower), end(upper), int(COUNT(count))
        except ValueError as error:
            raise ConfigError(f"--grid = {text}; expected JOINT=LOWER:UPPER:COUNT") from error
    return grid
