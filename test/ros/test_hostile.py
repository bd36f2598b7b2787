"""Nodes in a domain with invalid bytes, a second commander and oversized requests."""

import os
import signal
import time
from contextlib import contextmanager, suppress
from threading import Event, Thread

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy._rclpy_pybind11 import RCLError
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from arm_dynamics.model.load import load_arm
from arm_dynamics.ros.messages.serialization import POINTS
from arm_dynamics.ros.runtime.size_limits import ITEMS, TEXT
from arm_dynamics.ros.topics.publisher_checks import PUBLISHER_TIMEOUT

from .link import GAINS, INITIAL, INTRODUCTION, Ros, joint_state, trajectory
from .motors import Motors

CONTROLLER, TOOL = "/joint_controller", "/task_space_controller"
SENT = {
    "joint_commands": JointState,
    "voltage_commands": Float64MultiArray,
    "joint_states": JointState,
    "/clock": Clock,
    "emergency_stop": Bool,
    "capabilities": DiagnosticArray,
    "/diagnostics": DiagnosticArray,
    "joint_controller/joint_trajectory": JointTrajectory,
    "joint_controller/reference": JointState,
    "joint_controller/tracking": JointTrajectory,
    "task_space_controller/target_pose": PoseStamped,
    "task_space_controller/target_twist": TwistStamped,
    "task_space_controller/target_wrench": WrenchStamped,
    "task_space_controller/path": Path,
    "task_space_controller/trajectory": MultiDOFJointTrajectory,
}


def damaged_messages(kind):
    """Return empty, truncated, over-long and random bytes, and messages with invalid stamps."""
    good, ones = bytes(serialize_message(kind())), b"\xff" * 4
    stamps = [good[:8] + ones + good[12:], good[:4] + ones + good[8:]] * (kind is not Bool)
    if kind is Clock:  # only its newest message is read
        return stamps
    # The empty message is the last: after it a reliable reader of Fast DDS ignores this writer.
    return [2 * ones, good[:6], good[:12] + 2 * ones, 10 * ones, *stamps, b""]


def attack(ros, topics):
    """Send all damaged messages from publishers that are then destroyed."""
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    found = {topic: ros._caller.create_publisher(SENT[topic], topic, latched) for topic in topics}
    for topic, publisher in found.items():
        ros.wait_for(lambda p=publisher: p.get_subscription_count() > 0, f"{topic}: no subscriber")
    time.sleep(INTRODUCTION)
    for topic, publisher in found.items():
        for data in damaged_messages(SENT[topic]):
            with suppress(RCLError):  # bytes that a publisher of this type cannot send
                publisher.publish(data)
    time.sleep(INTRODUCTION)
    for publisher in found.values():
        ros._caller.destroy_publisher(publisher)


def bad_parameter(ros, node):
    """Send a request for which the service of rclpy raises and sends no reply."""
    request = SetParameters.Request(
        parameters=[Parameter(name="update_rate", value=ParameterValue(type=200))]
    )
    ros.client(SetParameters, f"{node}/set_parameters").call_async(request)


def rejections(kind, name=""):
    """Return whether diagnostics count rejections, the last one of ``name``, once discovered."""
    return lambda values: int(values.get(kind, 0)) >= 1 and name in values[f"last {kind}"]


# --- a simulated arm, two controllers and a page


@pytest.fixture(scope="module")
def domain():
    """Start a simulator, a first and a second controller, and a viewer."""
    ros = Ros()
    try:
        ros.arm = ros.start("simulator", lockstep=True)
        ros.first = ros.start("joint_controller", GAINS, use_sim_time=True)
        ros.arm_states, commands = ros.states(), ros.record(JointState, "joint_commands")
        ros.wait_for(lambda: len(commands) > 100, "no commands")
        ros.second = ros.start("task_space_controller", GAINS)
        ros.page = ros.start("viewer", port=0)
        ros.wait_for(lambda: commands.publishers == 2, "one commander")
        ros.wait_for(lambda: "http" in ros.page.output, "no page")
        yield ros
    finally:
        ros.close()


@pytest.fixture
def shared(domain):
    """Return the domain whose output is shown after a failure."""
    return domain


def alive(ros):
    assert [p.code for p in (ros.arm, ros.first, ros.second, ros.page)] == [None] * 4, ros.report(
        ""
    )


def test_a_second_controller_is_rejected_and_the_first_stays_active(domain):
    found = domain.diagnosis("simulator", rejections("commander_rejected", TOOL))
    assert f"{TOOL} is rejected" in found["last commander_rejected"]
    assert f"{CONTROLLER} is the accepted publisher" in found["last commander_rejected"]
    assert found["level"] == 1
    assert CONTROLLER in found["message"]
    assert TOOL in found["message"]
    assert float(found["commands per second"]) > 0
    moves(domain, INITIAL + 0.2)


def moves(ros, q):
    ros.publish(trajectory((0.5, q, np.zeros(5))), "joint_controller/joint_trajectory")
    ros.wait_for(
        lambda: np.abs(np.array(ros.arm_states.newest.position) - q).max() < 0.02, "no motion"
    )


def test_damaged_bytes_on_every_topic_end_no_node(domain):
    """The simulator is paused, because a running clock would replace unread invalid stamps."""
    assert domain.pause().success
    attack(domain, SENT)

    def clock_failed():
        """Repeat invalid stamps: the paused simulator also repeats its clock and replaces them."""
        attack(domain, ["/clock"])
        return "callback_failed" in domain.diagnosis("joint_controller", lambda values: values)

    domain.wait_for(clock_failed, "joint_controller counted no callback_failed")  # of rclpy's clock
    assert domain.pause(False).success
    alive(domain)
    for node, kind in (
        ("simulator", "command_rejected"),
        ("simulator", "emergency_stop_rejected"),
        ("joint_controller", "state_rejected"),
        ("joint_controller", "trajectory_rejected"),
        ("joint_controller", "reference_rejected"),
        ("task_space_controller", "target_rejected"),
        ("task_space_controller", "state_rejected"),
    ):
        found = domain.diagnosis(node, rejections(kind), f"{node} counted no {kind}")
        assert found[f"last {kind}"]
    moves(domain, INITIAL)


def test_an_invalid_parameter_type_ends_no_node(domain):
    for node in ("simulator", "joint_controller", "task_space_controller"):
        bad_parameter(domain, node)
        words = "200 is not a valid Parameter.Type"
        domain.diagnosis(
            node, lambda values, words=words: words in values.get("last callback_failed", "")
        )
        assert domain.set(node, update_rate=1.0)  # the node replies
    alive(domain)


def too_many(count):
    message = trajectory((1.0, INITIAL))
    message.points = message.points * count
    return message


def test_trajectories_of_too_many_points_are_rejected_with_the_number(domain):
    """Messages and goals with too many points are rejected before they are converted."""
    domain.publish(too_many(POINTS + 1), "joint_controller/joint_trajectory")
    words = f"points = {POINTS + 1}; expected at most {POINTS}"
    domain.diagnosis(
        "joint_controller", lambda values: words in values.get("last trajectory_rejected", "")
    )
    client = domain.action(FollowJointTrajectory, "joint_controller/follow_joint_trajectory")
    goal = FollowJointTrajectory.Goal(trajectory=too_many(5 * POINTS))
    assert not domain.answer(client.send_goal_async(goal)).accepted
    words = f"INVALID_GOAL: points = {5 * POINTS}; expected at most {POINTS}"
    found = domain.diagnosis("joint_controller", lambda values: "goal_rejected" in values)
    assert words in found["last goal_rejected"]
    moves(domain, INITIAL - 0.1)


def test_requests_that_are_too_large_are_rejected_with_the_number(domain):
    names = GetParameters.Request(names=["arm"] * ITEMS)
    service = "simulator/get_parameters"
    assert len(domain.call(GetParameters, service, names).values) == ITEMS
    names.names.append("arm")
    assert not domain.call(GetParameters, service, names).values
    words = f"get_parameters: names: items = {ITEMS + 1}; expected at most {ITEMS}"
    domain.diagnosis("simulator", lambda values: words in values.get("last request_rejected", ""))
    value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="x" * TEXT)
    request = SetParametersAtomically.Request(
        parameters=[Parameter(name="update_rate", value=value)]
    )
    service = "joint_controller/set_parameters_atomically"
    answer = domain.call(SetParametersAtomically, service, request).result
    assert not answer.successful
    assert f"characters = {TEXT + len('update_rate')}; expected at most {TEXT}" in answer.reason
    alive(domain)


def test_a_second_simulator_is_reported(domain):
    other = domain.start("simulator")
    try:
        found = domain.diagnosis("joint_controller", rejections("state_publisher_rejected"))
        assert "/simulator is the accepted publisher" in found["last state_publisher_rejected"]
        words = "/clock: /simulator, /simulator"
        domain.diagnosis("simulator", lambda values: words in values["message"])
    finally:
        assert other.stop() == 0
    moves(domain, INITIAL)


@pytest.mark.slow
def test_the_second_controller_succeeds_a_killed_first_one_without_a_step(domain):
    """The killed process stays in the ROS graph for 20 s; the switch is faster."""
    states = domain.arm_states

    def rests():
        """Return whether the last states are at the target, also those that arrived late."""
        last = states.messages(len(states) - 100)
        return all(
            np.abs(np.array(m.position) - INITIAL).max() < 0.01 and np.abs(m.velocity).max() < 1e-3
            for m in last
        )

    domain.wait_for(rests, "no rest")
    started, before = time.monotonic(), len(states)
    domain.first.kill()
    found = domain.diagnosis("simulator", lambda v: "commander_changed" in v)
    assert f"{TOOL} is accepted; {CONTROLLER} is silent" in found["last commander_changed"]
    assert time.monotonic() - started < 10 * PUBLISHER_TIMEOUT
    domain.wait_longer(domain.arm_states, 1.0)
    q = np.array([m.position for m in domain.arm_states.messages(before, every=5)])
    assert np.abs(q - q[0]).max() < 0.02
    assert float(domain.diagnosis("simulator", lambda v: v)["commands per second"]) > 0


# --- a physical arm


@pytest.fixture(scope="module", params=["position", "effort"])
def motors(tmp_path_factory, request):
    arm = Motors(tmp_path_factory.mktemp("motors"), command_interface=request.param)
    limits = load_arm(arm.arm).effort_limit
    arm.rival = {"position": {"position": [1.0, -1.0]}, "effort": {"effort": limits}}[request.param]
    try:
        assert arm.change_state("configure")
        arm.controller("position" if request.param == "position" else "pid_gravity")
        commands = arm.ros.record(JointState, "joint_commands")
        arm.activate()
        arm.ros.wait_for(lambda: len(commands) > 100, "no commands")
        yield arm
    finally:
        arm.close()


@contextmanager
def rival(motors):
    """Run a second commander that sends at 200 Hz without receiving states."""
    publisher = motors.ros.meet(JointState, "joint_commands")
    message, ending = joint_state(("J1", "J2"), **motors.rival), Event()

    def send():
        while not ending.wait(5e-3):
            publisher.publish(message)

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@pytest.mark.quick(1)
def test_invalid_bytes_and_a_second_commander_do_not_disable_torque(motors):
    """The same holds after the node was suspended for longer than the publisher time-out."""
    before = np.array(motors.news().position)
    attack(motors.ros, ("joint_commands", "voltage_commands", "emergency_stop", "joint_states"))
    bad_parameter(motors.ros, "hardware")
    for kind in ("command_rejected", "emergency_stop_rejected", "callback_failed"):
        motors.diagnosis(lambda values, k=kind: k in values)
    first = len(motors.states)
    with rival(motors):
        found = motors.diagnosis(rejections("commander_rejected", "/test_listener"))
        assert "/test_listener is rejected" in found["last commander_rejected"]
        assert "/joint_controller" in found["last commander_rejected"]
        os.kill(motors.process.pid, signal.SIGSTOP)
        time.sleep(1.2 * PUBLISHER_TIMEOUT)
        os.kill(motors.process.pid, signal.SIGCONT)
        seen = len(motors.states)
        motors.ros.wait_for(lambda: len(motors.states) > seen + 200, "no joint_states")
        found = motors.diagnosis(
            lambda values: float(values["commands per second"]) > 0 and values["state"] == "active"
        )
    assert "commander_changed" not in found, motors.ros.report(str(found))
    assert motors.life == "active"
    own = [m.position for m in motors.states.messages(first) if len(m.position) == before.size]
    moved = np.abs(np.array(own) - before).max()  # without damaged messages that arrived late
    assert moved < 0.02, motors.ros.report(f"moved by {moved} rad")
    assert motors.process.code is None
