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
from itertools import chain

import numpy as np
import pinocchio as pin
from tables import table

from arm_dynamics import Command, Plant, State, load_arm

CALLS = 2000
REPETITIONS = 25
ARMS = ("five_dof", "so101")
"""Arms with plain motors, and with dry friction in motors and gears."""
CALLED = (
    "`pin.aba` only, from Python",
    "`Plant.step`, 20 steps per call (as in the simulator)",
    "`Plant.step`, one step per call",
)


def seconds(call: Callable[[], object], steps: int) -> float:
    """Return the processor time [s] of one step if ``call`` makes ``steps`` steps."""
    start = time.process_time()
    for _ in range(CALLS // steps):
        call()
    return (time.process_time() - start) / (CALLS // steps * steps)


def simulated(plant: Plant, state: State, command: Command, steps: int) -> Callable[[], None]:
    """Return a call that simulates ``steps`` time steps."""

    def call() -> None:
        nonlocal state
        state = plant.step(state, command, 1e-4, steps)

    return call


def main() -> None:
    """Print microseconds and ratios."""
    rows: dict[tuple[str, str], tuple[Callable[[], object], int]] = {}
    for name in ARMS:
        arm = load_arm(name)
        plant = Plant(arm)
        state = State.of(arm.configuration("initial"), [0.1] * arm.nv)
        command = Command.checked("voltage", [1.0] * arm.nv, arm.nv)
        inputs = arm.model, arm.model.createData(), state.q, state.v, np.zeros(arm.nv)
        rows[name, CALLED[0]] = partial(pin.aba, *inputs), 1
        rows[name, CALLED[1]] = simulated(plant, state, command, 20), 20
        rows[name, CALLED[2]] = simulated(plant, state, command, 1), 1
    times: dict[tuple[str, str], list[float]] = {key: [] for key in rows}
    for _ in range(REPETITIONS):
        for key, (call, steps) in rows.items():
            times[key].append(seconds(call, steps))
    middle = {key: statistics.median(values) for key, values in times.items()}
    with table("time step") as printed:
        for called in CALLED:
            each = ((middle[arm, called], middle[arm, CALLED[0]]) for arm in ARMS)
            cells = ((f"{1e6 * t:.2f}", f"{t / bare:.2f}") for t, bare in each)
            printed.row(called, *chain(*cells))


if __name__ == "__main__":
    main()
