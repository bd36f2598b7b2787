"""Streams of goals, pushes, and what happens to a reference out of reach, on the control loop."""

import numpy as np
import pytest

from arm_dynamics.controllers.task_space import TaskSpace
from arm_dynamics.drivers.simulated import Simulated
from arm_dynamics.errors import InvalidValue
from arm_dynamics.following.tool_following import LEASH, RISE, ToolFollowing
from arm_dynamics.following.tool_rehearsal import rehearse
from arm_dynamics.kinematics import tool_position
from arm_dynamics.kinematics.virtual_arm import rates
from arm_dynamics.loop import ControlLoop
from arm_dynamics.model.load import load_arm
from arm_dynamics.reach_watch import ReachWatch
from arm_dynamics.rotation import rotation_vector
from arm_dynamics.simulation import Simulation
from arm_dynamics.state import Reference, State, TaskReference
from arm_dynamics.trajectories.tool_glide import ToolGlide
from arm_dynamics.trajectories.tool_goals import AtTwist, ToPose
from arm_dynamics.trajectories.tool_paths import ToolLimits

PERIOD = 2e-3
LIMITS = ToolLimits()


@pytest.fixture
def loop():
    arm = load_arm("five_dof")
    law = TaskSpace(arm)
    found = ControlLoop(Simulated(arm, Simulation(arm, period=PERIOD)), law)
    found.following = ToolFollowing(law)
    found.step()
    return found


def send(loop, goal):
    state, reference, _ = loop.latest
    loop.following.post(ToolGlide.to(loop.arm, goal, state.time, reference))


def test_a_stream_of_twists_loses_no_time(loop):
    goal = AtTwist.of(loop.arm, [0, 0.1, 0, 0, 0, 0], 0.25, LIMITS)
    passed = []
    for k in range(600):
        if k % 10 == 0:
            send(loop, goal)
        loop.step()
        passed.append(loop.reference.position[1])
    assert (passed[-1] - passed[-301]) / (300 * PERIOD) == pytest.approx(0.1, rel=1e-4)


def test_a_push_comes_and_goes_with_its_time_constant(loop):
    wrench, begin = np.array([1.0, -2.0, 3.0, 0, 0, 0]), loop.state.time
    loop.following.push(wrench, begin + 0.3)
    for _ in range(100):
        loop.step()
        told = -np.expm1(-(loop.state.time - begin) / RISE)
        assert np.allclose(loop.reference.wrench, told * wrench, atol=1e-9)
    for _ in range(600):
        loop.step()
    assert not isinstance(loop.reference, TaskReference)
    with pytest.raises(InvalidValue, match="wrench"):
        loop.following.push([np.nan] * 6, 1.0)


def test_out_of_reach_is_told_once_and_the_next_goal_begins_within_reach(loop):
    p, watch = tool_position(loop.arm, loop.state.q), ReachWatch(loop.controller, loop.events)
    send(loop, ToPose.of(loop.arm, p + np.array([1.5, 0, 0]), np.eye(3), LIMITS))
    for _ in range(3000):
        loop.step()
        watch.look()
    assert watch.out
    assert watch.weak
    assert watch.farthest == pytest.approx(watch.distance)
    assert loop.events.counts["out_of_reach"] == loop.events.counts["near_singular"] == 1
    assert np.linalg.norm(loop.reference.position - tool_position(loop.arm, loop.state.q)) > 0.5
    send(loop, ToPose.of(loop.arm, p, np.eye(3), LIMITS))
    loop.step()
    tool = tool_position(loop.arm, loop.controller.virtual.q)
    assert np.linalg.norm(loop.reference.position - tool) < LEASH
    for _ in range(3000):
        loop.step()
        watch.look()
    assert not watch.out
    assert np.linalg.norm(tool_position(loop.arm, loop.state.q) - p) < 1e-3


@pytest.mark.parametrize("name", ["five_dof", "two_link"])
def test_after_a_rehearsal_a_law_is_as_new(name):
    arm = load_arm(name)
    law, other = TaskSpace(arm), TaskSpace(arm)
    rehearse(law)
    state, reference = State.of(arm.pose("initial")), Reference.hold(arm.pose("initial"))
    for each in (law, other):
        each.reset(state)
    for dt in (0.0, 0.001, 0.001):
        now, then = (each.update(state, reference, dt).value for each in (law, other))
        assert np.array_equal(now, then)


def test_after_a_rehearsal_nothing_is_compiled_by_a_goal(loop):
    rehearse(loop.controller)
    kernels = {kernel: len(kernel.signatures) for kernel in (rates, rotation_vector)}
    p = tool_position(loop.arm, loop.state.q)
    send(loop, ToPose.of(loop.arm, p + np.array([0, 0.1, 0]), np.eye(3), LIMITS))
    for _ in range(5):
        loop.step()
    assert {kernel: len(kernel.signatures) for kernel in kernels} == kernels
