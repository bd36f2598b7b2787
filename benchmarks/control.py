"""Laws of control: what an update costs, how well each tracks, and what tables of gains cost.

    pip install 'arm_dynamics[bench]' && python benchmarks/control.py

An update is held against the bare Pinocchio calls that its law can not do without, from Python,
in the same run: rows are interleaved and medians taken, so that a busy machine shifts all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import cycle

import numpy as np
from bare_calls import NEEDS, bare
from gain_tables import print_tables
from machine import machine
from square import CASES, in_joints, square

from arm_dynamics import Reference, State
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core import plugins
from arm_dynamics.dynamics.kinematics import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import with_model_error

CALLS, REPETITIONS = 200, 15
PERIOD, DT = 1e-3, 1e-4
ERROR = 5.0
"""Of the masses in the models that are wrong [%]."""
IDLE = ("position", "gravity_compensation")
"""Laws that do not track by effort."""


def seconds(call: Callable[[State, Reference], object], inputs: list) -> float:
    """Mean time of a call over CALLS of the ``inputs`` in turn."""
    turn = cycle(inputs)
    begin = time.perf_counter()
    for _ in range(CALLS):
        call(*next(turn))
    return (time.perf_counter() - begin) / CALLS


def trajectories(arm: ArmModel, posture: tuple[float, ...]) -> dict[bool, Trajectory]:
    """The square for laws of the tool (True) and of the joints (False)."""
    way = square(arm, posture)
    return {True: way, False: in_joints(arm, way)}


def laws(arm: ArmModel) -> dict[str, Controller]:
    """Every registered law that commands efforts, as the node would run it."""
    built = {name: build_controller(arm, name) for name in plugins.registered_names("controllers")}
    return {name: law for name, law in built.items() if law.interface == "effort"}


def with_table(arm: ArmModel, way: Trajectory) -> Lqr:
    """LQR whose gains are looked up: a table of two poses an axis round the square."""
    law = build_controller(arm, "lqr")
    assert isinstance(law, Lqr)
    q = np.array([way.at(t).q for t in np.linspace(way.start, way.end, 50).tolist()])
    low, high = (q.min(axis=0) - 0.01).tolist(), (q.max(axis=0) + 0.01).tolist()
    grid = dict(zip(arm.joint_names, zip(low, high, [2] * arm.nv, strict=True), strict=True))
    law.set_gain_table(build_gain_table(arm, law.weights, grid))
    return law


def inputs(law: Controller, ways: dict[bool, Trajectory]) -> list[tuple[State, Reference]]:
    """States a little beside the square, with the law's references."""
    random, told = np.random.default_rng(0), ways[isinstance(law, TaskSpaceController)]
    joints, found = ways[False], []
    for t in np.linspace(joints.start, joints.end, 50).tolist():
        at = joints.at(t)
        q, v = at.q + 1e-3 * random.normal(size=at.q.size), at.v
        found.append((State.of(q, v, np.zeros(q.size), t), told.at(t)))
    return found


def update_costs() -> dict[str, dict[str, tuple[float, float]]]:
    """Law → arm → time of an update and of the bare calls [s]."""
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for name, case in CASES.items():
        arm = case.load()
        ways = trajectories(arm, case.posture)
        calls = {}
        measured = laws(arm) | {"lqr, looked up": with_table(arm, ways[False])}
        for law_name, law in measured.items():
            data, pinocchio = inputs(law, ways), bare(arm, NEEDS.get(law_name, ""))
            law.reset(data[0][0])
            calls[law_name] = (
                (lambda s, r, law=law: law.update(s, r, PERIOD), data),
                (lambda s, r, call=pinocchio: call(s), data),
            )
        times: dict[str, list] = {law_name: [] for law_name in calls}
        for _ in range(REPETITIONS):
            for law_name, pair in calls.items():
                times[law_name].append([seconds(*one) for one in pair])
        for law_name, found in times.items():
            whole, least = (statistics.median(column) for column in zip(*found, strict=True))
            rows.setdefault(law_name, {})[name] = (whole, least)
    return rows


def tracking(arm: ArmModel, told: ArmModel, posture: tuple[float, ...]) -> dict[str, float]:
    """Law → root mean square distance of the tool from the square [m], at 1 kHz."""
    ways, found = trajectories(arm, posture), {}
    way, start = ways[True], State.of(posture)
    for name, law in laws(told).items():
        if name in IDLE:
            continue
        followable = ways[isinstance(law, TaskSpaceController)]
        trace = simulate_closed_loop(
            arm, law, followable, start, seconds=round(way.end, 3), period=PERIOD, dt=DT,
            integrator="semi_implicit_euler",
        )  # fmt: skip
        wanted = np.array([way.at(t).position for t in trace.time.tolist()])
        tools = np.array([tool_position(arm, q) for q in trace.q])
        found[name] = float(np.sqrt(((tools - wanted) ** 2).sum(axis=1).mean()))
    return found


def main() -> None:
    """Print the three tables."""
    print(machine(), "\n")
    head = " | ".join(CASES) + " |\n" + "|---" * (len(CASES) + 1) + "|"
    print(f"| update [µs], times the bare calls | {head}")
    for law, row in update_costs().items():
        print(f"| `{law}` |", " | ".join(_cost(law, *pair) for pair in row.values()), "|")
    print(f"\n| rms distance from the square [mm], true model / masses 5 % off | {head}")
    for law, row in distances().items():
        cells = [" / ".join(f"{1e3 * x:.3f}" for x in pair) for pair in row.values()]
        print(f"| `{law}` |", " | ".join(cells), "|")
    print()
    print_tables()


def _cost(law: str, whole: float, least: float) -> str:
    return f"{whole * 1e6:.1f}" + (f" ({whole / least:.1f})" if NEEDS.get(law) else "")


def distances() -> dict[str, dict[str, list[float]]]:
    """Law → arm → distance of the tool with a true model and with one that is off [m]."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, case in CASES.items():
        arm = case.load()
        for told in (arm, with_model_error(arm, mass=ERROR)):
            for law, distance in tracking(arm, told, case.posture).items():
                found.setdefault(law, {}).setdefault(name, []).append(distance)
    return found


if __name__ == "__main__":
    main()
