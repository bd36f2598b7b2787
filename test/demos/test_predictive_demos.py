"""Demonstrations of predictive control: what each of them claims."""

from functools import cache

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.control import GravityCompensation
from arm_dynamics.core.state import Reference, State
from arm_dynamics.demos import fast_square, moving_target, obstacles, push, swing_up
from arm_dynamics.demos.tool_tracking import PERIOD, Delayed
from arm_dynamics.dynamics import rigid_body


@cache
def swings():
    return swing_up.simulate()


def test_ilqr_swings_up_with_half_of_the_gravity_torque():
    planned = swings()["iLQR"]
    level = rigid_body.gravity(planned.arm, np.zeros(2))
    np.testing.assert_allclose(planned.arm.effort_limit, level / 2, rtol=2e-3)
    assert (np.abs(planned.tau) <= planned.arm.effort_limit).all()
    assert planned.tool[0, 2] == -2.0
    assert swing_up.upright_since(planned) < 4
    np.testing.assert_allclose(planned.q[-1] % (2 * np.pi), swing_up.UP, atol=1e-2)


def test_lqr_alone_stays_below_the_base():
    regulated = swings()["LQR"]
    assert swing_up.upright_since(regulated) == np.inf
    assert regulated.tool[:, 2].max() < -0.5


@pytest.mark.slow
def test_mpc_keeps_the_supply_and_is_nearer_to_the_fast_square():
    """With the orientation held as by computed torque; a free wrist is nearer still."""
    target = fast_square.square()
    runs = fast_square.simulate(target)
    supply = load_arm("five_dof").actuators[1].constants["supply_voltage"]
    demanded = {name: np.abs(fast_square.voltage(name, run)).max() for name, run in runs.items()}
    assert demanded[fast_square.TORQUE] > 1.1 * supply
    assert demanded[fast_square.HELD] <= supply >= demanded[fast_square.FREE]
    torque, held, free = (target.distance(run) for run in runs.values())
    assert held.max() < 0.8 * torque.max()
    assert free.max() < 0.3 * torque.max()
    assert held[-1] < 0.1 < torque[-1]
    angles = {name: fast_square.tilt(target, run).max() for name, run in runs.items()}
    assert angles[fast_square.HELD] < 1 > angles[fast_square.TORQUE]
    assert angles[fast_square.FREE] > 10


@pytest.mark.slow
def test_only_a_predicted_delay_lets_mpc_follow_the_target():
    target = moving_target.circle()
    runs = moving_target.simulate(target)
    largest = {name: moving_target.largest_distance(target, run) for name, run in runs.items()}
    assert largest[moving_target.PREDICTED] < 0.5
    assert largest[moving_target.SOFTER] < 5
    assert min(largest[moving_target.TORQUE], largest[moving_target.IGNORED]) > 20


@pytest.mark.slow
def test_the_arm_reaches_all_targets_without_contact():
    """With gaps in the cost; without them it would go through the wall."""
    runs = obstacles.simulate()
    ends = round(obstacles.STAY / obstacles.PERIOD) * np.arange(1, 4) - 1
    assert (obstacles.target_error(runs[obstacles.AVOIDING])[ends] < 20).all()
    smallest = {name: obstacles.distances(trace).min() for name, trace in runs.items()}
    assert smallest[obstacles.AVOIDING] > 0.005
    assert smallest[obstacles.BLIND] < -0.02


@pytest.mark.slow
def test_the_cube_is_pushed_to_its_place():
    """Within 20 mm, and only by the arm: it stands where it stood until the first contact."""
    run = push.push(push.scene(), 3.0)
    assert run.distance[-1] < 20
    assert run.distance[0] > 250
    touched = int(np.argmax(run.force > 0))
    assert touched > 0
    np.testing.assert_allclose(run.cubes[touched].position, [0.55, 0.12, 0.04], atol=1e-6)
    assert max(cube.position[2] for cube in run.cubes) < 0.5 * push.EDGE + 0.01


def test_delayed_commands_are_those_of_earlier_states():
    arm = load_arm("two_link")
    late, prompt = Delayed(GravityCompensation(arm), 2 * PERIOD), GravityCompensation(arm)
    states = [State.of([0.1 * k, 0.0]) for k in range(4)]
    late.reset(states[0])
    reference = Reference.hold([0.0, 0.0])
    found = [late.update(state, reference, PERIOD).value for state in states]
    expected = [prompt.update(state, reference, PERIOD).value for state in states]
    np.testing.assert_array_equal(found[:2], np.zeros((2, 2)))
    np.testing.assert_array_equal(found[2:], expected[:2])
