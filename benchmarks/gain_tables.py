"""Tables of LQR gains: how long they take to build, to look up, and how large they are."""

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
    "table of gains", "poses", "built by one process [s]", "by one a core [s]", "size [kB]",
    "over all states [GB]", "solve [µs]", "look up [µs]",
)  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    """Median time of a call."""
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def row(name: str) -> tuple[str, ...]:
    """What HEAD says of the arm ``name``."""
    arm, grid = load_arm(name), GRIDS[name]
    law, spent = Lqr(arm), []
    q, count = arm.configuration("initial"), next(iter(grid.values()))[2]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        build_gain_table(arm, law.weights, grid, executor=pool)  # the processes are there now
        for executor in (None, pool):
            begin = time.perf_counter()
            table = build_gain_table(arm, law.weights, grid, executor=executor)
            spent.append(time.perf_counter() - begin)
    one = 8 * 2 * arm.nv**2
    solve, look = seconds(lambda: lqr_gain(arm, q, law.weights)), seconds(lambda: table.at(q))
    return (
        name, str(table.gains.nbytes // one), *(f"{s:.2f}" for s in spent),
        f"{table.gains.nbytes / 1e3:.0f}", f"{count ** (2 * arm.nv) * one / 1e9:.3g}",
        f"{solve * 1e6:.0f}", f"{look * 1e6:.1f}",
    )  # fmt: skip


def print_tables() -> None:
    """Print a line an arm."""
    print("|", " | ".join(HEAD), "|\n" + "|---" * len(HEAD) + "|")
    for name in GRIDS:
        print("|", " | ".join(row(name)), "|")


if __name__ == "__main__":
    print(machine(), "\n")
    print_tables()
