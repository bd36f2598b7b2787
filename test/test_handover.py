"""Another law while the arm moves: no step of the torque, and the trajectory goes on."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.config import build_controller
from arm_dynamics.controllers.position import Position
from arm_dynamics.drivers.simulated import Simulated
from arm_dynamics.errors import InvalidValue
from arm_dynamics.handover import LENGTH, Handover
from arm_dynamics.loop import LED, ControlLoop
from arm_dynamics.simulation import Simulation
from arm_dynamics.state import Command
from arm_dynamics.trajectory import parse

ARM = five_dof()
HOME = ARM.pose("initial")
AWAY = HOME + np.array([0.4, 0.3, -0.3, 0.5, 0.4])


def law(name):
    return build_controller(ARM, name)


def running(name, payload=0.3):
    """A loop under way along a trajectory, with a load that the law does not know."""
    simulation = Simulation(ARM.with_payload(payload), known=ARM)
    loop = ControlLoop(Simulated(ARM, simulation), law(name))
    loop.step()
    zero = np.zeros((1, 5))
    loop.follow(parse(ARM, ARM.joint_names, [2.0], [AWAY], zero, zero))
    ticks(loop, 400)
    return loop, simulation


def ticks(loop, count):
    return np.array([loop.step().value for _ in range(count)])


def steps(efforts):
    return np.abs(np.diff(efforts, axis=0)).max(axis=0)


EFFORT_LAWS = ["pid", "gravity_compensation", "pid_gravity"]


@pytest.mark.parametrize("before", EFFORT_LAWS)
@pytest.mark.parametrize("after", EFFORT_LAWS)
def test_the_torque_does_not_step(before, after):
    """Not further in a tick than the laws themselves do, plus the offset's share of a tick."""
    loop, _ = running(before)
    usual = ticks(loop, 20)
    loop.use(law(after))
    first = loop.step().value
    again = np.vstack([usual[-1], first, ticks(loop, 20)])
    np.testing.assert_allclose(first, usual[-1], atol=1e-12)
    offset = 2 * ARM.effort_limit * 2e-3 / LENGTH
    assert (steps(again) <= 5 * steps(usual) + offset).all()


def test_the_trajectory_goes_on_and_is_finished_by_the_new_law():
    loop, simulation = running("pid_gravity", payload=0.0)
    loop.use(law("pid"))
    takeovers = loop.takeovers
    ticks(loop, 1500)
    assert loop.takeovers == takeovers
    assert loop.reference.q.tolist() == AWAY.tolist()
    assert np.abs(simulation.state.q - AWAY).max() < 0.02


def test_an_arm_that_was_led_away_is_held_where_it_is():
    loop, simulation = running("gravity_compensation", payload=0.0)
    ticks(loop, 2000)
    assert np.abs(loop.reference.q - simulation.state.q).max() > LED
    where = simulation.state.q
    takeovers = loop.takeovers
    loop.use(law("pid_gravity"))
    ticks(loop, 2000)
    assert loop.takeovers == takeovers + 1
    assert np.abs(simulation.state.q - where).max() < LED
    assert np.abs(loop.reference.q - where).max() < LED


def test_a_law_with_another_interface_is_refused():
    loop, _ = running("pid_gravity")
    with pytest.raises(InvalidValue, match="commands effort, Position position"):
        loop.use(Position(ARM))


def test_what_remains_of_the_old_law_fades_linearly():
    blend = Handover(np.array([2.0]))
    for time, expected in ((5.0, 2.0), (5.0 + LENGTH / 2, 1.5), (5.0 + LENGTH, 1.0)):
        command = Command.checked("effort", [1.0], 1, stamp=time)
        assert blend.blended(command).value[0] == pytest.approx(expected)
    assert blend.blended(command) is command
