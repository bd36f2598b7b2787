"""A control loop in a thread: approach, moves, rejected values, an arm that is silent."""

import time

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_thread import ControlThread
from arm_dynamics.core.errors import DriverFault, InvalidValue
from arm_dynamics.core.state import State
from arm_dynamics.hardware.simulation_driver import SimulationDriver

FREE = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
"""Displacement without self-collision."""


class Arm(SimulationDriver):
    """Simulated arm that notes its speed and stops to report joint 0 while ``silent``."""

    def __init__(self, arm):
        super().__init__(arm)
        self.silent, self.fastest, self.events = False, 0.0, []

    def read(self):
        state = super().read()
        self.fastest = max(self.fastest, float(np.abs(state.v).max()))
        q = state.q.copy()
        q[0] = np.nan if self.silent else q[0]
        return State(state.time, q, state.v, state.tau, state.act)

    def deactivate(self):
        self.events.append("deactivate")

    def close(self):
        self.events.append("close")


@pytest.fixture
def thread():
    arm = load_arm("so101")
    control = ControlThread(Arm(arm), build_controller(arm), 2e-3, approach_speed=0.5)
    control.start()
    yield control
    control.close()


def follow(control, target, until):
    """Send a target until the measured state satisfies ``until``."""
    for _ in range(100_000):
        control.command(target)
        state = control.state()
        if until(state):
            return state
        time.sleep(0.01)
    raise AssertionError("not reached")


def test_the_first_positions_are_approached_with_the_approach_speed(thread):
    target, start = thread.state().q + 0.4, thread.state().time
    state = follow(thread, target, lambda state: np.abs(state.q - target).max() < 0.1)
    assert state.time - start >= 0.3 / 0.5
    assert thread.loop.driver.fastest < 0.5 * 1.1


def test_after_the_approach_the_limits_are_those_of_the_joints(thread):
    start = thread.state()
    thread.command(start.q)
    thread.command(start.q + FREE)
    follow(thread, start.q + FREE, lambda state: np.abs(state.q - start.q).min() > 0.9)
    assert 2.0 < thread.loop.driver.fastest < 1.05 * thread.loop.arm.velocity_limit.max()


def test_the_first_positions_after_an_interruption_are_approached(thread):
    start = thread.state()
    thread.command(start.q)
    thread.loop.restart_count += 1
    thread.command(start.q + FREE)
    follow(thread, start.q + FREE, lambda state: np.abs(state.q - start.q).min() > 0.5)
    assert thread.loop.driver.fastest < 0.5 * 1.1


def test_a_move_ends_at_its_target(thread):
    target = thread.state().q + np.array([0.2, -0.1, 0.0, 0.1, 0.3, 0.4])
    thread.move(target)
    np.testing.assert_allclose(thread.state().q, target, atol=0.01)
    assert thread.loop.driver.fastest < 0.5 * 1.1


@pytest.mark.parametrize("values", [[0.0], [np.nan, *[0.0] * 5], [np.inf, *[0.0] * 5]])
def test_invalid_positions_are_rejected_and_the_arm_holds(thread, values):
    before = thread.loop.trajectory
    with pytest.raises(InvalidValue, match="positions"):
        thread.command(values)
    assert thread.loop.trajectory is before


def test_positions_that_lead_to_a_contact_are_not_followed_and_the_arm_can_go_back(thread):
    start = thread.state().q
    thread.command(start)
    thread.command(start + 1.0)
    assert "'base_link' and 'wrist_roll_link'" in thread.loop.events.latest["trajectory_rejected"]
    follow(thread, start + 0.5, lambda state: np.abs(state.q - start).min() > 0.4)
    thread.command(start + 1.0)
    follow(thread, start, lambda state: np.abs(state.q - start).max() < 0.1)


def test_a_joint_without_feedback_is_an_error(thread):
    thread.loop.driver.silent = True
    with pytest.raises(DriverFault, match="not finite"):
        follow(thread, thread.loop.state.q, lambda state: False)


def test_an_exception_in_the_thread_is_an_error(thread):
    def broken():
        raise OSError("unplugged")

    thread.loop.driver.read = broken
    with pytest.raises(DriverFault, match="OSError: unplugged"):
        follow(thread, thread.loop.state.q, lambda state: False)


def test_close_disables_commands_and_closes_the_driver(thread):
    thread.close()
    assert thread.loop.driver.events == ["deactivate", "close"]


def test_an_arm_that_is_not_ready_is_closed():
    arm = load_arm("so101")
    driver = Arm(arm)
    driver.silent = True
    with pytest.raises(DriverFault, match="not activated: joint"):
        ControlThread(driver, build_controller(arm), 2e-3).start()
    assert driver.events == ["close"]
