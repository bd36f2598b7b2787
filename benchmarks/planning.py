"""Predictive control: time of a plan, steps per second and those of the plain kernel, closed loops.

    python benchmarks/planning.py

The plain kernel advances the same motions under one constant command and records nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from arms import panda
from tables import Table, table

from arm_dynamics import State, load_arm
from arm_dynamics.batch import Cost, Horizon, Ilqr, Mppi, Planner
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.collision import Scene
from arm_dynamics.collision.scene_files import parse_scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control import Lqr
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics import tool_pose
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import Plant, maximum

SAMPLES, PERIODS, REPETITIONS = 512, 30, 400
OBSTACLES = """
objects:
  ground: {shape: ground, position: [0, 0, -0.02]}
  ball: {shape: sphere, radius: 0.08, position: [0.45, 0.0, 0.45]}
  post: {shape: sphere, radius: 0.06, position: [0.35, 0.35, 0.25]}
  wall: {shape: box, size: [0.05, 0.5, 0.5], position: [0.75, 0.0, 0.25]}
"""
MARGIN = 0.03
"""Gap [m] below which the cost of reaching rises."""
UP = np.array([math.pi / 2, 0.0])
"""Upright configuration of two_link."""


def reach(s: Any, p: Any) -> Any:
    """Cost of the distance of the tool from a target."""
    e = s.tool_position - p.target
    return 100 * (e @ e) + 0.02 * (s.v @ s.v) + 50 * (s.position_excess @ s.position_excess)


def reached(s: Any, p: Any) -> Any:
    """Terminal cost of ``reach``."""
    e = s.tool_position - p.target
    return 1000 * (e @ e) + s.v @ s.v


def reach_and_avoid(s: Any, p: Any) -> Any:
    """Return ``reach`` with a penalty for gaps below ``MARGIN``."""
    near = sum(maximum(MARGIN - gap, 0.0) for gap in (*s.object_gaps, *s.own_gaps))
    return reach(s, p) + 100 * near


def plain_rate(arm: ArmModel, precision: str) -> float:
    """Return steps per second of the kernel without policy and cost."""
    kernel = Kernel(arm, KernelOptions(precision=precision))
    blocks = [kernel.block({"dt": np.array([0.002])}) for _ in range(SAMPLES // 32)]
    command = np.zeros((1, arm.nv * 32), kernel.dtype)
    rows, nothing = np.empty(0, int), np.empty((0, 0, 32), kernel.dtype)
    times = []
    for _ in range(REPETITIONS):
        start = perf_counter()
        for x in blocks:
            kernel.run(x, command, PERIODS, 10**9, rows, nothing)
        times.append(perf_counter() - start)
    return SAMPLES * PERIODS / float(np.median(times))


def timed(
    printed: Table, name: str, arm: ArmModel, planner: Planner, state: State, plain: float
) -> None:
    """Print the time of a plan, of its predictions only, and their rate relative to the kernel."""
    whole, predictions = [], []
    for k in range(REPETITIONS):
        start = perf_counter()
        planner.update(State.of(state.q, state.v, time=0.01 * k))
        whole.append(perf_counter() - start)
        start = perf_counter()
        planner.kernel.costs()
        predictions.append(perf_counter() - start)
    rate = planner.kernel.samples * planner.horizon.periods / float(np.median(predictions))
    p50, p99 = 1e3 * np.percentile(whole[20:], [50, 99])
    printed.row(
        f"{arm.name}, {name}", f"{p50:.2f}", f"{p99:.2f}", f"{1e3 * np.median(predictions):.2f}",
        f"{rate / 1e6:.1f}", f"{rate / plain:.2f}",
    )  # fmt: skip


def print_times(printed: Table) -> None:
    """Print the times of plans of five_dof and the Panda."""
    for make in (lambda: load_arm("five_dof"), panda):
        arm = make()
        state = State.of(arm.configuration("initial"))
        for precision in ("float64", "float32"):
            plain = plain_rate(arm, precision)
            cost = Cost(reach, reached, {"target": [0.4, 0.2, 0.4]})
            rows = {"commands": "command", "accelerations": "acceleration"}
            for text, policy in rows.items():
                planner = Planner(
                    arm, cost, Mppi(1e-3, samples=SAMPLES, knots=6), Horizon(PERIODS, 0.002, 1),
                    policy=policy, precision=precision,
                )  # fmt: skip
                timed(printed, f"MPPI, {text}, {precision}", arm, planner, state, plain)
        planner = Planner(arm, cost, Ilqr(), Horizon(50, 0.002, 1), policy="gravity")
        timed(printed, "iLQR, 50 periods", arm, planner, state, plain_rate(arm, "float64"))


def upright_planner(arm: ArmModel) -> Planner:
    """Return a planner of the swing-up of two_link."""

    def error(s: Any) -> Any:
        return 2 - math.cos(s.q[0] - UP[0]) - math.cos(s.q[1])

    def running(s: Any, p: Any) -> Any:
        energy = (s.kinetic_energy + s.potential_energy) / p.energy - 1
        return error(s) + 0.01 * (s.v @ s.v) + 1e-3 * (s.command @ s.command) + 10 * energy**2

    def terminal(s: Any, p: Any) -> Any:
        return 100 * error(s) + 3 * (s.v @ s.v)

    cost = Cost(running, terminal, {"energy": 19.62})
    return Planner(arm, cost, Ilqr(3, noise=1.0), Horizon(50, 0.04, 4))


def print_upright(printed: Table, starts: int = 100) -> None:
    """Print how many random starts of two_link end upright, by iLQR and by an LQR."""
    arm = load_arm("two_link")
    limits = zip(arm.joints, (9.81, 2.45), strict=True)
    arm = replace(arm, joints=tuple(replace(joint, effort=limit) for joint, limit in limits))
    planner, lqr, plant = upright_planner(arm), Lqr(arm), Plant(arm)
    reference = Reference.hold(UP)

    def planned(state: State) -> Any:
        if round(state.time / 0.01) % 4 == 0:
            planner.update(state)
        return planner.command(state)

    controllers: dict[str, Callable[[State], Any]] = {
        "iLQR": planned,
        "LQR": lambda state: lqr.update(state, reference, 0.01),
    }
    for name, controller in controllers.items():
        random, upright, times = np.random.default_rng(0), 0, []
        for _ in range(starts):
            planner.reset()
            state, since = State.of(random.uniform(-np.pi, np.pi, 2), random.uniform(-1, 1, 2)), 0.0
            while state.time < 10:
                state = plant.step(state, controller(state), 0.01)
                error = (state.q - UP + np.pi) % (2 * np.pi) - np.pi
                since = since if np.abs(error).max() < 0.1 else state.time
            upright += since < 9
            times.append(since)
        done = [t for t in times if t < 9]
        spent = f"{np.median(done):.1f}, {max(done):.1f}" if done else "-"
        printed.row(name, f"{upright} of {starts}", spent)


def print_reaching(printed: Table, goals: int = 100) -> None:
    """Print errors and contacts of the Panda that reaches random targets among obstacles."""
    arm, scene = panda(), parse_scene(OBSTACLES)
    state, random = State.of(arm.configuration("initial")), np.random.default_rng(1)
    plant, checks = Plant(arm), SelfCollision(arm, 0.0, state.q, scene=scene, convex=True)
    targets = random_targets(scene, random, goals)
    for precision in ("float64", "float32"):
        planner = Planner(
            arm, Cost(reach_and_avoid, reached, {"target": [0.4, 0.2, 0.4]}),
            Mppi(5.0, samples=SAMPLES, knots=5, temperature=0.05), Horizon(PERIODS, 0.02, 1),
            policy="acceleration", scene=scene, precision=precision,
        )  # fmt: skip
        contacts, errors, times = 0, [], []
        for target in targets:
            planner.set_parameters({"target": target})
            for _ in range(100):
                start = perf_counter()
                planner.update(state)
                times.append(perf_counter() - start)
                for _ in range(10):
                    state = plant.step(state, planner.command(state), 0.002)
                    contacts += checks.find(state.q) is not None
            errors.append(float(np.linalg.norm(tool_pose(arm, state.q)[0] - target)))
        p50, p99 = 1e3 * np.percentile(times[20:], [50, 99])
        printed.row(
            precision, f"{p50:.2f}", f"{p99:.2f}", f"{contacts} of {1000 * goals}",
            f"{1e3 * np.median(errors):.1f}", f"{1e3 * max(errors):.1f}",
        )  # fmt: skip


def random_targets(scene: Scene, random: np.random.Generator, count: int) -> list[Any]:
    """Return reachable targets (3,) [m] at least 0.15 m from all obstacles."""
    from arm_dynamics.batch.kernels.contact_impulse import gap_and_normal  # noqa: PLC0415

    targets: list[Any] = []
    while len(targets) < count:
        x = random.uniform([0.3, -0.5, 0.15], [0.6, 0.5, 0.7])
        gaps = [
            gap_and_normal(o.shape.kind, o.shape.size, o.position, o.rotation, x, 0.0)[0]
            for o in scene
        ]
        if min(gaps) > 0.15 and 0.4 < np.linalg.norm(x - [0, 0, 0.33]) < 0.65:
            targets.append(x)
    return targets


def main() -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    with table("plans") as printed:
        print_times(printed)
    with table("swing-up") as printed:
        print_upright(printed)
    with table("reaching") as printed:
        print_reaching(printed)


if __name__ == "__main__":
    main()
