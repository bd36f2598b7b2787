"""Another law while the arm moves: no step of the torque, and the trajectory goes on."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import REFERENCE_THRESHOLD, ControlLoop
from arm_dynamics.control.controller_switch import LENGTH, CommandBlend
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.simulation.simulation import Simulation

ARM = five_dof()
HOME = ARM.configuration("initial")
AWAY = HOME + np.array([0.4, 0.3, -0.3, 0.5, 0.4])


def law(name):
    return build_controller(ARM, name)


def running(name, payload=0.3):
    """A loop under way along a trajectory, with a load that the law does not know."""
    simulation = Simulation(ARM.with_payload(payload), nominal=ARM)
    loop = ControlLoop(SimulationDriver(ARM, simulation), law(name))
    loop.step()
    zero = np.zeros((1, 5))
    loop.follow(parse_trajectory(ARM, ARM.joint_names, [2.0], [AWAY], zero, zero))
    ticks(loop, 400)
    return loop, simulation


def ticks(loop, count):
    return np.array([loop.step().value for _ in range(count)])


def steps(efforts):
    return np.abs(np.diff(efforts, axis=0)).max(axis=0)


OFFSET = 2 * ARM.effort_limit * 2e-3 / LENGTH
"""Largest step of a tick that comes from the change itself."""


@pytest.mark.quick(3)
@pytest.mark.parametrize("before", ["pid", "gravity_compensation", "pid_gravity"])
@pytest.mark.parametrize("after", ["pid", "pid_gravity", "computed_torque", "impedance"])
def test_the_torque_does_not_step(before, after):
    """Not further in a tick than the law before did, plus a tick's share of the difference."""
    loop, _ = running(before)
    usual = ticks(loop, 20)
    loop.switch_controller(law(after))
    again = np.vstack([usual[-1], ticks(loop, 20)])
    assert (steps(again[:2]) <= 3 * steps(usual) + 1e-9).all()
    assert (steps(again) <= 5 * steps(usual) + OFFSET).all()


def test_a_change_during_a_change_waits_for_its_end():
    """Whatever is told meanwhile: the newest counts, and no tick has a step."""
    loop, _ = running("pid")
    usual = ticks(loop, 20)
    efforts = [usual[-1]]
    for name in ("gravity_compensation", "pid", "gravity_compensation", "computed_torque"):
        loop.switch_controller(law(name))
        efforts.extend(ticks(loop, 15))
    assert type(loop.controller).__name__ == "GravityCompensation"  # the first, still fading in
    efforts.extend(ticks(loop, 600))
    assert type(loop.controller).__name__ == "ComputedTorque"
    assert (steps(np.vstack(efforts)) <= 5 * steps(usual) + OFFSET).all()


def test_gains_during_a_change_are_those_of_the_newest_controller():
    loop, _ = running("pid_gravity")
    loop.switch_controller(law("pid"))
    ticks(loop, 5)
    newest = law("pid_gravity")
    loop.switch_controller(newest)
    loop.fit.take({name: {"ff_acceleration_scale": 0.5} for name in ARM.joint_names})
    assert newest.values["R1"]["ff_acceleration_scale"] == 0.5
    ticks(loop, 600)
    assert loop.controller is newest


def test_the_trajectory_goes_on_and_is_finished_by_the_new_law():
    loop, simulation = running("pid_gravity", payload=0.0)
    loop.switch_controller(law("pid"))
    takeovers = loop.restart_count
    ticks(loop, 1500)
    assert loop.restart_count == takeovers
    assert loop.reference.q.tolist() == AWAY.tolist()
    assert np.abs(simulation.state.q - AWAY).max() < 0.02


def test_an_arm_that_was_led_away_is_held_where_it_is():
    loop, simulation = running("gravity_compensation", payload=0.0)
    ticks(loop, 2000)
    assert np.abs(loop.reference.q - simulation.state.q).max() > REFERENCE_THRESHOLD
    where = simulation.state.q
    takeovers = loop.restart_count
    loop.switch_controller(law("pid_gravity"))
    ticks(loop, 2000)
    assert loop.restart_count == takeovers + 1
    assert np.abs(simulation.state.q - where).max() < REFERENCE_THRESHOLD
    assert np.abs(loop.reference.q - where).max() < REFERENCE_THRESHOLD


def test_a_law_with_another_interface_is_refused():
    loop, _ = running("pid_gravity")
    with pytest.raises(InvalidValue, match="commands effort, PositionController position"):
        loop.switch_controller(PositionController(ARM))


class Constant(Controller):
    """Always the same."""

    value = 0.0

    def update(self, state, reference, dt):
        return Command("effort", np.full(5, self.value), state.time)


def constant(value):
    made = Constant(ARM)
    made.value = value
    return made


def at(time):
    return State.of(HOME, np.zeros(5), time=time)


def test_one_law_fades_linearly_into_the_other():
    blend, rest = CommandBlend(constant(2.0), 5.0), Reference.hold(HOME)
    for time, expected in ((5.0, 2.0), (5.0 + LENGTH / 2, 1.5), (5.0 + LENGTH, 1.0)):
        after = Command.checked("effort", np.ones(5), 5, stamp=time)
        blended = blend.blended(after, at(time), rest, 2e-3)
        np.testing.assert_allclose(blended.value, expected)
    assert blended is after


def test_a_law_that_has_failed_is_left_at_once():
    blend = CommandBlend(constant(np.nan), 5.0)
    after = Command.checked("effort", np.ones(5), 5, stamp=5.1)
    assert blend.blended(after, at(5.1), Reference.hold(HOME), 2e-3) is after


def test_the_new_law_s_first_update_is_its_first():
    loop, _ = running("pid_gravity")
    seen = []

    class Watched(PidGravity):
        def update(self, state, reference, dt):
            seen.append(dt)
            return super().update(state, reference, dt)

    new = Watched(ARM)
    seen.clear()
    loop.switch_controller(new)
    ticks(loop, 3)
    assert seen == pytest.approx([0.0, 2e-3, 2e-3])
