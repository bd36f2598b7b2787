"""Continuous joints take the shortest path: positions are equal modulo one turn."""

from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import Constraints, ErrorCode
from arm_dynamics.control.goals.goal_handler import GoalHandler, GoalRequest
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.trajectory_parsing import Options, parse_trajectory
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.whole_turns import (
    HALF_TURN_TOLERANCE,
    MAX_POSITION,
    TURN,
    position_error,
    whole_turns,
)
from arm_dynamics.simulation.simulation import Simulation

ARM = load_arm("five_dof")
LINKS = load_arm("two_link")
ARMS = {name: load_arm(name) for name in ("five_dof", "two_link", "three_link", "four_joint")}
ANGLES = st.floats(-1e4, 1e4)


def in_first(arm, value):
    """Return ``value`` at the first joint, 0 elsewhere."""
    return np.array([value, *[0.0] * (arm.nv - 1)])


@given(ANGLES, ANGLES)
def test_the_nearest_of_all_turns_is_taken(q, near):
    turns = whole_turns(LINKS, in_first(LINKS, q), in_first(LINKS, near))
    count = turns[0] / TURN
    assert count == pytest.approx(round(count), abs=1e-9)
    assert turns[1] == 0
    assert abs(q + turns[0] - near) <= pi + 2 * HALF_TURN_TOLERANCE
    again = whole_turns(LINKS, in_first(LINKS, q + turns[0]), in_first(LINKS, near))
    assert again[0] == 0, "it is nearest already"


@given(ANGLES, st.integers(-100, 100))
def test_adding_whole_turns_changes_nothing(near, count):
    """For positions that differ by less than half a turn modulo whole turns."""
    for away in (-3.0, -0.5, 0.0, 1e-6, 2.5):
        q = near + away + TURN * count
        error = position_error(LINKS, in_first(LINKS, q), in_first(LINKS, near))[0]
        assert error == pytest.approx(away, abs=1e-9)


@given(st.floats(-pi, pi), st.floats(-100, 100))
def test_positions_within_half_a_turn_are_unchanged_to_the_last_bit(away, near):
    turns = whole_turns(LINKS, in_first(LINKS, near + away), in_first(LINKS, near))
    assert turns.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_half_a_turn_keeps_its_given_direction(sign):
    """As in joint_trajectory_controller; 3 half turns are one half turn in the same direction."""
    zero = np.zeros(2)
    assert position_error(LINKS, in_first(LINKS, sign * pi), zero)[0] == sign * pi
    assert position_error(LINKS, in_first(LINKS, 3 * sign * pi), zero)[0] == pytest.approx(
        sign * pi
    )


def test_only_continuous_joints_have_turns():
    assert ARM.is_continuous.tolist() == [True, False, False, False, False]
    for name in ("two_link", "three_link", "four_joint"):
        assert ARMS[name].is_continuous.all()
    for name in ("puma560", "so101"):
        assert not load_arm(name).is_continuous.any()
    assert whole_turns(ARM, np.full(5, 50.0), np.zeros(5)).tolist() == [-8 * TURN, 0, 0, 0, 0]


@pytest.mark.parametrize("value", [1e300, MAX_POSITION, np.inf, np.nan])
def test_positions_without_exact_turns_are_unchanged(value):
    """A later check rejects them."""
    assert whole_turns(LINKS, in_first(LINKS, value), np.zeros(2)).tolist() == [0.0, 0.0]


class Session:
    """An arm with earlier whole turns of its continuous joints, stepped by the test."""

    def __init__(self, arm, turned):
        start = arm.configuration("initial") + turned * arm.is_continuous
        self.simulation = Simulation(arm, q=start, dt=1e-3)
        self.loop = ControlLoop(SimulationDriver(arm, self.simulation), build_controller(arm))
        self.goals = GoalHandler(self.loop)
        self.start = start
        self.tick()

    def tick(self, count=1):
        max_distance = 0.0
        for _ in range(count):
            self.loop.step()
            self.goals.update()
            max_distance = max(max_distance, np.abs(self.loop.reference.q - self.start).max())
        return max_distance

    @property
    def time(self):
        return self.loop.state.time


def normalized(q, arm):
    """Return continuous joints within ±π, as MoveIt sends them."""
    return np.where(arm.is_continuous, np.arctan2(np.sin(q), np.cos(q)), q)


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("turned", [3.9, -20.0])
def test_a_normalized_goal_is_reached_by_the_shortest_path(name, turned):
    """R1 of five_dof at 3.9 rad: without whole turns -120 rad/s would be required."""
    arm = ARMS[name]
    session = Session(arm, turned)
    end = session.start + 0.1 * arm.is_continuous
    tight = dict.fromkeys(arm.joint_names, (0.02, 0.0))
    rows = {"positions": [normalized(end, arm)], "velocities": [np.zeros(arm.nv)]}
    request = GoalRequest(arm.joint_names, [0.5], **rows, goal=tight)
    goal = session.goals.accept(request)
    assert session.tick(400) < 0.11
    assert goal.result.code == ErrorCode.SUCCESSFUL, goal.result.text
    np.testing.assert_allclose(session.loop.reference.q, end, atol=1e-9)


def test_a_trajectory_of_several_turns_keeps_them():
    session = Session(ARM, 3.9)
    first, last = session.start.copy(), session.start.copy()
    first[0] += 0.5
    last[0] += 1.5 * TURN
    rows = np.array([first, last])
    rows[:, 0] += 4 * TURN
    times = [1.0, 12.0]
    session.loop.follow(parse_trajectory(ARM, ARM.joint_names, times, rows, start=session.time))
    session.tick(2)
    followed = session.loop.trajectory
    np.testing.assert_allclose([w.q for w in followed.waypoints[1:]], [first, last], atol=1e-9)


def test_the_stop_behind_a_trajectory_is_shifted_by_the_same_turns():
    q, v = np.array([[0.0, 0.0], [1.0, 0.5]]), np.array([[1.0, 0.5]] * 2)
    moving = Options(end_in_motion=True)
    trajectory = parse_trajectory(LINKS, LINKS.joint_names, [0, 1], q, v, options=moving)
    shifted = trajectory.near(LINKS, np.array([-4 * TURN, 2 * TURN]), 0.0)
    turns = np.array([-4 * TURN, 2 * TURN])
    for time in (0.0, 0.7, 1.0, 1.1, 9.0):
        found, plan = shifted.at(time), trajectory.at(time)
        np.testing.assert_allclose(found.q, plan.q + turns, atol=1e-12)
        np.testing.assert_allclose(found.v, plan.v, atol=1e-12)


def test_a_trajectory_with_a_past_start_uses_the_turn_of_its_present_position():
    """The first waypoint is past: the current position of the trajectory counts."""
    q = np.array([[0.0, 0.0], [4 * TURN, 0.0]])
    trajectory = parse_trajectory(LINKS, LINKS.joint_names, [0.0, 10.0], q, start=0.0)
    assert trajectory.near(LINKS, np.array([3.5 * TURN, 0.0]), 8.75) is trajectory
    late = trajectory.near(LINKS, np.zeros(2), 8.75)
    assert late.waypoints[-1].q[0] == pytest.approx(TURN)


def test_references_are_the_nearest():
    session = Session(ARM, 3.9)
    session.loop.hold({"R1": 4.0 - TURN, "R2": -1.0})
    session.tick(2)
    np.testing.assert_allclose(session.loop.reference.q[:2], [4.0, -1.0], atol=1e-12)
    session.loop.hold({"R1": 3.8 - 3 * TURN})
    session.loop.hold({"R1": 4.1 + 3 * TURN})
    session.tick(2)
    np.testing.assert_allclose(session.loop.reference.q[:2], [4.1, -1.0], atol=1e-12)


def test_a_trajectory_without_an_arm_uses_the_nearest_turn():
    session = Session(ARM, 3.9)
    end = normalized(session.start, ARM)
    points = (Waypoint(session.time, end), Waypoint(session.time + 0.1, end))
    session.loop.follow(JointTrajectory(points))
    assert session.tick(100) < 1e-9


def test_tolerances_apply_to_the_shortest_distance():
    constraints = Constraints.of(ARM, {"R1": {"trajectory": 0.01}, "R2": {"trajectory": 0.01}})
    session = Session(ARM, 3.9)
    state, reference = session.loop.state, session.loop.reference
    for joint, met in ((0, True), (1, False)):
        q = reference.q.copy()
        q[joint] += TURN
        assert (
            constraints.path.satisfied(state, type(reference)(q, reference.v, reference.a)) is met
        )


def test_a_demo_trajectory_starts_in_the_present_turn():
    start = ARM.configuration("initial") + np.array([7 * TURN + 0.2, 0, 0, 0, 0])
    for point in demo_trajectory(ARM, start):
        assert abs(point.q[0] - start[0]) < 1.0
