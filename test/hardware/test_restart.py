"""Bumpless restarts: stops, constant stamps, resets, references of other sources."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.safety.command_watchdog import Guard
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation

HOME = five_dof().configuration("initial")


def controlled(controller="pid_gravity", payload=0.0):
    arm = five_dof()
    simulation = Simulation(arm.with_payload(payload), nominal=arm)
    return simulation, ControlLoop(
        SimulationDriver(arm, simulation), build_controller(arm, controller)
    )


@pytest.mark.parametrize("controller", ["pid", "pid_gravity"])
@pytest.mark.parametrize("payload", [0.0, 0.5])
def test_the_transfer_from_the_controlled_stop_is_bumpless(controller, payload):
    simulation, loop = controlled(controller, payload)
    for _ in range(500):
        simulation.advance()
    q, tau = simulation.state.q, simulation.state.tau
    np.testing.assert_allclose(loop.step().value, tau, atol=1e-9)
    for _ in range(1000):
        loop.step()
        assert np.abs(simulation.state.q - q).max() < 1e-3


def test_an_unknown_effort_starts_the_integral_at_zero():
    controller = Pid(five_dof())
    state = State.of(HOME)
    assert np.isnan(state.tau).all()
    controller.reset(state)
    np.testing.assert_array_equal(controller.update(state, Reference.hold(HOME), 0.002).value, 0.0)


def test_the_initial_integral_is_clamped():
    gains = {
        name: {"p": 1.0, "i": 1.0, "d": 0.0, "i_clamp": 2.0} for name in five_dof().joint_names
    }
    controller = Pid(five_dof(), gains)
    state = State.of(HOME, tau=[50.0, -50.0, 1.0, 0.0, 0.0])
    controller.reset(state)
    value = controller.update(state, Reference.hold(HOME), 0.0).value
    np.testing.assert_allclose(value, [2.0, -2.0, 1.0, 0.0, 0.0])


class ConstantStampDriver(Driver):
    """Driver whose arm moves while its stamps are constant."""

    idled = 0

    def read(self):
        q = np.array(HOME)
        q[1] += 0.001 * self.idled
        return State.of(q)

    def write(self, command):
        self.idled += 1

    def idle(self):
        self.idled += 1


def test_a_moving_arm_with_a_constant_stamp_gets_no_command():
    loop = ControlLoop(ConstantStampDriver(five_dof()), build_controller(five_dof()))
    assert loop.step() is not None
    assert loop.step() is None
    assert "unchanged while the arm moved" in loop.events.latest["state_rejected"]


def test_after_a_reset_the_loop_restarts_from_the_measured_state():
    simulation, loop = controlled()
    for _ in range(10):
        loop.step()
    goal = np.array([0.4, -0.7, 0.1, 0.3, 0.2])
    simulation.reset(goal)
    for _ in range(500):
        loop.step()
    np.testing.assert_allclose(simulation.state.q, goal, atol=1e-4)
    assert "position jump" in loop.events.latest["control_restarted"]


def test_a_trajectory_received_during_a_gap_is_discarded_and_reported():
    simulation, loop = controlled()
    loop.step()
    loop.follow(parse_trajectory(simulation.arm, simulation.arm.joint_names, [9.0], [HOME + 0.1]))
    for _ in range(200):
        simulation.advance()
    loop.step()
    loop.step()
    np.testing.assert_allclose(loop.reference.q, loop.state.q, atol=0.01)
    assert "trajectory discarded" in loop.events.latest["trajectory_rejected"]


def test_a_trajectory_received_at_a_restart_is_followed():
    """Set by another thread that read the loop's state before the restart."""
    simulation, loop = controlled()
    loop.step()
    goal = parse_trajectory(simulation.arm, simulation.arm.joint_names, [9.0], [HOME + 0.1])
    begin, loop.reference_generator.start = (
        loop.reference_generator.start,
        lambda case: (begin(case), post(goal)),
    )
    post = loop.reference_generator.queue
    simulation.reset(HOME + np.array([0.5, 0, 0, 0, 0]))
    loop.step()
    loop.reference_generator.start = begin
    loop.step()
    assert loop.trajectory.end == 9.0


def test_two_references_within_a_cycle_both_count():
    _, loop = controlled()
    loop.step()
    loop.hold({"R2": -1.0})
    loop.hold({"R5": 0.2})
    loop.step()
    np.testing.assert_allclose(loop.reference.q, [0, -1.0, 0.3, 0, 0.2])


def test_a_trajectory_of_another_clock_is_rejected():
    simulation, loop = controlled()
    loop.step()
    names = simulation.arm.joint_names
    far = parse_trajectory(simulation.arm, names, [1.0], [HOME], start=1.7e9)
    with pytest.raises(TrajectoryRejected, match=r"3600 s ahead.*another clock"):
        loop.follow(far)


def test_voltages_are_clamped_to_the_supply_and_reported():
    events = Events()
    guard = Guard(five_dof(), events)
    command = guard.check_command(Command.checked("voltage", [0, 30.0, 0, 0, -12], 5))
    assert command.value.tolist() == [0, 12, 0, 0, -12]
    assert "'R2': voltage 30 V clamped to the limit 12" in events.latest["voltage_clamped"]


def test_a_checked_command_is_read_only():
    value = np.zeros(5)
    command = Guard(five_dof(), Events()).check_command(Command("effort", value))
    value[:] = np.nan
    assert not command.value.any()


def test_damping_unstable_with_the_time_step_is_rejected_by_name():
    arm = five_dof().with_joint("R4", damping=10.0)
    with pytest.raises(InvalidValue, match=r"'R4': damping = 1\d.*expected below 5\.8"):
        Plant(arm).require_stable(HOME, 1e-4)
    Plant(five_dof()).require_stable(HOME, 1e-4)


def test_the_controlled_stop_uses_a_changed_gravity():
    simulation = Simulation(five_dof())
    simulation.set_arm(five_dof().with_gravity([0, 0, 9.81]))
    for _ in range(500):
        simulation.advance()
    np.testing.assert_allclose(simulation.state.q, HOME, atol=0.02)
