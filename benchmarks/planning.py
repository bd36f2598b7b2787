"""Predictive control: time of a plan, steps per second and those of the plain kernel, closed loops.

    python benchmarks/planning.py

The plain kernel advances the same motions under one constant command and records nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any

import numpy as np
from arms import panda
from tables import Table, table

from arm_dynamics import State, load_arm
from arm_dynamics.batch import Cost, Horizon, Ilqr, Mpc, Mppi, Planner
from arm_dynamics.batch.kernels.cost import cost_geometry
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions
from arm_dynamics.batch.planning.joint_mpc import PERIOD, JointMpc
from arm_dynamics.batch.planning.task_space_mpc import TaskSpaceMpc
from arm_dynamics.collision import Scene
from arm_dynamics.collision.scene_files import parse_scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control import (
    Controller,
    JointTrajectory,
    Lqr,
    build_gain_table,
    simulate_closed_loop,
)
from arm_dynamics.control.lqr_design.lqr_gain import linear_dynamics, solve_riccati
from arm_dynamics.core.state import Reference
from arm_dynamics.demos import swing_up
from arm_dynamics.dynamics import gravity, tool_pose
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import Plant, maximum, minimum, squared, where

SAMPLES, PERIODS, REPETITIONS = 512, 30, 400
OBSTACLES = """
objects:
  ground: {shape: ground, position: [0, 0, -0.02]}
  ball: {shape: sphere, radius: 0.08, position: [0.45, 0.0, 0.45]}
  post: {shape: sphere, radius: 0.06, position: [0.35, 0.35, 0.25]}
  wall: {shape: box, size: [0.05, 0.5, 0.5], position: [0.75, 0.0, 0.25]}
"""
STEP = np.array([0.5, 0.4, 0.9, 0.2])
"""Reference of four_joint after a step [rad]."""
RANGE = {"J2": (-0.6, 1.2), "J3": (0.2, 1.6), "J4": (-0.8, 1.0)}
"""Range of its gain table and of its random starts [rad]."""
LIMITS = (5.0, 15.0, 9.0, 3.0)
"""Effort limits of the weak four_joint [N·m], just above its gravity torques."""
PAYLOAD = 0.2
"""Payload that no model contains [kg]."""
MARGIN, CLEARANCE = 0.03, 0.05
"""Gap [m] below which the cost of reaching rises, and the least one of a goal's configuration."""
STOP_MARGIN = 0.1
"""Distance [rad] from an end stop below which it rises: predicted stops are soft."""
MAX_SPEED = 2.0
"""Joint speed [rad/s] above which that cost rises."""


def reach(s: Any, p: Any) -> Any:
    """Cost of the distance of the tool from a target."""
    e = s.tool_position - p.target
    return 100 * (e @ e) + 0.02 * (s.v @ s.v) + 50 * (s.position_excess @ s.position_excess)


def reached(s: Any, p: Any) -> Any:
    """Terminal cost of ``reach``."""
    e = s.tool_position - p.target
    return 1000 * (e @ e) + s.v @ s.v


def reach_and_avoid(s: Any, p: Any) -> Any:
    """Cost of the distance from a target, of high speeds and of the least gap of the arm."""
    e, gaps = s.tool_position - p.target, (*s.object_gaps, *s.own_gaps)
    least = gaps[0]
    for gap in gaps[1:]:
        least = minimum(least, gap)
    near = squared(maximum(MARGIN - least, 0.0) / MARGIN)
    fast = sum(squared(maximum(abs(v) - MAX_SPEED, 0.0)) for v in s.v)
    beyond = sum(
        squared(maximum(maximum(low - q, q - high), 0.0))
        for q, low, high in zip(s.q, p.lower, p.upper, strict=True)
    )
    moving = 0.05 * (s.v @ s.v) + 10 * fast + 1000 * beyond
    return 100 * (e @ e) + moving + 100 * near + where(least < 0.0, 300.0, 0.0)


def plain(arm: ArmModel, precision: str) -> Callable[[], None]:
    """Return a function that takes as many steps with the kernel without policy and cost."""
    kernel = Kernel(arm, KernelOptions(precision=precision))
    blocks = [kernel.block({"dt": np.array([0.002])}) for _ in range(SAMPLES // 32)]
    command = np.zeros((1, arm.nv * 32), kernel.dtype)
    rows, nothing = np.empty(0, int), np.empty((0, 0, 32), kernel.dtype)

    def advance() -> None:
        for x in blocks:
            kernel.run(x, command, PERIODS, 10**9, rows, nothing)

    return advance


def timed(
    printed: Table, name: str, arm: ArmModel, planner: Planner, state: State, other: Any
) -> None:
    """Print the time of a plan, of its predictions only, and their rate relative to ``plain``."""
    times = []
    for k in range(REPETITIONS):
        now = State.of(state.q, state.v, time=0.01 * k)
        row = []
        for call in (lambda now=now: planner.update(now), planner.kernel.costs, other):
            start = perf_counter()
            call()
            row.append(perf_counter() - start)
        times.append(row)
    whole, predictions, same = np.array(times[20:]).T
    rate = planner.kernel.samples * planner.horizon.periods / float(np.median(predictions))
    ratio = rate * float(np.median(same)) / (SAMPLES * PERIODS)
    p50, p99 = 1e3 * np.percentile(whole, [50, 99])
    printed.row(
        f"{arm.name}, {name}", f"{p50:.2f}", f"{p99:.2f}", f"{1e3 * np.median(predictions):.2f}",
        f"{rate / 1e6:.1f}", f"{ratio:.2f}",
    )  # fmt: skip


def print_times(printed: Table) -> None:
    """Print the times of plans of five_dof and the Panda."""
    for make in (lambda: load_arm("five_dof"), panda):
        arm = make()
        state = State.of(arm.configuration("initial"))
        for precision in ("float64", "float32"):
            other = plain(arm, precision)
            cost = Cost(reach, reached, {"target": [0.4, 0.2, 0.4]})
            rows = {"commands": "command", "accelerations": "acceleration"}
            for text, policy in rows.items():
                planner = Planner(
                    arm, cost, Mppi(1e-3, samples=SAMPLES, knots=6), Horizon(PERIODS, 0.002, 1),
                    policy=policy, precision=precision,
                )  # fmt: skip
                timed(printed, f"MPPI, {text}, {precision}", arm, planner, state, other)
        planner = Planner(arm, cost, Ilqr(), Horizon(50, 0.002, 1), policy="gravity")
        timed(printed, "iLQR, 50 periods", arm, planner, state, plain(arm, "float64"))


def print_controllers(printed: Table) -> None:
    """Print the processor times of updates with a plan of the registered controllers."""
    for make in (lambda: load_arm("five_dof"), lambda: load_arm("puma560"), panda):
        arm, columns = make(), []
        hold = Reference.hold(arm.configuration("initial"))
        for controller in (JointMpc(arm), TaskSpaceMpc(arm)):
            random, times = np.random.default_rng(0), []
            controller.reset(State.of(hold.q))
            for k in range(REPETITIONS):
                q, v = hold.q + 1e-3 * random.normal(size=arm.nv), np.zeros(arm.nv)
                state, start = State.of(q, v, time=PERIOD * k), process_time()
                controller.update(state, hold, PERIOD * (k > 0))
                times.append(process_time() - start)
            columns += [f"{1e3 * x:.2f}" for x in np.percentile(times[20:], [50, 99])]
        printed.row(arm.name, *columns)


def print_upright(printed: Table, starts: int = 100) -> None:
    """Print how many random starts of two_link end upright, by iLQR and by an LQR."""
    arm = swing_up.weak_arm()
    planner, lqr, plant = swing_up.planner(arm), Lqr(arm), Plant(arm)
    reference = Reference.hold(swing_up.UP)

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
                error = (state.q - swing_up.UP + np.pi) % (2 * np.pi) - np.pi
                since = since if np.abs(error).max() < 0.1 else state.time
            upright += since < 9
            times.append(since)
        done = [t for t in times if t < 9]
        spent = f"{np.median(done):.1f}, {max(done):.1f}" if done else "-"
        printed.row(name, f"{upright} of {starts}", spent)


def regulation(s: Any, p: Any) -> Any:
    """Cost of LQR of four_joint in a period: Q = diag(100, 1), R = 1."""
    e, u = s.q - p.target, s.command - p.hold
    return p.period * (100 * (e @ e) + s.v @ s.v + u @ u)


def regulated(s: Any, p: Any) -> Any:
    """Terminal cost of ``regulation``: that of LQR from there on."""
    x = np.concatenate([s.q - p.target, s.v])
    return x @ (p.riccati @ x)


def regulators(model: ArmModel) -> dict[str, Controller]:
    """Return LQR, LQR with a gain table and MPC of four_joint."""
    weights = {"position_weight": 100.0, "velocity_weight": 1.0, "effort_weight": 1.0}
    lqr, table = (Lqr(model, dict.fromkeys(model.joint_names, weights)) for _ in range(2))
    axes = {name: (*limits, 7) for name, limits in RANGE.items()}
    table.set_gain_table(build_gain_table(model, table.weights, axes))
    A, B = linear_dynamics(model, STEP)
    horizon = Horizon(50, 0.02, 4)
    parameters = {
        "target": STEP, "hold": gravity(model, STEP), "period": horizon.period,
        "riccati": solve_riccati(A, B @ B.T, np.diag([100.0] * 4 + [1.0] * 4)),
    }  # fmt: skip
    planner = Planner(model, Cost(regulation, regulated, parameters), Ilqr(3), horizon)
    return {"LQR": lqr, "gain table": table, "MPC": Mpc(planner)}


def step_cost(arm: ArmModel, controller: Controller, start: Any) -> float:
    """Return the cost ∫ (100 e² + v² + (tau - g)²) dt of a step to STEP in 3 s."""
    trace = simulate_closed_loop(
        arm, controller, JointTrajectory.hold(STEP), State.of(start), seconds=3.0, period=2e-3,
        dt=1e-3,
    )  # fmt: skip
    error, effort = trace.q - STEP, trace.tau - gravity(controller.arm, STEP)
    total = 100 * error**2 + trace.v**2 + effort**2
    return float(trace.work(total.sum(axis=1))[-1])


def print_regulation(printed: Table, count: int = 8) -> None:
    """Print the costs of steps of four_joint, and the times of an update and of a plan."""
    arm, random = load_arm("four_joint"), np.random.default_rng(1)
    pairs = zip(arm.joints, LIMITS, strict=True)
    weak = replace(arm, joints=tuple(replace(joint, effort=limit) for joint, limit in pairs))
    low, high = np.array([(-1.5, 1.5), *RANGE.values()]).T
    far = random.uniform(low, high, (count, 4))
    near = STEP + random.uniform(-0.05, 0.05, (count, 4))
    for name, plant, model, starts in (
        ("start within 0.05 rad", arm, arm, near),
        ("random start", arm, arm, far),
        ("random start, small effort limits", weak, weak, far),
        (f"random start, {PAYLOAD:g} kg not modeled", arm.with_payload(PAYLOAD), arm, far),
    ):
        means = [
            np.mean([step_cost(plant, controller, start) for start in starts])
            for controller in regulators(model).values()
        ]
        printed.row(name, *(f"{mean:.3g}" for mean in means))
    times = [update_time(controller, far[0]) for controller in regulators(arm).values()]
    printed.row("update, median [µs]", *(f"{1e6 * time:.1f}" for time in times))


def update_time(controller: Controller, q: Any) -> float:
    """Return the median time of an update [s], of MPC with a plan in each."""
    controller.reset(State.of(q))
    period = controller.planner.horizon.period if isinstance(controller, Mpc) else 2e-3
    times = []
    for k in range(REPETITIONS):
        state, start = State.of(q, time=k * period), perf_counter()
        controller.update(state, Reference.hold(STEP), period)
        times.append(perf_counter() - start)
    return float(np.median(times))


def print_reaching(printed: Table, goals: int = 100) -> None:
    """Print errors and contacts of the Panda that reaches targets among obstacles."""
    arm, scene = panda(), parse_scene(OBSTACLES)
    state, random = State.of(arm.configuration("initial")), np.random.default_rng(1)
    plant, checks = Plant(arm), SelfCollision(arm, 0.0, state.q, scene=scene, convex=True)
    targets = random_targets(arm, scene, random, goals)
    limits = {"lower": arm.lower + STOP_MARGIN, "upper": arm.upper - STOP_MARGIN}
    parameters = {"target": [0.4, 0.2, 0.4], **limits}
    for precision in ("float64", "float32"):
        planner = Planner(
            arm, Cost(reach_and_avoid, reached, parameters),
            Mppi(3.0, samples=SAMPLES, knots=5, temperature=0.03), Horizon(PERIODS, 0.02, 1),
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


def random_targets(
    arm: ArmModel, scene: Scene, random: np.random.Generator, count: int
) -> list[Any]:
    """Return tool positions (3,) [m] in front of the arm, of configurations with ``CLEARANCE``."""
    geometry, targets = cost_geometry(arm, scene), list[Any]()
    while len(targets) < count:
        q = random.uniform(arm.lower, arm.upper)
        stage, x = geometry.stage(State.of(q), 0 * q), tool_pose(arm, q)[0]
        within = (x > [0.3, -0.5, 0.15]).all() and (x < [0.6, 0.5, 0.7]).all()
        if within and min(*stage.object_gaps, *stage.own_gaps) > CLEARANCE:
            targets.append(x)
    return targets


def main() -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    with table("plans") as printed:
        print_times(printed)
    with table("mpc") as printed:
        print_controllers(printed)
    with table("swing-up") as printed:
        print_upright(printed)
    with table("regulation") as printed:
        print_regulation(printed)
    with table("reaching") as printed:
        print_reaching(printed)


if __name__ == "__main__":
    main()
