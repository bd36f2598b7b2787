"""The published laws of the two-link arm against an independent solution, and the better one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arm_dynamics import Plant, State, load_arm
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.task_space_base import to_task_reference
from arm_dynamics.core.state import Reference
from arm_dynamics.demos import two_link_controllers as laws
from arm_dynamics.dynamics.kinematics import pose

DATA = Path(__file__).parent / "data" / "two_link"
DT = 4e-3
INNER = 0.4
"""Radius [m] that the folded arm keeps free: 1 m less 0.6 m."""
WAYS = {"A": ([1.2, -0.6], [0.5, 1.3]), "B": ([0.9, -0.5], [-0.9, 0.8])}


def spread(x):
    """x and z as a vector in space."""
    return np.array([x[0], 0.0, x[1]])


def table(name):
    return np.genfromtxt(DATA / f"{name}.csv", delimiter=",", names=True)


def columns(rows, *names):
    return np.stack([rows[name] for name in names], axis=1)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("arm", "file", "law"),
    [
        ("two_link", "traj_A_unit_task", laws.task_space),
        ("two_link_pb", "traj_B_hole_task", laws.task_space),
        ("two_link_pb", "traj_B_hole_joint", laws.resolved_rate),
    ],
)
def test_tool_paths_are_those_of_an_independent_solution(arm, file, law):
    arm, rows = load_arm(arm), table(file)
    way = laws.Cubic.between(*WAYS[file[5]], 4.0)
    start = [rows["q1"][0], rows["q2"][0]]
    found = laws.run(
        arm, start, law(arm, way), seconds=rows["t"][-1], period=rows["t"][1], duration=4.0,
        tolerance=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(found.q, columns(rows, "q1", "q2"), atol=1e-6)
    np.testing.assert_allclose(found.v, columns(rows, "qd1", "qd2"), atol=1e-5)
    smooth = rows["t"] != 4.0  # the reference's acceleration ends there, and the effort jumps
    effort = columns(rows, "tau1", "tau2")
    np.testing.assert_allclose(found.tau[smooth], effort[smooth], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.tool[:, laws.PLANE], columns(rows, "x", "y"), atol=1e-6)


# Better than the report: the tool's line that crosses what the arm cannot reach ----------------


def test_operational_space_goes_where_the_arm_can_and_ends_at_the_target():
    """On line B: nearest point of the reach, no effort beyond its limit, no chatter."""
    arm = load_arm("two_link_pb")
    way = laws.Cubic.between(*WAYS["B"], 4.0)
    law, plant = TaskSpace(arm), Plant(arm)
    state = State.of([table("traj_B_hole_task")[name][0] for name in ("q1", "q2")])
    law.reset(state)
    held = to_task_reference(arm, Reference.hold(state.q))
    efforts, misses, hole = [], [], 0
    for k in range(1500):
        x, rate, bend = way.at(k * DT)
        asked = replace(
            held,
            position=held.position * [0, 1, 0] + spread(x),
            twist=np.append(spread(rate), np.zeros(3)),
            acceleration=np.append(spread(bend), np.zeros(3)),
        )
        command = law.update(state, asked, DT * (k > 0))
        nearest = max(np.linalg.norm(x), INNER) / np.linalg.norm(x) * x
        hole += np.linalg.norm(x) < INNER
        misses.append(np.linalg.norm(pose(arm, state.q)[0][laws.PLANE] - nearest))
        efforts.append(command.value)
        state = plant.step(state, command, DT / 20, 20)
    assert hole > 100
    assert misses[-1] < 1e-3
    assert (np.abs(efforts) < arm.effort_limit).all()
    assert max(misses) < 0.4  # the nearest point races round the hole's rim
    steps = np.diff(np.array(efforts)[:, 0])
    turns = np.count_nonzero(steps[1:] * steps[:-1] < -1e-6)
    assert turns < 40  # in 1500 ticks: the effort swings with the motion, it does not chatter
