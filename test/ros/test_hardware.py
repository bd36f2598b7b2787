"""The node of a physical arm: its life, its topics, its emergency stop, and what breaks."""

import os
import signal

import numpy as np
import pytest
from browser import Client
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String

from arm_dynamics.ros.publisher_checks import LEASE

from .link import trajectory
from .motors import JOINTS, RATE, Motors

pytestmark = pytest.mark.hardware

ERROR = 2
AWAY = np.array([0.6, -0.4])


@pytest.fixture(scope="module")
def motors(tmp_path_factory):
    """An arm that is read, and whose controller waits."""
    arm = Motors(tmp_path_factory.mktemp("motors"))
    try:
        assert not arm.ask("activate"), "it cannot act before it reads"
        assert arm.ask("configure")
        arm.law = arm.controller()
        yield arm
    finally:
        arm.close()


@pytest.fixture
def shared(motors):
    """For the report of a failure."""
    return motors.ros


@pytest.fixture
def active(motors, shared):
    """The arm under its controller, and inactive again afterwards."""
    if motors.law.code is not None:
        motors.law = motors.controller()
    assert motors.ask("activate"), shared.told("not activated")
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands) > 20, "no commands")
    yield motors
    for name in os.listdir(motors.port):
        motors.mend(name)
    shared.trigger("hardware/reset_emergency_stop")
    motors.ask("deactivate")
    motors.comes_to("inactive")


def moved_to(motors, q, seconds=1.0):
    """The arm where a trajectory of the controller has brought it."""
    rest = np.zeros(2)
    message = trajectory((seconds, q, rest), names=JOINTS)
    motors.ros.publish(message, "joint_controller/joint_trajectory")
    motors.ros.wait_for(
        lambda: np.abs(np.array(motors.states.newest.position) - q).max() < 0.02,
        f"the arm did not get to {q}",
    )


def torque(motors, word):
    """Once the motors themselves say that their torque is on or off."""
    for joint in JOINTS:
        motors.diagnosis(lambda values: values["torque"] == word, joint)


# --- reading


def test_what_is_read_is_published_as_the_simulator_does(motors, shared):
    description = shared.record(String, "robot_description", latched=True)
    state = motors.news()
    assert tuple(state.name) == JOINTS
    assert len(state.position) == len(state.velocity) == len(state.effort) == 2
    shared.wait_for(lambda: len(description), "no robot_description")
    assert description.newest.data == motors.arm.read_text()
    assert motors.life == "inactive"
    torque(motors, "off")


def test_capabilities_are_latched(motors, shared):
    record = shared.record(DiagnosticArray, "capabilities", latched=True)
    shared.wait_for(lambda: len(record), "no capabilities")
    found = {s.name: {p.key: p.value for p in s.values} for s in record.newest.status}
    told = {
        "available_interfaces": "effort",
        "supported_interfaces": "effort, position",
        "effort_source": "measured",
    }
    for values in (found[joint] for joint in JOINTS):
        assert float(values.pop("control period [s]")) >= 0.999 / RATE
        assert 0.0 < float(values.pop("delay [periods]")) <= 2.0
    assert found == dict.fromkeys(JOINTS, told)


def test_commands_move_nothing_while_the_arm_is_only_read(motors, shared):
    before = np.array(motors.news().position)
    for _ in range(10):
        shared.publish(JointState(name=list(JOINTS), effort=[50.0, 50.0]), "joint_commands")
        motors.news()
    shared.leave("joint_commands")  # the controller's turn
    assert np.abs(np.array(motors.news().position) - before).max() < 1e-6


def test_parameters_count_from_configure_on(motors, shared):
    (answer,) = shared.set("hardware", update_rate=100.0)
    assert not answer.successful
    assert "clean up first" in answer.reason


def test_numbers_of_safety_have_units_and_ranges(motors, shared):
    found = shared.describe("hardware")
    timeout = found["safety.command_timeout"]
    assert "[s]" in timeout.description
    assert timeout.floating_point_range[0].from_value > 0
    assert "hold" in found["safety.stop_policy"].description


# --- acting


def test_beside_another_publisher_of_joint_states_the_arm_is_not_activated(motors, shared):
    """Whoever answers the other's states would command this arm."""
    shared.meet(JointState, "joint_states")
    try:
        assert not motors.ask("activate")
        assert motors.life == "inactive"
        told = motors.diagnosis(lambda values: "arm_conflict" in values)["last rejected transition"]
        assert "several publishers on /joint_states: /hardware, /test_listener" in told
        assert f"killed is listed for up to {LEASE} s" in told
        torque(motors, "off")
    finally:
        shared.leave("joint_states")
    shared.wait_for(
        lambda: shared._listener.count_publishers("joint_states") == 1, "it is still there"
    )


def test_torque_on_moves_nothing(motors, shared):
    """Nor does the controller, however long the states stop meanwhile."""
    before = motors.news()
    first = len(motors.states)
    assert motors.ask("activate")
    try:
        shared.wait_for(lambda: len(motors.states) > first + 100, "no states")
        torque(motors, "on")
    finally:
        assert motors.ask("deactivate")
    torque(motors, "off")
    states = motors.states.messages(first)
    moved = np.abs([np.array(s.position) - before.position for s in states])
    assert moved.max() < 1e-3


def test_a_trajectory_is_followed(active):
    moved_to(active, AWAY)
    moved_to(active, np.zeros(2))


def press(motors, how):
    if how == "service":
        assert motors.ros.trigger("hardware/emergency_stop").success
    elif how == "topic":
        motors.ros.publish(Bool(data=True), "emergency_stop")
    elif how == "page":
        with Client(motors.page()) as browser:
            browser.press("EMERGENCY STOP")
    else:
        os.kill(motors.process.pid, signal.SIGUSR1)


@pytest.mark.quick(2)
@pytest.mark.parametrize("how", ["service", "topic", "signal", "page"])
def test_an_emergency_stop_is_latched_until_it_is_reset(active, how):
    shared = active.ros
    press(active, how)
    active.comes_to("inactive")
    torque(active, "off")
    told = active.diagnosis(lambda values: values["level"] == ERROR)
    assert {"page": "topic"}.get(how, how) in told["message"]
    assert not active.ask("activate"), "it is latched"
    shared.publish(Bool(data=False), "emergency_stop")
    active.news()
    assert not active.ask("activate"), "false resets nothing"
    assert shared.trigger("hardware/reset_emergency_stop").success
    assert active.life == "inactive", "a reset alone gives no torque"
    assert active.ask("activate")


def test_a_motor_that_keeps_its_torque_keeps_the_emergency_stop(active):
    active.broken("stubborn")
    press(active, "service")
    answer = active.ros.trigger("hardware/reset_emergency_stop")
    assert not answer.success
    assert answer.message
    active.mend("stubborn")
    torque(active, "off")
    assert active.ros.trigger("hardware/reset_emergency_stop").success


def test_an_arm_whose_controller_is_killed_comes_to_rest(active):
    rest = np.zeros(2)
    message = trajectory((2.0, AWAY, rest), names=JOINTS)
    active.ros.publish(message, "joint_controller/joint_trajectory")
    active.ros.wait_for(
        lambda: np.abs(active.states.newest.velocity).max() > 0.2, "it does not move"
    )
    active.law.kill()
    told = active.diagnosis(lambda values: "command_timeout" in values)
    assert "limit 0.1" in told["last command_timeout"]
    active.ros.wait_for(lambda: np.abs(active.states.newest.velocity).max() < 0.01, "it goes on")
    held = np.array(active.news().position)
    active.ros.wait_for(lambda: len(active.states) > 200, "no states")
    assert np.abs(np.array(active.news().position) - held).max() < 0.01
    assert active.life == "active"


# --- what breaks


def test_a_silent_joint_is_not_shown_as_if_it_were_known(active):
    active.broken("silent-2")
    active.ros.wait_for(lambda: tuple(active.states.newest.name) == ("J1",), "J2 is still shown")
    told = active.diagnosis(lambda values: values["level"] == ERROR, "J2")
    assert "feedback_missing" in told["message"]
    active.mend("silent-2")
    active.ros.wait_for(lambda: tuple(active.states.newest.name) == JOINTS, "J2 stays away")
    active.diagnosis(lambda values: values["level"] < ERROR)


def test_a_fault_of_a_motor_is_named_and_latched(active):
    active.broken("fault-1")
    told = active.diagnosis(lambda values: values["level"] == ERROR, "J1")
    assert "overheating" in told["message"]
    active.mend("fault-1")
    active.diagnosis(lambda values: "J1" in values.get("trip 1", ""))
    assert active.ros.trigger("hardware/reset_emergency_stop").success
    active.diagnosis(lambda values: "trip 1" not in values)


def test_an_unplugged_arm_comes_back_without_a_restart(active):
    active.broken("unplugged")
    told = active.diagnosis(lambda values: values["state"] == "error")
    assert told["level"] == ERROR
    active.comes_to("inactive")
    assert not active.ask("activate")
    active.mend("unplugged")
    active.diagnosis(lambda values: values["state"] == "inactive")
    active.news()
    assert active.ask("activate"), active.ros.told("not activated after it was plugged in again")


def test_interrupted_while_it_acts_it_ends_with_0(active):
    """Last: the node is another one from here on."""
    assert active.process.stop() == 0
    assert "Traceback" not in active.process.output
    active.restart()
    assert active.ask("configure")
