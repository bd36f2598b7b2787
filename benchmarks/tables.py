"""Tables of the documentation that benchmarks write.

A table of a page stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, below one line of
machine, versions and commit. A benchmark prints the same block; ``make bench`` replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from machine import machine

TEMPERATURES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Temperatures of MPPI in ``reaching.py``."""
COLUMNS = {
    "time step": (
        "one time step", "five_dof [µs]", "ratio to bare `pin.aba`", "so101, dry friction [µs]",
        "ratio",
    ),
    "rollouts": (
        "million steps per second", "five_dof", "ratio to `mujoco.rollout`", "Panda, 7 joints",
        "ratio to `mujoco.rollout`",
    ),
    "operations": (
        "kernel", "multiplications", "additions", "divisions", "loads and stores", "others",
        "limit [ns]", "one pass [ns]", "limit / pass",
    ),
    "starts": (
        "once per arm", "five_dof: generate and compile [s]", "from the cache [s]",
        "Panda: generate and compile [s]", "from the cache [s]",
    ),
    "environments": (
        "one core", "million control steps per second", "ns per step", "ratio to `mujoco.rollout`",
    ),
    "plans": (
        "arm, method", "plan, p50 [ms]", "p99 [ms]", "predictions [ms]", "M steps/s", "of plain",
    ),
    "swing-up": ("controller", "upright", "time: median, largest [s]"),
    "regulation": ("mean cost", "LQR", "LQR, gain table", "MPC"),
    "reaching": (
        "precision", "plan, p50 [ms]", "p99 [ms]", "states in contact", "error, median [mm]",
        "largest [mm]",
    ),
    "budget": (
        "arm", "samples", "periods", "plans/s, one core", "all cores", "cost",
        "error, median [mm]",
    ),
    "temperature": ("noise [rad/s²]", *(f"temperature {x:g}" for x in TEMPERATURES)),
    "planners": (
        "planner", "plan, one core [ms]", "all cores [ms]", "M steps/s, one core", "cost",
        "error, median [mm]", "cost, late plans", "error, median [mm]",
    ),
    "controllers": ("controller", "five_dof", "Puma 560", "Panda"),
    "collisions": (
        "arm", "pairs of shapes", "check of a cycle: median, mean, p99 [µs]", "all distances [µs]",
    ),
    "contact": ("step of 1 ms", "arm_dynamics [µs]", "MuJoCo [µs]"),
    "rollouts in contact": (
        "scene", "start", "steps a rollout", "M steps/s", "of those without a scene",
    ),
    "inverse kinematics": (
        "arm", "case", "error [m, rad]", "solved: toolbox", "solved: arm_dynamics",
        "mean, median [µs]: toolbox", "mean, median [µs]: arm_dynamics", "ratio of medians",
    ),
    "identification": ("step", "time [s]", "ratio to `lstsq`"),
    "minimizers": ("minimizer", "time [s]", "steps", "cost before", "cost after"),
    "streams": (
        "waypoints", "rate [Hz]", "ahead [ms]", "even: error [mrad], lag [ms], ratio",
        "±3 ms: error [mrad], lag [ms], ratio", "one lost: error [mrad], lag [ms], ratio",
    ),
    "ros loop": (
        "loop", "answered", "p50 [ms]", "p99 [ms]", "max [ms]", "CPU simulator [%]",
        "CPU controller [%]",
    ),
    "ros mpc": (
        "rate", "answered", "p50 [ms]", "p99 [ms]", "max [ms]", "late plans", "CPU controller [%]",
    ),
    "mpc": ("arm", "`mpc`, p50 [ms]", "p99 [ms]", "`task_space_mpc`, p50 [ms]", "p99 [ms]"),
}  # fmt: skip
"""Column heads by the name of a table."""
BLOCK = re.compile(
    r"<!-- table: (?P<name>[^\n]+) -->\n(?P<text>(?:(?!<!--).)*)<!-- end -->", re.DOTALL
)


class Table:
    """A table that is being printed."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._size, self._missing = len(columns), list[str]()
        print(_line(columns) + "\n" + "|---" * self._size + "|")

    def row(self, *cells: object) -> None:
        """Print a row; raises ValueError for another number of cells."""
        if len(cells) != self._size:
            raise ValueError(f"table row: cells = {len(cells)}; expected {self._size}")
        print(_line(cells), flush=True)

    def miss(self, reason: str) -> None:
        """Note what is not measured: the page keeps its table."""
        self._missing.append(reason)

    def close(self) -> None:
        """Print the end mark, or what is missing."""
        print("\n".join(f"\nnot measured: {x}" for x in self._missing) or "\n<!-- end -->")


@contextmanager
def table(name: str, *packages: str) -> Iterator[Table]:
    """Print a table of COLUMNS, which depends on ``packages``."""
    print(f"\n<!-- table: {name} -->\n{machine(*packages)}\n")
    printed = Table(COLUMNS[name])
    yield printed
    printed.close()


def replaced(page: str, output: str) -> str:
    """Return a page with its tables replaced by those of the output of a benchmark."""
    found = {block["name"]: block[0] for block in BLOCK.finditer(output)}
    return BLOCK.sub(lambda block: found.get(block["name"], block[0]), page)


def _line(cells: tuple[object, ...]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
