"""Check of self-collision in a control cycle, compared with Pinocchio's distances of all pairs.

    python benchmarks/collisions.py

The check keeps lower bounds of the distances; Pinocchio computes all of them at one configuration.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter_ns

import numpy as np
import pinocchio as pin
from arms import panda, ur5
from tables import Table, table

from arm_dynamics import load_arm
from arm_dynamics.collision.clearance_monitor import ClearanceMonitor
from arm_dynamics.control.collision_avoidance import CollisionAvoidance
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel

PERIOD = 2e-3
"""Control period [s]."""
CYCLES = 20_000
ARMS: dict[str, Callable[[], ArmModel]] = {
    "five_dof": lambda: load_arm("five_dof"), "so101": lambda: load_arm("so101"),
    "puma560": lambda: load_arm("puma560"), "seven_dof_can": lambda: load_arm("seven_dof_can"),
    "panda, meshes": panda, "ur5, meshes": ur5,
}  # fmt: skip


def motion(arm: ArmModel) -> list[State]:
    """Return states of a motion between random configurations, at up to 2 rad/s."""
    random = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    limit = np.minimum(arm.velocity_limit, 2.0)
    q = goal = np.array(arm.configuration("initial"))
    states = []
    for k in range(CYCLES):
        if k % 400 == 0:
            goal = random.uniform(lower, upper)
        v = np.clip(5 * (goal - q), -limit, limit)
        q = q + PERIOD * v
        states.append(State.of(q, v, np.zeros(arm.nv), PERIOD * k))
    return states


def main() -> None:
    """Print the time of a check, and of Pinocchio's distances at one configuration."""
    warnings.simplefilter("ignore")
    with table("collisions") as printed:
        print_rows(printed)


def print_rows(printed: Table) -> None:
    """Print a row for each arm."""
    for name, make in ARMS.items():
        arm = make()
        braking, monitor = CollisionAvoidance(arm).braking, ClearanceMonitor(arm)
        states, times = motion(arm), list[int]()
        braking.contact_ahead(states[0].q, states[0].v)  # compiles
        for state in states:
            begin = perf_counter_ns()
            braking.contact_ahead(state.q, state.v)
            times.append(perf_counter_ns() - begin)
        median, mean, high = np.median(times), np.mean(times), np.percentile(times, 99)
        data, results = arm.model.createData(), monitor.shapes.createData()
        begin = perf_counter_ns()
        for state in states[::100]:
            pin.computeDistances(arm.model, data, monitor.shapes, results, state.q)
        bare = (perf_counter_ns() - begin) / len(states[::100])
        times_of = f"{median / 1e3:.1f}, {mean / 1e3:.1f}, {high / 1e3:.1f}"
        printed.row(name, monitor.pairs, times_of, f"{bare / 1e3:.1f}")


if __name__ == "__main__":
    main()
