"""One ``Plant.step`` compared with one bare ``pin.aba`` call in the same run.

    python benchmarks/step.py

Each step continues from the state of the previous one, as in a simulation. Rows are interleaved and
the median of the repetitions is taken, so that load on the machine affects all rows equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

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
    arm = load_arm("five_dof")
    plant = Plant(arm)
    state = State.of(arm.configuration("initial"), [0.1] * arm.nv)
    command = Command.checked("voltage", [1.0] * arm.nv, arm.nv)
    data, tau = arm.model.createData(), np.zeros(arm.nv)
    q, v = np.array(state.q), np.array(state.v)
    rows: dict[str, tuple[Callable[[], object], int]] = {
        "pin.aba, bare": (lambda: pin.aba(arm.model, data, q, v, tau), 1),
        "Plant.step, one step per call": (simulated(plant, state, command, 1), 1),
        "Plant.step, 20 steps per call": (simulated(plant, state, command, 20), 20),
    }
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(REPETITIONS):
        for name, (call, steps) in rows.items():
            times[name].append(seconds(call, steps))
    bare = statistics.median(times["pin.aba, bare"])
    print(machine())
    print("| call | µs per step | ratio to pin.aba |\n|---|---|---|")
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle * 1e6:.2f} | {middle / bare:.2f} |")


if __name__ == "__main__":
    main()
