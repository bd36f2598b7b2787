"""Predictive control: cost of reaching in closed loop against budget; other planners.

    pip install judo-rai pytorch-mppi pytorch-kinematics && python benchmarks/reaching.py

From rest an arm reaches random targets, 2 s each: a plan every 20 ms, a command every 2 ms.
The cost is the sum of the running cost along the motion, mean of all targets. Times are median
processor times for one core, least wall times for all cores. Plans act immediately; *late plans*
act after the time that they take on one core.
``pytorch-mppi`` has ten times the time: its late plans act after a tenth of their processor time.
Noise and temperature of each planner are the best of 12 or more pairs for other targets.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from arms import panda
from reaching_task import (
    KNOTS,
    PERIOD,
    PERIODS,
    SAMPLES,
    Efforts,
    Motion,
    Program,
    Task,
    last,
    running,
)
from tables import TEMPERATURES, table

from arm_dynamics import State, load_arm
from arm_dynamics.batch import Cost, Horizon, Mppi, Planner
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

READY = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)
"""Start of the Panda."""
FOLDED = (0.0, -0.4, -0.8, 0.0, 0.3)
"""Start of five_dof."""
BUDGET = [(samples, periods) for samples in (128, 512, 2048) for periods in (15, 30, 60)]
BUDGET_NOISE = 2.0
"""Noise for all horizons [rad/s²]: with more, long motions of five_dof diverge."""
NOISES = (1.25, 2.5, 5.0, 10.0)
"""Standard deviations of the sampled accelerations [rad/s²]."""
CORES, TIMED = os.cpu_count() or 1, 30


class Reaching:
    """Planner of this package."""

    def __init__(self, arm: ArmModel, method: Mppi, periods: int = PERIODS, **options: Any) -> None:
        cost = Cost(running, last, {"target": np.zeros(3)})
        self.planner = Planner(arm, cost, method, Horizon(periods, PERIOD, 1), **options)

    def aim(self, target: Vector) -> None:
        """Start again, with another target (3,) [m]."""
        self.planner.reset()
        self.planner.set_parameters({"target": target})

    def plan(self, state: State) -> Efforts:
        """Return the plan from a state."""
        plan = self.planner.update(state)
        return lambda s: self.planner.command(s, plan).value


class Peer(NamedTuple):
    """A program with one thread, with all cores, and the factor of its time."""

    one: Program
    all: Program
    time: float = 1.0


def free_five_dof() -> ArmModel:
    """Return five_dof without position limits: its wrist needs shorter steps at an end stop."""
    arm = load_arm("five_dof")
    free = (replace(joint, lower=-np.inf, upper=np.inf) for joint in arm.joints)
    return replace(arm, joints=tuple(free))


def accelerations(
    arm: ArmModel,
    samples: int = SAMPLES,
    periods: int = PERIODS,
    noise: float = 5.0,
    temperature: float = 0.03,
    **options: Any,
) -> Reaching:
    """Return MPPI of accelerations."""
    shape = {"samples": samples, "knots": KNOTS, "spline": "linear"}
    method = Mppi(noise, temperature=temperature, **shape)
    return Reaching(arm, method, periods, policy="acceleration", **options)


def efforts(arm: ArmModel, **options: Any) -> Reaching:
    """Return MPPI of efforts in addition to g(q); their noise is 2 rad/s² times the inertia."""
    method = Mppi(
        2.0 * inertia(arm), samples=SAMPLES, knots=KNOTS, spline="linear", temperature=0.05
    )
    return Reaching(arm, method, policy="gravity", **options)


def inertia(arm: ArmModel) -> Vector:
    """Return the diagonal of M(READY) (nv,)."""
    return np.diag(pin.crba(arm.model, arm.model.createData(), np.array(READY))).copy()


def judo(arm: ArmModel, cores: int = 0) -> Program:
    """Return judo's planner."""
    from judo_peer import Judo  # noqa: PLC0415

    return Judo(arm, 2.0 * inertia(arm), 3.0, cores)


def pytorch_mppi(arm: ArmModel, threads: int) -> Program:
    """Return the planner of pytorch-mppi."""
    from pytorch_mppi_peer import PytorchMppi  # noqa: PLC0415

    return PytorchMppi(arm, 3.0, 0.05, threads)


def wall_time(program: Program, task: Task) -> float:
    """Return the least time of a plan [s]: load of the machine only adds to it."""
    times, state = [], State.of(task.q)
    program.aim(task.targets[0])
    for _ in range(TIMED):
        begin = time.perf_counter()
        program.plan(state)
        times.append(time.perf_counter() - begin)
    return min(times)


def closed_loop(motions: list[Motion]) -> tuple[str, str]:
    """Return mean cost and median distance [mm]."""
    distance = 1e3 * np.median([motion.distance for motion in motions])
    return f"{np.mean([motion.cost for motion in motions]):.1f}", f"{distance:.1f}"


def processor_time(motions: list[Motion]) -> float:
    """Return the median time of a plan [s]."""
    return float(np.median([t for motion in motions for t in motion.times]))


def print_budget() -> None:
    """Print plans per second and cost against samples and periods."""
    with table("budget") as printed:
        for arm, q in ((free_five_dof(), FOLDED), (panda(), READY)):
            task = Task(arm, np.array(q))
            for samples, periods in BUDGET:
                one, every = (
                    accelerations(arm, samples, periods, BUDGET_NOISE, threads=threads)
                    for threads in (1, CORES)
                )
                motions = [task.reach(one, target) for target in task.targets]
                rates = 1 / processor_time(motions), 1 / wall_time(every, task)
                printed.row(
                    arm.name, samples, periods, *(f"{rate:.0f}" for rate in rates),
                    *closed_loop(motions),
                )  # fmt: skip


def print_temperatures() -> None:
    """Print the cost of a Panda against noise and temperature."""
    arm = panda()
    task = Task(arm, np.array(READY))
    with table("temperature") as printed:
        for noise in NOISES:
            planners = (accelerations(arm, noise=noise, temperature=x) for x in TEMPERATURES)
            motions = ([task.reach(each, target) for target in task.targets] for each in planners)
            printed.row(noise, *(closed_loop(each)[0] for each in motions))


def peers(arm: ArmModel) -> dict[str, Callable[[], Peer]]:
    """Return the functions that make all planners."""
    return {
        "arm_dynamics, efforts": lambda: Peer(efforts(arm), efforts(arm, threads=CORES)),
        "arm_dynamics, accelerations": lambda: Peer(
            accelerations(arm), accelerations(arm, threads=CORES)
        ),
        "arm_dynamics, accelerations, float32": lambda: Peer(
            accelerations(arm, precision="float32"),
            accelerations(arm, precision="float32", threads=CORES),
        ),
        "judo-rai, efforts": lambda: Peer(*2 * [judo(arm)]),
        "judo-rai, efforts, a thread per core": lambda: Peer(judo(arm, 1), judo(arm, CORES)),
        "pytorch-mppi, accelerations, no dynamics": lambda: Peer(
            pytorch_mppi(arm, 1), pytorch_mppi(arm, CORES), 0.1
        ),
    }


def print_peers() -> None:
    """Print the times and costs of all planners, whose motions alternate."""
    arm = panda()
    task, found = Task(arm, np.array(READY)), dict[str, Peer]()
    with table("planners", "judo-rai", "mujoco", "pytorch-mppi", "torch") as printed:
        for name, make in peers(arm).items():
            try:
                found[name] = make()
            except ImportError as error:
                printed.miss(f"{name}: {error}; pip install {name.partition(',')[0]}")
        prompt, late = ({name: list[Motion]() for name in found} for _ in range(2))
        for target in task.targets:
            for name, peer in found.items():
                motion = task.reach(peer.one, target)
                prompt[name].append(motion)
                delay = peer.time * processor_time([motion])
                late[name].append(task.reach(peer.one, target, delay))
        for name, peer in found.items():
            one = processor_time(prompt[name])
            printed.row(
                name, f"{1e3 * one:.2f}", f"{1e3 * wall_time(peer.all, task):.2f}",
                f"{1e-6 * SAMPLES * PERIODS / one:.2f}", *closed_loop(prompt[name]),
                *closed_loop(late[name]),
            )  # fmt: skip


def main() -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    print_budget()
    print_temperatures()
    print_peers()


if __name__ == "__main__":
    main()
