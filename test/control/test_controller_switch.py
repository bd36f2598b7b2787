"""Controller switching during motion: bumpless transfer, and the trajectory continues."""

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


def controller(name):
    return build_controller(ARM, name)


def moving_loop(name, payload=0.3):
    """Return a loop on a trajectory, with an unmodeled payload."""
    simulation = Simulation(ARM.with_payload(payload), nominal=ARM)
    loop = ControlLoop(SimulationDriver(ARM, simulation), controller(name))
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
"""Largest change of the effort per cycle caused by the blend."""


@pytest.mark.quick(3)
@pytest.mark.parametrize("before", ["pid", "gravity_compensation", "pid_gravity"])
@pytest.mark.parametrize("after", ["pid", "pid_gravity", "computed_torque", "impedance"])
def test_switching_is_bumpless(before, after):
    """The effort changes no more per cycle than before, plus the blend of the difference."""
    loop, _ = moving_loop(before)
    usual = ticks(loop, 20)
    loop.switch_controller(controller(after))
    again = np.vstack([usual[-1], ticks(loop, 20)])
    assert (steps(again[:2]) <= 3 * steps(usual) + 1e-9).all()
    assert (steps(again) <= 5 * steps(usual) + OFFSET).all()


def test_a_switch_during_a_blend_is_queued():
    """Of several requests the newest is executed; the effort has no step."""
    loop, _ = moving_loop("pid")
    usual = ticks(loop, 20)
    efforts = [usual[-1]]
    for name in ("gravity_compensation", "pid", "gravity_compensation", "computed_torque"):
        loop.switch_controller(controller(name))
        efforts.extend(ticks(loop, 15))
    assert (
        type(loop.controller).__name__ == "GravityCompensation"
    )  # the first one, during its blend
    efforts.extend(ticks(loop, 600))
    assert type(loop.controller).__name__ == "ComputedTorque"
    assert (steps(np.vstack(efforts)) <= 5 * steps(usual) + OFFSET).all()


def test_gains_set_during_a_blend_apply_to_the_newest_controller():
    loop, _ = moving_loop("pid_gravity")
    loop.switch_controller(controller("pid"))
    ticks(loop, 5)
    newest = controller("pid_gravity")
    loop.switch_controller(newest)
    loop.gain_scaling.take({name: {"ff_acceleration_scale": 0.5} for name in ARM.joint_names})
    assert newest.values["R1"]["ff_acceleration_scale"] == 0.5
    ticks(loop, 600)
    assert loop.controller is newest


def test_the_new_controller_completes_the_trajectory():
    loop, simulation = moving_loop("pid_gravity", payload=0.0)
    loop.switch_controller(controller("pid"))
    restarts = loop.restart_count
    ticks(loop, 1500)
    assert loop.restart_count == restarts
    assert loop.reference.q.tolist() == AWAY.tolist()
    assert np.abs(simulation.state.q - AWAY).max() < 0.02


def test_an_arm_moved_by_hand_is_held_at_its_configuration():
    loop, simulation = moving_loop("gravity_compensation", payload=0.0)
    ticks(loop, 2000)
    assert np.abs(loop.reference.q - simulation.state.q).max() > REFERENCE_THRESHOLD
    where = simulation.state.q
    restarts = loop.restart_count
    loop.switch_controller(controller("pid_gravity"))
    ticks(loop, 2000)
    assert loop.restart_count == restarts + 1
    assert np.abs(simulation.state.q - where).max() < REFERENCE_THRESHOLD
    assert np.abs(loop.reference.q - where).max() < REFERENCE_THRESHOLD


def test_a_controller_with_another_interface_is_rejected():
    loop, _ = moving_loop("pid_gravity")
    with pytest.raises(InvalidValue, match="commands effort, PositionController position"):
        loop.switch_controller(PositionController(ARM))


class ConstantEffort(Controller):
    """Controller with a constant effort."""

    value = 0.0

    def update(self, state, reference, dt):
        return Command("effort", np.full(5, self.value), state.time)


def constant(value):
    made = ConstantEffort(ARM)
    made.value = value
    return made


def at(time):
    return State.of(HOME, np.zeros(5), time=time)


def test_the_blend_is_linear():
    blend, rest = CommandBlend(constant(2.0), 5.0), Reference.hold(HOME)
    for time, expected in ((5.0, 2.0), (5.0 + LENGTH / 2, 1.5), (5.0 + LENGTH, 1.0)):
        after = Command.checked("effort", np.ones(5), 5, stamp=time)
        blended = blend.blended(after, at(time), rest, 2e-3)
        np.testing.assert_allclose(blended.value, expected)
    assert blended is after


def test_the_blend_ends_immediately_if_the_old_controller_fails():
    blend = CommandBlend(constant(np.nan), 5.0)
    after = Command.checked("effort", np.ones(5), 5, stamp=5.1)
    assert blend.blended(after, at(5.1), Reference.hold(HOME), 2e-3) is after


def test_the_new_controller_is_updated_once_per_cycle_from_the_switch():
    loop, _ = moving_loop("pid_gravity")
    seen = []

    class Recorded(PidGravity):
        def update(self, state, reference, dt):
            seen.append(dt)
            return super().update(state, reference, dt)

    new = Recorded(ARM)
    seen.clear()
    loop.switch_controller(new)
    ticks(loop, 3)
    assert seen == pytest.approx([0.0, 2e-3, 2e-3])
