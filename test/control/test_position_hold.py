"""Position servos under load: interruptions cause no sag; an arm moved by hand is held."""

from dataclasses import replace

import numpy as np
import pytest
from motor_rig import RATIO, SAFETY, START, Rig, arm

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import MAX_STATE_GAP, ControlLoop
from arm_dynamics.control.reference_generator import PositionHold
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver, DriverState
from arm_dynamics.safety.controlled_stop import SAG

pytestmark = pytest.mark.hardware

PATIENT = replace(SAFETY, motor_watchdog_timeout=1.0, recovery_cycles=5)
"""Motor watchdog that does not trip during a gap of states."""
PERIOD = 8e-3
GAP, SETTLING = round(1.2 * MAX_STATE_GAP / PERIOD), 30
"""Number of cycles without states or commands; number of cycles until the servos rest."""
TIMES = 20


class TopicView(Driver):
    """Interface of a controller over topics: only states and the command epoch."""

    def __init__(self, driver):
        super().__init__(driver.arm)
        self.driver, self.extra_interfaces = driver, driver.extra_interfaces

    @property
    def command_epoch(self):
        return self.driver.command_epoch

    def read(self):
        return self.driver.read()

    def write(self, command):
        self.driver.write(command)

    def idle(self):
        self.driver.idle()


def soft_servos(stiffness=600.0):
    """Return servos activated at START that deflect by 27 mrad under gravity."""
    rig = Rig("position", PATIENT, step=1e-3)
    gear = np.square(RATIO)
    rig.line.K = dict(enumerate((stiffness / gear).tolist(), 1))
    rig.line.D = dict(enumerate((stiffness / 30 / gear).tolist(), 1))
    return rig.up()


def steps(rig, loop, count):
    for _ in range(count):
        rig.bus.pass_time(PERIOD)
        loop.step()


def idle_cycles(rig, count):
    """Run cycles of the driver without commands."""
    for _ in range(count):
        rig.bus.pass_time(PERIOD)
        rig.driver.read()
        rig.driver.idle()


def looped(driver):
    return ControlLoop(driver, build_controller(arm(), "position"))


def no_states(rig, loop):
    """Interrupt the replies of all motors."""
    for shaft in rig.shafts:
        shaft.silent = True
    steps(rig, loop, GAP)
    for shaft in rig.shafts:
        shaft.silent = False
    return loop


def no_loop(rig, loop):
    """Interrupt the whole host."""
    rig.bus.pass_time(GAP * PERIOD)
    return loop


def no_commands(rig, loop):
    """Interrupt the loop; the driver's cycles continue."""
    idle_cycles(rig, GAP)
    return loop


def failed_goal(rig, loop):
    """Stop as after a goal that violates its tolerance."""
    loop.stop_from_state(loop.state)
    return loop


def another_loop(rig, loop):
    """Restart the controller."""
    idle_cycles(rig, GAP)
    return looped(loop.driver)


CASES = [
    *((interrupt, False) for interrupt in (no_states, no_loop, failed_goal, another_loop)),
    *((interrupt, True) for interrupt in (no_states, no_loop, no_commands)),
]


@pytest.mark.quick(2)
@pytest.mark.parametrize(("interrupt", "seen"), CASES)
def test_interruptions_cause_no_sag_of_a_loaded_servo(interrupt, seen):
    rig = soft_servos()
    loop = looped(TopicView(rig.driver) if seen else rig.driver)
    steps(rig, loop, 6 * SETTLING)
    sag = rig.body.state.q - START
    assert 0.02 < np.abs(sag).max() < (SAG if not seen else 2 * SAG)
    before = rig.body.state.q.copy()
    for _ in range(TIMES):
        loop = interrupt(rig, loop)
        steps(rig, loop, SETTLING)
        assert rig.driver.status is DriverState.ACTIVE, rig.driver.trips
    assert np.abs(rig.body.state.q - before).max() < 1e-3
    assert interrupt in (failed_goal, another_loop, no_commands) or loop.restart_count > TIMES


def test_activation_deflects_a_servo_once():
    """The loop starts after torque is enabled, when the load has already deflected the servo."""
    rig = soft_servos()
    stands = rig.driver.held.copy()
    np.testing.assert_allclose(stands, START, atol=1e-6)
    idle_cycles(rig, SETTLING)
    loop = looped(rig.driver)
    steps(rig, loop, SETTLING)
    np.testing.assert_array_equal(rig.driver.held, stands)
    np.testing.assert_array_equal(loop.reference.q, stands)


@pytest.mark.parametrize("seen", [False, True], ids=["driver", "topics"])
@pytest.mark.parametrize("how", ["deactivated", "emergency stop"])
@pytest.mark.parametrize("distance", [0.05, 0.4])
def test_an_arm_moved_by_hand_is_held_at_its_configuration(how, distance, seen):
    rig = soft_servos()
    loop = looped(TopicView(rig.driver) if seen else rig.driver)
    steps(rig, loop, SETTLING)
    there = np.add(START, (-distance, distance, -distance))
    rig.body.hold_at(there)  # torque is still enabled: the hands release immediately
    if how == "deactivated":
        rig.driver.deactivate()
    else:
        rig.driver.emergency_stop("test")
        steps(rig, loop, 3)
        assert rig.torque == [False] * 3
        rig.driver.reset()
    rig.body.hold_at(there)
    steps(rig, loop, GAP)
    rig.driver.activate()
    np.testing.assert_allclose(rig.driver.held, there, atol=1e-3)
    steps(rig, loop, 2 * SETTLING)
    bent = np.abs(rig.body.state.q - there)
    assert bent.max() < (0.04 if not seen else 0.07)


def test_the_held_position():
    """q_goal if abs(q_goal - q) <= SAG for every joint, else q."""
    hold, q = PositionHold(), np.array([0.1, -0.2])
    state = State.of(q)
    assert hold.holding_state(state, None) is state
    hold.note(Command("position", np.add(q, (0.9 * SAG, -0.9 * SAG))))
    np.testing.assert_array_equal(
        hold.holding_state(state, None).q, np.add(q, (0.9 * SAG, -0.9 * SAG))
    )
    np.testing.assert_array_equal(hold.holding_state(state, q + 0.01).q, q + 0.01)
    assert hold.holding_state(state, np.add(q, (0.0, 1.1 * SAG))) is state
    hold.note(Command("position", np.add(q, (0.0, 1.1 * SAG))))
    assert hold.holding_state(state, None) is state
    hold.note(Command("position", q))
    hold.note(Command("effort", q))
    assert hold.holding_state(state, None) is state
    hold.note(Command("position", q + 0.01))
    hold.reset()
    assert hold.holding_state(state, None) is state
