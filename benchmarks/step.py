"""One ``Plant.step`` compared with one bare ``pin.aba`` call in the same run.

    python benchmarks/step.py

Each step continues from the state of the previous one, as in a simulation. Rows are interleaved and
the median of the repetitions is taken, so that load on the machine affects all rows equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pinocchio as pin
from machine import machine

from arm_dynamics import Command, Plant, State, load_arm

CALLS = 2000
REPETITIONS = 25


def seconds(call: Callable[[], object], steps: int) -> float:
    """Return the time [s] of one step if ``call`` makes ``steps`` steps."""
    start = time.perf_counter()
    for _ in range(CALLS // steps):
        call()
    return (time.perf_counter() - start) / (CALLS // steps * steps)


def simulated(plant: Plant, state: State, command: Command, steps: int) -> Callable[[], None]:
    """Return a call that simulates ``steps`` time steps."""

    def call() -> None:
        nonlocal state
        state = plant.step(state, command, 1e-4, steps)

    return call


def main() -> None:
    """Print microseconds and ratios."""
    rows: dict[str, tuple[Callable[[], object], int]] = {}
    for name in ("five_dof", "so101"):  # plain motors; dry friction in motors and gears
        arm = load_arm(name)
        plant = Plant(arm)
        state = State.of(arm.configuration("initial"), [0.1] * arm.nv)
        command = Command.checked("voltage", [1.0] * arm.nv, arm.nv)
        inputs = arm.model, arm.model.createData(), state.q, state.v, np.zeros(arm.nv)
        rows[f"{name}: pin.aba, bare"] = partial(pin.aba, *inputs), 1
        rows[f"{name}: one step a call"] = simulated(plant, state, command, 1), 1
        rows[f"{name}: 20 steps a call"] = simulated(plant, state, command, 20), 20
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(REPETITIONS):
        for name, (call, steps) in rows.items():
            times[name].append(seconds(call, steps))
    print(machine())
    print("| call | µs per step | ratio to pin.aba |\n|---|---|---|")
    for name, values in times.items():
        middle = statistics.median(values)
        bare = statistics.median(times[name.partition(":")[0] + ": pin.aba, bare"])
        print(f"| {name} | {middle * 1e6:.2f} | {middle / bare:.2f} |")


if __name__ == "__main__":
    main()
