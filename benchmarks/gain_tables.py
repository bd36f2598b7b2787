"""LQR gain tables: build time, interpolation time and size."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from machine import machine

from arm_dynamics import load_arm
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.control.lqr_design.lqr_gain import lqr_gain

CALLS = 300
GRIDS = {
    "four_joint": {"J2": (-0.6, 1.2, 7), "J3": (0.2, 1.6, 7), "J4": (-0.8, 1.0, 7)},
    "five_dof": {"R2": (-1.2, 0.7, 5), "R3": (-2, 0.6, 5), "R4": (-1, 1, 5), "R5": (-1, 1, 5)},
}
HEAD = (
    "gain table", "configurations", "build, one process [s]", "build, one process per core [s]",
    "size [kB]", "size over all states [GB]", "Riccati solution [µs]", "interpolation [µs]",
)  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    """Return the median time [s] of a call."""
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def row(name: str) -> tuple[str, ...]:
    """Return the cells of one arm in the order of HEAD."""
    arm, grid = load_arm(name), GRIDS[name]
    weights, spent = Lqr(arm).weights, []
    q, count = arm.configuration("initial"), next(iter(grid.values()))[2]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        build_gain_table(arm, weights, grid, executor=pool)  # start the processes
        for executor in (None, pool):
            begin = time.perf_counter()
            table = build_gain_table(arm, weights, grid, executor=executor)
            spent.append(time.perf_counter() - begin)
    one = 8 * 2 * arm.nv**2
    solve, look = seconds(lambda: lqr_gain(arm, q, weights)), seconds(lambda: table.at(q))
    return (
        name, str(table.gains.nbytes // one), *(f"{s:.2f}" for s in spent),
        f"{table.gains.nbytes / 1e3:.0f}", f"{count ** (2 * arm.nv) * one / 1e9:.3g}",
        f"{solve * 1e6:.0f}", f"{look * 1e6:.1f}",
    )  # fmt: skip


def print_tables() -> None:
    """Print one row for each arm."""
    print("|", " | ".join(HEAD), "|\n" + "|---" * len(HEAD) + "|")
    for name in GRIDS:
        print("|", " | ".join(row(name)), "|")


if __name__ == "__main__":
    print(machine(), "\n")
    print_tables()
