"""Controllers: time of an update, tracking error, and cost of LQR gain tables.

    pip install 'arm_dynamics[bench]' && python benchmarks/control.py

An update is compared with its minimum Pinocchio calls from Python in the same run, in processor
time. Rows are interleaved and medians are taken, so that load affects all rows equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import cycle

import numpy as np
from bare_calls import NEEDS, bare
from gain_tables import print_tables
from square import CASES, in_joints, square
from tables import table

from arm_dynamics import Reference, State
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core import plugins
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import with_model_error

CALLS, REPETITIONS = 200, 15
PERIOD, DT = 1e-3, 1e-4
ERROR = 5.0
"""Mass error of the perturbed controller model [%]."""
LABELS = {
    "pid": "`pid`, which needs no call",
    "lqr": "`lqr`, gains computed at the reference",
    "lqr, gain table": "`lqr`, gain table of 2 points for each joint",
}
IDLE = ("position", "gravity_compensation")
"""Controllers that do not track by effort."""


def seconds(call: Callable[[State, Reference], object], inputs: list) -> float:
    """Return the mean processor time [s] of CALLS calls with the ``inputs`` in turn."""
    turn = cycle(inputs)
    begin = time.process_time()
    for _ in range(CALLS):
        call(*next(turn))
    return (time.process_time() - begin) / CALLS


def trajectories(arm: ArmModel, posture: tuple[float, ...]) -> dict[bool, Trajectory]:
    """Return the square for task-space (True) and joint-space (False) controllers."""
    trajectory = square(arm, posture)
    return {True: trajectory, False: in_joints(arm, trajectory)}


def effort_controllers(arm: ArmModel) -> dict[str, Controller]:
    """Return every registered controller that commands efforts, configured as in the node."""
    built = {name: build_controller(arm, name) for name in plugins.registered_names("controllers")}
    return {name: one for name, one in built.items() if one.interface == "effort"}


def with_table(arm: ArmModel, trajectory: Trajectory) -> Lqr:
    """Return an LQR controller with a gain table of two configurations per axis."""
    controller = build_controller(arm, "lqr")
    assert isinstance(controller, Lqr)
    times = np.linspace(trajectory.start, trajectory.end, 50).tolist()
    q = np.array([trajectory.at(t).q for t in times])
    low, high = (q.min(axis=0) - 0.01).tolist(), (q.max(axis=0) + 0.01).tolist()
    grid = dict(zip(arm.joint_names, zip(low, high, [2] * arm.nv, strict=True), strict=True))
    controller.set_gain_table(build_gain_table(arm, controller.weights, grid))
    return controller


def inputs(
    controller: Controller, squares: dict[bool, Trajectory]
) -> list[tuple[State, Reference]]:
    """Return states near the square with the references of the controller."""
    random = np.random.default_rng(0)
    references = squares[isinstance(controller, TaskSpaceController)]
    joints, found = squares[False], []
    for t in np.linspace(joints.start, joints.end, 50).tolist():
        at = joints.at(t)
        q, v = at.q + 1e-3 * random.normal(size=at.q.size), at.v
        found.append((State.of(q, v, np.zeros(q.size), t), references.at(t)))
    return found


def update_costs() -> dict[str, dict[str, tuple[float, float]]]:
    """Return controller → arm → time of an update and of the bare calls [s]."""
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for name, case in CASES.items():
        arm = case.load()
        squares = trajectories(arm, case.posture)
        calls = {}
        measured = effort_controllers(arm) | {"lqr, gain table": with_table(arm, squares[False])}
        for kind, controller in measured.items():
            data, pinocchio = inputs(controller, squares), bare(arm, NEEDS.get(kind, ""))
            controller.reset(data[0][0])
            calls[kind] = (
                (lambda s, r, one=controller: one.update(s, r, PERIOD), data),
                (lambda s, r, call=pinocchio: call(s), data),
            )
        times: dict[str, list] = {kind: [] for kind in calls}
        for _ in range(REPETITIONS):
            for kind, pair in calls.items():
                times[kind].append([seconds(*one) for one in pair])
        for kind, found in times.items():
            whole, least = (statistics.median(column) for column in zip(*found, strict=True))
            rows.setdefault(kind, {})[name] = (whole, least)
    return rows


def tracking(arm: ArmModel, model: ArmModel, posture: tuple[float, ...]) -> dict[str, float]:
    """Return controller → root mean square distance of the tool from the square [m], at 1 kHz."""
    squares, found = trajectories(arm, posture), {}
    tool_square, start = squares[True], State.of(posture)
    for name, controller in effort_controllers(model).items():
        if name in IDLE:
            continue
        trace = simulate_closed_loop(
            arm, controller, squares[isinstance(controller, TaskSpaceController)], start,
            seconds=round(tool_square.end, 3), period=PERIOD, dt=DT,
            integrator="semi_implicit_euler",
        )  # fmt: skip
        targets = np.array([tool_square.at(t).position for t in trace.time.tolist()])
        tools = np.array([tool_position(arm, q) for q in trace.q])
        found[name] = float(np.sqrt(((tools - targets) ** 2).sum(axis=1).mean()))
    return found


def main() -> None:
    """Print the three tables."""
    with table("controllers") as printed:
        for kind, row in update_costs().items():
            printed.row(
                LABELS.get(kind, f"`{kind}`"), *(_cost(kind, *pair) for pair in row.values())
            )
    head = " | ".join(CASES) + " |\n" + "|---" * (len(CASES) + 1) + "|"
    print(f"\n| rms distance from the square [mm], nominal model / +5 % mass | {head}")
    for kind, row in distances().items():
        cells = [" / ".join(f"{1e3 * x:.3f}" for x in pair) for pair in row.values()]
        print(f"| `{kind}` |", " | ".join(cells), "|")
    print()
    print_tables()


def _cost(kind: str, whole: float, least: float) -> str:
    return f"{whole * 1e6:.1f}" + (f" ({whole / least:.1f})" if NEEDS.get(kind) else "")


def distances() -> dict[str, dict[str, list[float]]]:
    """Return controller → arm → tool distance with the nominal and the perturbed model [m]."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, case in CASES.items():
        arm = case.load()
        for model in (arm, with_model_error(arm, mass=ERROR)):
            for kind, distance in tracking(arm, model, case.posture).items():
                found.setdefault(kind, {}).setdefault(name, []).append(distance)
    return found


if __name__ == "__main__":
    main()
