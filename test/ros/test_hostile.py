"""A domain in which somebody sends bytes that are no message, commands too, or too much."""

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
from arm_dynamics.ros.publisher_checks import PUBLISHER_TIMEOUT
from arm_dynamics.ros.serialization import POINTS
from arm_dynamics.ros.size_limits import ITEMS, TEXT

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


def damaged(kind):
    """Nothing, a part, more than there is, other bytes, and stamps that are no time."""
    good, ones = bytes(serialize_message(kind())), b"\xff" * 4
    stamps = [good[:8] + ones + good[12:], good[:4] + ones + good[8:]] * (kind is not Bool)
    if kind is Clock:  # of which the newest alone counts
        return stamps
    # Nothing comes last: a reliable reader of Fast DDS takes no more of this writer afterwards.
    return [2 * ones, good[:6], good[:12] + 2 * ones, 10 * ones, *stamps, b""]


def attack(ros, topics):
    """Send them all, from publishers that are then gone."""
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    found = {topic: ros._caller.create_publisher(SENT[topic], topic, latched) for topic in topics}
    for topic, publisher in found.items():
        ros.wait_for(lambda p=publisher: p.get_subscription_count() > 0, f"no one hears {topic}")
    time.sleep(INTRODUCTION)
    for topic, publisher in found.items():
        for data in damaged(SENT[topic]):
            with suppress(RCLError):  # what no publisher of this type can send
                publisher.publish(data)
    time.sleep(INTRODUCTION)
    for publisher in found.values():
        ros._caller.destroy_publisher(publisher)


def bad_parameter(ros, node):
    """A request that rclpy's own service raises for: nobody answers it."""
    request = SetParameters.Request(
        parameters=[Parameter(name="update_rate", value=ParameterValue(type=200))]
    )
    ros.client(SetParameters, f"{node}/set_parameters").call_async(request)


def rejections(kind):
    return lambda values: int(values.get(kind, 0)) >= 1


# --- a simulated arm, two controllers and a page


@pytest.fixture(scope="module")
def domain():
    """A simulator, the controller that came first, one that came second, and a page."""
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
    """For the report of a failure."""
    return domain


def alive(ros):
    assert [p.code for p in (ros.arm, ros.first, ros.second, ros.page)] == [None] * 4, ros.told("")


def test_a_second_controller_is_rejected_by_name_and_the_first_is_obeyed(domain):
    found = domain.diagnosis("simulator", rejections("commander_rejected"))
    assert f"{TOOL} is rejected" in found["last commander_rejected"]
    assert f"{CONTROLLER} came first" in found["last commander_rejected"]
    assert found["level"] == 1
    assert CONTROLLER in found["message"]
    assert TOOL in found["message"]
    assert float(found["commands per second"]) > 0
    moves(domain, INITIAL + 0.2)


def moves(ros, q):
    ros.publish(trajectory((0.5, q, np.zeros(5))), "joint_controller/joint_trajectory")
    ros.wait_for(
        lambda: np.abs(np.array(ros.arm_states.newest.position) - q).max() < 0.02, "it did not move"
    )


def test_damaged_bytes_on_every_topic_end_no_node(domain):
    """While time stands: the next stamp of a running clock replaces one that was not taken yet."""
    assert domain.pause().success
    attack(domain, SENT)
    assert domain.pause(False).success
    alive(domain)
    for node, kind in (
        ("simulator", "command_rejected"),
        ("simulator", "emergency_stop_rejected"),
        ("joint_controller", "state_rejected"),
        ("joint_controller", "trajectory_rejected"),
        ("joint_controller", "reference_rejected"),
        ("joint_controller", "callback_failed"),  # rclpy's own clock
        ("task_space_controller", "target_rejected"),
        ("task_space_controller", "state_rejected"),
    ):
        found = domain.diagnosis(node, rejections(kind), f"{node} counted no {kind}")
        assert found[f"last {kind}"]
    moves(domain, INITIAL)


def test_a_request_that_the_middleware_cannot_handle_ends_no_node(domain):
    for node in ("simulator", "joint_controller", "task_space_controller"):
        bad_parameter(domain, node)
        words = "200 is not a valid Parameter.Type"
        domain.diagnosis(
            node, lambda values, words=words: words in values.get("last callback_failed", "")
        )
        assert domain.set(node, update_rate=1.0)  # it answers
    alive(domain)


def too_many(count):
    message = trajectory((1.0, INITIAL))
    message.points = message.points * count
    return message


def test_trajectories_of_too_many_points_are_rejected_with_the_number(domain):
    """As a message and as a goal; more of them than anybody converts while others wait."""
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


def test_another_simulator_is_noticed_by_controllers_and_by_the_first(domain):
    other = domain.start("simulator")
    try:
        found = domain.diagnosis("joint_controller", rejections("state_publisher_rejected"))
        assert "/simulator came first" in found["last state_publisher_rejected"]
        words = "/clock: /simulator, /simulator"
        domain.diagnosis("simulator", lambda values: words in values["message"])
    finally:
        assert other.stop() == 0
    moves(domain, INITIAL)


@pytest.mark.slow
def test_when_the_first_controller_is_killed_the_second_takes_over_without_a_jump(domain):
    """Its process stays in ROS's graph for 20 s; nobody waits as long."""
    states = domain.arm_states
    domain.wait_for(lambda: np.abs(states.newest.velocity).max() < 1e-3, "no rest")
    started, before = time.monotonic(), len(states)
    domain.first.kill()
    found = domain.diagnosis("simulator", lambda v: "commander_changed" in v)
    assert f"{TOOL} counts; {CONTROLLER} is silent" in found["last commander_changed"]
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
        assert arm.ask("configure")
        arm.controller("position" if request.param == "position" else "pid_gravity")
        commands = arm.ros.record(JointState, "joint_commands")
        assert arm.ask("activate")
        arm.ros.wait_for(lambda: len(commands) > 100, "no commands")
        yield arm
    finally:
        arm.close()


@contextmanager
def rival(motors):
    """A second commander, which sends without being asked, at 200 Hz."""
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
def test_neither_bytes_nor_a_second_commander_take_a_physical_arms_torque(motors):
    """Nor where the node stands still for longer than a commander may be silent."""
    before = np.array(motors.news().position)
    attack(motors.ros, ("joint_commands", "voltage_commands", "emergency_stop", "joint_states"))
    bad_parameter(motors.ros, "hardware")
    for kind in ("command_rejected", "emergency_stop_rejected", "callback_failed"):
        motors.diagnosis(lambda values, k=kind: k in values)
    first = len(motors.states)
    with rival(motors):
        found = motors.diagnosis(rejections("commander_rejected"))
        assert "/test_listener is rejected" in found["last commander_rejected"]
        assert "/joint_controller" in found["last commander_rejected"]
        os.kill(motors.process.pid, signal.SIGSTOP)
        time.sleep(1.2 * PUBLISHER_TIMEOUT)
        os.kill(motors.process.pid, signal.SIGCONT)
        seen = len(motors.states)
        motors.ros.wait_for(lambda: len(motors.states) > seen + 200, "no joint_states")
        found = motors.diagnosis(lambda values: float(values["commands per second"]) > 0)
    assert found["state"] == "active", motors.ros.told(str(found))
    assert "commander_changed" not in found, motors.ros.told(str(found))
    assert motors.life == "active"
    q = np.array([m.position for m in motors.states.messages(first)])
    moved = np.abs(q - before).max()
    assert moved < 0.02, motors.ros.told(f"moved by {moved} rad")
    assert motors.process.code is None
