"""Hardware node: lifecycle, topics, emergency stop and faults."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from browser import Client
from control_msgs.action import FollowJointTrajectory
from controller_manager_msgs import srv
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String

from arm_dynamics.ros.topics.publisher_checks import LEASE

from .link import trajectory
from .motors import JOINTS, RATE, Motors

pytestmark = pytest.mark.hardware

ERROR = 2
AWAY = np.array([0.6, -0.4])
MOVED = 0.01
"""Change of a position [rad] that only a trajectory causes."""
INACTIVE = "hardware inactive, torque disabled"
ACTION = "joint_controller/follow_joint_trajectory"
KINDS = {
    "list_controllers": "ListControllers",
    "list_controller_types": "ListControllerTypes",
    "load_controller": "LoadController",
    "unload_controller": "UnloadController",
    "switch_controller": "SwitchController",
    "reload_controller_libraries": "ReloadControllerLibraries",
}


@pytest.fixture(scope="module")
def motors(tmp_path_factory):
    """Start an inactive arm with a waiting controller."""
    arm = Motors(tmp_path_factory.mktemp("motors"))
    try:
        assert not arm.change_state("activate"), "activated before configure"
        assert arm.change_state("configure")
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
    motors.activate()
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands) > 20, "no commands")
    yield motors
    for name in os.listdir(motors.port):
        motors.mend(name)
    shared.trigger("hardware/reset_emergency_stop")
    motors.change_state("deactivate")
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
        "inactive": INACTIVE,
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


def slow(seconds=30.0):
    """Return a trajectory that takes longer than a test."""
    return trajectory((seconds, AWAY, np.zeros(2)), names=JOINTS)


REFERENCES = {
    "joint_trajectory": (slow(), "trajectory_rejected"),
    "commands": (Float64MultiArray(data=[0.1, 0.1]), "command_rejected"),
    "reference": (JointState(name=list(JOINTS), position=[0.1, 0.1]), "reference_rejected"),
}


def test_goals_and_references_are_rejected_while_inactive(motors, shared):
    """Without constraints a goal would succeed while nothing moves."""
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands), "no controller")
    client = shared.action(FollowJointTrajectory, ACTION)
    message = FollowJointTrajectory.Goal(trajectory=slow(1.0))
    assert not shared.answer(client.send_goal_async(message)).accepted
    values = shared.diagnosis("joint_controller", lambda v: "goal_rejected" in v)
    assert values["last goal_rejected"] == f"INVALID_GOAL: not active: {INACTIVE}"
    for topic, (reference, event) in REFERENCES.items():
        shared.publish(reference, f"joint_controller/{topic}")
        values = shared.diagnosis("joint_controller", lambda v, event=event: event in v)
        assert values[f"last {event}"].endswith(INACTIVE)


def listed(shared):
    """Return the only listed controller."""
    response = shared.call(srv.ListControllers, "controller_manager/list_controllers")
    (controller,) = response.controller
    assert controller.name == "joint_controller"
    assert controller.type == "joint_trajectory_controller/JointTrajectoryController"
    required = [f"{joint}/{kind}" for joint in JOINTS for kind in ("position", "velocity")]
    assert controller.required_state_interfaces == required
    assert controller.required_command_interfaces == [f"{joint}/effort" for joint in JOINTS]
    return controller


def test_the_controller_manager_is_found_as_by_rqt_and_is_read_only(motors, shared):
    """rqt_joint_trajectory_controller requires six services with these types."""
    listed(shared)
    found = dict(shared._caller.get_service_names_and_types())
    for name, kind in KINDS.items():
        assert found[f"/controller_manager/{name}"] == [f"controller_manager_msgs/srv/{kind}"]
    switch = srv.SwitchController.Request(activate_controllers=["joint_controller"])
    answer = shared.call(srv.SwitchController, "controller_manager/switch_controller", switch)
    assert not answer.ok
    assert "read-only" in answer.message
    for name in ("load_controller", "unload_controller", "reload_controller_libraries"):
        assert not shared.call(getattr(srv, KINDS[name]), f"controller_manager/{name}").ok
    types = shared.call(srv.ListControllerTypes, "controller_manager/list_controller_types")
    assert types.types == ["joint_trajectory_controller/JointTrajectoryController"]


def test_the_controller_is_inactive_while_torque_is_disabled(motors, shared):
    controller = listed(shared)
    assert controller.state == "inactive"
    assert controller.claimed_interfaces == []


def test_a_manager_of_another_node_replaces_the_services(motors, shared):
    name, node = "controller_manager/list_controllers", shared._listener
    shared.client(srv.ListControllers, name)
    other = node.create_service(srv.ListControllers, name, lambda _, response: response)
    try:
        switch = "/controller_manager/switch_controller"
        shared.wait_for(lambda: not node.count_services(switch), "still served")
        assert node.count_services(name) == 1
    finally:
        node.destroy_service(other)
    shared.wait_for(lambda: node.count_services(switch), "not served again")


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
        assert not motors.change_state("activate")
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
    motors.activate()
    try:
        shared.wait_for(lambda: len(motors.states) > first + 100, "no states")
        wait_for_torque(motors, "on")
    finally:
        assert motors.change_state("deactivate")
    wait_for_torque(motors, "off")
    states = motors.states.messages(first)
    moved = np.abs([np.array(s.position) - before.position for s in states])
    assert moved.max() < 1e-3


def test_the_controller_is_active_until_an_emergency_stop(active):
    controller = listed(active.ros)
    assert controller.state == "active"
    assert controller.claimed_interfaces == [f"{joint}/effort" for joint in JOINTS]
    press(active, "service")
    active.ros.wait_for(lambda: listed(active.ros).state == "inactive", "still active")


def test_a_trajectory_moves_the_arm(active):
    moved_to(active, AWAY)
    moved_to(active, np.zeros(2))


ENDS = {
    "deactivate": (lambda motors: motors.change_state("deactivate"), INACTIVE),
    "emergency stop": (
        lambda motors: press(motors, "service"),
        f"{INACTIVE}: emergency stop by service",
    ),
    "trip": (lambda motors: motors.broken("fault-1"), "joint 'J1': motor_fault"),
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("how", ENDS)
def test_a_goal_is_aborted_with_the_cause_when_commands_are_no_longer_executed(active, how):
    shared, (stop, cause) = active.ros, ENDS[how]
    client = shared.action(FollowJointTrajectory, ACTION)
    message = FollowJointTrajectory.Goal(trajectory=slow())
    handle = shared.answer(client.send_goal_async(message))
    assert handle.accepted, shared.report("rejected")
    stop(active)
    result = shared.answer(handle.get_result_async()).result
    assert result.error_code == FollowJointTrajectory.Result.INVALID_GOAL
    assert result.error_string.startswith("interrupted: hardware ")
    assert cause in result.error_string


def test_a_trajectory_does_not_continue_after_a_deactivation(active):
    active.ros.publish(slow(5.0), "joint_controller/joint_trajectory")
    active.ros.wait_for(lambda: np.abs(active.states.newest.velocity).max() > 0.05, "no motion")
    assert active.change_state("deactivate")
    active.ros.diagnosis("joint_controller", lambda v: v.get("last control_restarted") == INACTIVE)
    first = active.news()
    active.activate()
    seen = len(active.states)
    active.ros.wait_for(lambda: len(active.states) > seen + 100, "no states")
    moved = np.array(active.news().position) - first.position
    assert np.abs(moved).max() < 0.01


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
    assert not active.change_state("activate"), "it is latched"
    shared.publish(Bool(data=False), "emergency_stop")
    active.news()
    assert not active.change_state("activate"), "false resets nothing"
    assert shared.trigger("hardware/reset_emergency_stop").success
    assert active.life == "inactive", "a reset alone gives no torque"
    active.activate()


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
    client = active.ros.action(FollowJointTrajectory, ACTION)
    message = FollowJointTrajectory.Goal(trajectory=slow())
    handle = active.ros.answer(client.send_goal_async(message))
    active.broken("unplugged")
    result = active.ros.answer(handle.get_result_async()).result
    assert result.error_code == FollowJointTrajectory.Result.INVALID_GOAL
    assert result.error_string.startswith("interrupted: hardware error: connection_lost")
    status = active.diagnosis(lambda values: values["state"] == "error")
    assert status["level"] == ERROR
    active.comes_to("inactive")
    assert not active.change_state("activate")
    active.mend("unplugged")
    active.diagnosis(lambda values: values["state"] == "inactive")
    active.news()
    active.activate()


def ignores(pid, number):
    """Return whether a process ignores a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(re.search(r"SigIgn:\s*(\w+)", status)[1], 16) >> (number - 1) & 1)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["SIGQUIT", "SIGHUP", "SIGINT"])
def test_a_signal_while_active_ends_with_0_and_torque_disabled(active, name):
    """Last test of ``active``, because it restarts the node."""
    assert ignores(active.process.pid, signal.SIGTSTP), "Ctrl-Z would stop the loop"
    active.is_disabled = False
    active.process.signal(getattr(signal, name))
    assert active.process.wait() == 0, active.ros.report("")
    assert "Traceback" not in active.process.output
    assert active.is_disabled
    active.restart()
    assert active.change_state("configure")


def test_a_goal_ends_when_its_killed_arm_is_silent(motors, shared):
    """Last test of the file, because other nodes list the killed one for up to LEASE."""

    def count(values, event):
        return int(values.get(event, 0))

    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands), "no controller")
    before = shared.diagnosis("joint_controller", lambda v: True)
    motors.activate()
    restarts = count(before, "control_restarted")
    shared.diagnosis("joint_controller", lambda v: count(v, "control_restarted") > restarts)
    client = shared.action(FollowJointTrajectory, ACTION)
    start = np.array(motors.states.newest.position)

    def has_moved():
        return np.abs(np.array(motors.states.newest.position) - start).max() > MOVED

    for _ in range(5):  # a machine that stands still ends a goal before the arm moves
        goal = FollowJointTrajectory.Goal(trajectory=slow())
        handle = shared.answer(client.send_goal_async(goal))
        assert handle.accepted
        end = handle.get_result_async()
        shared.wait_for(lambda end=end: end.done() or has_moved(), "no motion")
        if has_moved():
            break
    assert has_moved()
    motors.process.kill()
    result = shared.answer(handle.get_result_async()).result
    assert result.error_code == FollowJointTrajectory.Result.INVALID_GOAL
    # A machine that stands still while the arm moves ends the goal before the arm is killed.
    assert re.match("interrupted: no (joint states for 1 s|state for)", result.error_string)
    # An earlier test may have left the arm silent for 1 s: counts since the start of this one.
    missing = count(before, "states_missing")
    status = shared.diagnosis("joint_controller", lambda v: count(v, "states_missing") > missing)
    assert status["last states_missing"] == "no joint states for 1 s"
    assert count(status, "states_missing") == missing + 1
