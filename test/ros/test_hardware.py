"""Hardware node: lifecycle, topics, emergency stop and faults."""

import os
import re
import signal
from pathlib import Path

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
    """Start an inactive arm with a waiting controller."""
    arm = Motors(tmp_path_factory.mktemp("motors"))
    try:
        assert not arm.ask("activate"), "activated before configure"
        assert arm.ask("configure")
        arm.controller_process = arm.controller()
        yield arm
    finally:
        arm.close()


@pytest.fixture
def shared(motors):
    """Return the domain whose output is shown after a failure."""
    return motors.ros


@pytest.fixture
def active(motors, shared):
    """Activate the arm with its controller; deactivate it afterwards."""
    if motors.controller_process.code is not None:
        motors.controller_process = motors.controller()
    assert motors.ask("activate"), shared.report("not activated")
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands) > 20, "no commands")
    yield motors
    for name in os.listdir(motors.port):
        motors.mend(name)
    shared.trigger("hardware/reset_emergency_stop")
    motors.ask("deactivate")
    motors.comes_to("inactive")


def moved_to(motors, q, seconds=1.0):
    """Send a trajectory to ``q`` and wait until the arm is there."""
    rest = np.zeros(2)
    message = trajectory((seconds, q, rest), names=JOINTS)
    motors.ros.publish(message, "joint_controller/joint_trajectory")
    motors.ros.wait_for(
        lambda: np.abs(np.array(motors.states.newest.position) - q).max() < 0.02,
        f"the arm did not get to {q}",
    )


def wait_for_torque(motors, word):
    """Wait until the motors report ``torque`` = ``word``."""
    for joint in JOINTS:
        motors.diagnosis(lambda values: values["torque"] == word, joint)


# --- reading


def test_states_are_published_as_by_the_simulator(motors, shared):
    description = shared.record(String, "robot_description", latched=True)
    state = motors.news()
    assert tuple(state.name) == JOINTS
    assert len(state.position) == len(state.velocity) == len(state.effort) == 2
    shared.wait_for(lambda: len(description), "no robot_description")
    assert description.newest.data == motors.arm.read_text()
    assert motors.life == "inactive"
    wait_for_torque(motors, "off")


def test_capabilities_are_latched(motors, shared):
    record = shared.record(DiagnosticArray, "capabilities", latched=True)
    shared.wait_for(lambda: len(record), "no capabilities")
    found = {s.name: {p.key: p.value for p in s.values} for s in record.newest.status}
    status = {
        "available_interfaces": "effort",
        "supported_interfaces": "effort, position",
        "effort_source": "measured",
    }
    for values in (found[joint] for joint in JOINTS):
        assert float(values.pop("control period [s]")) >= 0.999 / RATE
        assert 0.0 < float(values.pop("delay [periods]")) <= 2.0
    assert found == dict.fromkeys(JOINTS, status)


def test_commands_move_nothing_while_inactive(motors, shared):
    before = np.array(motors.news().position)
    for _ in range(10):
        shared.publish(JointState(name=list(JOINTS), effort=[50.0, 50.0]), "joint_commands")
        motors.news()
    shared.leave("joint_commands")  # the controller must be the only publisher
    assert np.abs(np.array(motors.news().position) - before).max() < 1e-6


def test_parameters_are_fixed_after_configure(motors, shared):
    (answer,) = shared.set("hardware", update_rate=100.0)
    assert not answer.successful
    assert "clean up first" in answer.reason


def test_safety_parameters_have_units_and_ranges(motors, shared):
    found = shared.describe("hardware")
    timeout = found["safety.command_timeout"]
    assert "[s]" in timeout.description
    assert timeout.floating_point_range[0].from_value > 0
    assert "hold" in found["safety.stop_policy"].description


# --- acting


def test_another_publisher_of_joint_states_prevents_activation(motors, shared):
    """A controller of the other arm's states would command this arm."""
    shared.meet(JointState, "joint_states")
    try:
        assert not motors.ask("activate")
        assert motors.life == "inactive"
        status = motors.diagnosis(lambda values: "arm_conflict" in values)[
            "last rejected transition"
        ]
        assert "several publishers on /joint_states: /hardware, /test_listener" in status
        assert f"killed is listed for up to {LEASE} s" in status
        wait_for_torque(motors, "off")
    finally:
        shared.leave("joint_states")
    shared.wait_for(
        lambda: shared._listener.count_publishers("joint_states") == 1, "the publisher still exists"
    )


def test_enabling_torque_moves_nothing(motors, shared):
    """The controller does not move the arm either after the pause of the states."""
    before = motors.news()
    first = len(motors.states)
    assert motors.ask("activate")
    try:
        shared.wait_for(lambda: len(motors.states) > first + 100, "no states")
        wait_for_torque(motors, "on")
    finally:
        assert motors.ask("deactivate")
    wait_for_torque(motors, "off")
    states = motors.states.messages(first)
    moved = np.abs([np.array(s.position) - before.position for s in states])
    assert moved.max() < 1e-3


def test_a_trajectory_moves_the_arm(active):
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
    wait_for_torque(active, "off")
    status = active.diagnosis(lambda values: values["level"] == ERROR)
    assert {"page": "topic"}.get(how, how) in status["message"]
    assert not active.ask("activate"), "it is latched"
    shared.publish(Bool(data=False), "emergency_stop")
    active.news()
    assert not active.ask("activate"), "false resets nothing"
    assert shared.trigger("hardware/reset_emergency_stop").success
    assert active.life == "inactive", "a reset alone gives no torque"
    assert active.ask("activate")


def test_the_emergency_stop_stays_latched_while_a_motor_has_torque(active):
    active.broken("stubborn")
    press(active, "service")
    answer = active.ros.trigger("hardware/reset_emergency_stop")
    assert not answer.success
    assert answer.message
    active.mend("stubborn")
    wait_for_torque(active, "off")
    assert active.ros.trigger("hardware/reset_emergency_stop").success


def test_the_arm_of_a_killed_controller_comes_to_rest(active):
    rest = np.zeros(2)
    message = trajectory((2.0, AWAY, rest), names=JOINTS)
    active.ros.publish(message, "joint_controller/joint_trajectory")
    active.ros.wait_for(lambda: np.abs(active.states.newest.velocity).max() > 0.2, "no motion")
    active.controller_process.kill()
    status = active.diagnosis(lambda values: "command_timeout" in values)
    assert "limit 0.1" in status["last command_timeout"]
    active.ros.wait_for(lambda: np.abs(active.states.newest.velocity).max() < 0.01, "no rest")
    held = np.array(active.news().position)
    active.ros.wait_for(lambda: len(active.states) > 200, "no states")
    assert np.abs(np.array(active.news().position) - held).max() < 0.01
    assert active.life == "active"


# --- faults


def test_a_joint_without_feedback_is_not_published(active):
    active.broken("silent-2")
    active.ros.wait_for(lambda: tuple(active.states.newest.name) == ("J1",), "J2 is still shown")
    status = active.diagnosis(lambda values: values["level"] == ERROR, "J2")
    assert "feedback_missing" in status["message"]
    active.mend("silent-2")
    active.ros.wait_for(lambda: tuple(active.states.newest.name) == JOINTS, "J2 stays away")
    active.diagnosis(lambda values: values["level"] < ERROR)


def test_a_motor_fault_is_reported_and_latched(active):
    active.broken("fault-1")
    status = active.diagnosis(lambda values: values["level"] == ERROR, "J1")
    assert "overheating" in status["message"]
    active.mend("fault-1")
    active.diagnosis(lambda values: "J1" in values.get("trip 1", ""))
    assert active.ros.trigger("hardware/reset_emergency_stop").success
    active.diagnosis(lambda values: "trip 1" not in values)


def test_an_unplugged_arm_reconnects(active):
    active.broken("unplugged")
    status = active.diagnosis(lambda values: values["state"] == "error")
    assert status["level"] == ERROR
    active.comes_to("inactive")
    assert not active.ask("activate")
    active.mend("unplugged")
    active.diagnosis(lambda values: values["state"] == "inactive")
    active.news()
    assert active.ask("activate"), active.ros.report("not activated after it was plugged in again")


def ignores(pid, number):
    """Return whether a process ignores a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(re.search(r"SigIgn:\s*(\w+)", status)[1], 16) >> (number - 1) & 1)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["SIGQUIT", "SIGHUP", "SIGINT"])
def test_a_signal_while_active_ends_with_0_and_torque_disabled(active, name):
    """Last test of the fixture, because it restarts the node."""
    assert ignores(active.process.pid, signal.SIGTSTP), "Ctrl-Z would stop the loop"
    active.is_disabled = False
    active.process.signal(getattr(signal, name))
    assert active.process.wait() == 0, active.ros.report("")
    assert "Traceback" not in active.process.output
    assert active.is_disabled
    active.restart()
    assert active.ask("configure")
