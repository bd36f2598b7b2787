"""Published controllers of the two-link arm against an independent solution, and an improvement."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import two_link_controllers as controllers

from arm_dynamics import Plant, State, load_arm
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.task_space_base import to_task_reference
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.kinematics.frames import pose

DATA = Path(__file__).parents[1] / "data" / "two_link"
DT = 4e-3
INNER = 0.4
"""Inner radius [m] of the workspace: 1 m less 0.6 m."""
LINES = {"A": ([1.2, -0.6], [0.5, 1.3]), "B": ([0.9, -0.5], [-0.9, 0.8])}


def to_space(x):
    """Return x and z as a vector in space."""
    return np.array([x[0], 0.0, x[1]])


def table(name):
    return np.genfromtxt(DATA / f"{name}.csv", delimiter=",", names=True)


def columns(rows, *names):
    return np.stack([rows[name] for name in names], axis=1)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("arm", "file", "make_controller"),
    [
        ("two_link", "traj_A_unit_task", controllers.task_space),
        ("two_link_pb", "traj_B_hole_task", controllers.task_space),
        ("two_link_pb", "traj_B_hole_joint", controllers.resolved_rate),
    ],
)
def test_tool_paths_equal_an_independent_solution(arm, file, make_controller):
    arm, rows = load_arm(arm), table(file)
    path = controllers.Cubic.between(*LINES[file[5]], 4.0)
    start = [rows["q1"][0], rows["q2"][0]]
    found = controllers.run(
        arm, start, make_controller(arm, path), seconds=rows["t"][-1],
        period=rows["t"][1], duration=4.0, tolerance=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(found.q, columns(rows, "q1", "q2"), atol=1e-6)
    np.testing.assert_allclose(found.v, columns(rows, "qd1", "qd2"), atol=1e-5)
    smooth = rows["t"] != 4.0  # the reference acceleration and the effort are discontinuous there
    effort = columns(rows, "tau1", "tau2")
    np.testing.assert_allclose(found.tau[smooth], effort[smooth], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.tool[:, controllers.PLANE], columns(rows, "x", "y"), atol=1e-6)


# Improvement of the report: a tool line with an unreachable part -------------------------------


def test_operational_space_follows_the_reachable_part_and_reaches_the_target():
    """On line B: nearest reachable point, no effort beyond its limit, no chatter."""
    arm = load_arm("two_link_pb")
    path = controllers.Cubic.between(*LINES["B"], 4.0)
    controller, plant = TaskSpace(arm), Plant(arm)
    state = State.of([table("traj_B_hole_task")[name][0] for name in ("q1", "q2")])
    controller.reset(state)
    held = to_task_reference(arm, Reference.hold(state.q))
    efforts, misses, hole = [], [], 0
    for k in range(1500):
        x, rate, bend = path.at(k * DT)
        requested = replace(
            held,
            position=held.position * [0, 1, 0] + to_space(x),
            twist=np.append(to_space(rate), np.zeros(3)),
            acceleration=np.append(to_space(bend), np.zeros(3)),
        )
        command = controller.update(state, requested, DT * (k > 0))
        nearest = max(np.linalg.norm(x), INNER) / np.linalg.norm(x) * x
        hole += np.linalg.norm(x) < INNER
        misses.append(np.linalg.norm(pose(arm, state.q)[0][controllers.PLANE] - nearest))
        efforts.append(command.value)
        state = plant.step(state, command, DT / 20, 20)
    assert hole > 100
    assert misses[-1] < 1e-3
    assert (np.abs(efforts) < arm.effort_limit).all()
    assert max(misses) < 0.4  # the nearest point moves fast along the inner radius
    steps = np.diff(np.array(efforts)[:, 0])
    reversals = np.count_nonzero(steps[1:] * steps[:-1] < -1e-6)
    assert reversals < 40  # in 1500 cycles: no chatter
