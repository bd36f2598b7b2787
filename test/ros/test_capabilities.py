"""Controllers that the motors do not support are rejected with the cause and the alternatives."""

import time

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.control.control_loop import MAX_STATE_GAP
from arm_dynamics.ros.topics.topic_driver import MAX_COMMAND_GAP

from .link import GAINS, INITIAL, Motion, trajectory
from .link import JOINTS as FIVE
from .motors import JOINTS, Motors

AWAY = np.array([0.3, -0.2])
OTHERS = "arm_controller/joint_trajectory"
ERROR = 2
TICK = 2e-6
"""Resolution of differences of times since 1970 [s]."""


@pytest.fixture(scope="module")
def positions(tmp_path_factory):
    """Start an active arm with position-controlled motors."""
    arm = Motors(tmp_path_factory.mktemp("positions"), command_interface="position")
    try:
        assert arm.change_state("configure")
        arm.activate()
        yield arm
    finally:
        arm.close()


@pytest.fixture
def controller(positions):
    """Return a function that starts controllers; undo all effects of a failed test."""
    started = []

    def start(name):
        started.append(positions.controller(name))
        return started[-1]

    yield start
    for node in started:
        node.kill()
    for fault in ("soft", "silent-1", "silent-2"):
        (positions.port / fault).unlink(missing_ok=True)
    if positions.life != "active":
        positions.ros.trigger("hardware/reset_emergency_stop")
        positions.activate()


@pytest.fixture
def shared(positions):
    """Return the domain whose output is shown after a failure."""
    return positions.ros


def test_an_effort_controller_does_not_command_position_motors(positions, shared):
    commands = shared.record(JointState, "joint_commands")
    node = positions.controller("pid_gravity")
    status = shared.diagnosis(
        "joint_controller",
        lambda values: values["level"] == ERROR and "controller_incompatible" in values,
    )
    for word in (
        "of PidGravity = effort",
        "joint 'J1' accepts position",
        "accepted controllers: position",
    ):
        assert word in status["message"]
    before, seen = len(commands), len(positions.states)
    shared.wait_for(lambda: len(positions.states) > seen + 100, "no states")
    assert len(commands) == before
    status = shared.diagnosis("joint_controller", lambda values: values["level"] == ERROR)
    assert status["controller_incompatible"] == "1", "reported again for the same cause"
    assert node.stop() == 0


def test_a_position_controller_moves_position_motors_and_rejects_a_switch(positions, shared):
    node = positions.controller("position")
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands) > 20, "no commands")
    message = trajectory((1.0, AWAY, np.zeros(2)), names=JOINTS)
    shared.publish(message, "joint_controller/joint_trajectory")
    states = positions.states
    shared.wait_for(lambda: np.abs(np.array(states.newest.position) - AWAY).max() < 0.01, "away")
    (answer,) = shared.set("joint_controller", controller="pid")
    assert not answer.successful
    assert "joint 'J1' accepts position; accepted controllers: position" in answer.reason
    assert node.stop() == 0


def test_position_commands_are_published_as_trajectory_points(positions, shared):
    """The velocity of each point is its position change divided by the time between two states."""
    states, first = positions.states, len(positions.states)
    points = shared.record(JointTrajectory, OTHERS)
    bridge = positions.start(
        "joint_controller", controller="position", output="joint_trajectory", output_topic=OTHERS
    )
    shared.wait_for(lambda: len(points) > 50, "no points")
    message = trajectory((0.5, AWAY / 2, np.zeros(2)), names=JOINTS)
    shared.publish(message, "joint_controller/joint_trajectory")
    shared.wait_for(
        lambda: np.allclose(points.newest.points[0].positions, AWAY / 2), "target not reached"
    )
    rows = [m.points[0] for m in points.messages()]
    q = np.array([p.positions for p in rows])
    v = np.array([p.velocities for p in rows])
    dt = np.array([p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in rows])
    assert {tuple(m.joint_names) for m in points.messages()} == {JOINTS}
    stamps = Motion(states.messages(first)).t
    assert np.diff(stamps).min() - TICK < dt.min() <= dt.max() < MAX_COMMAND_GAP + TICK
    assert dt.sum() < stamps[-1] - stamps[0] + MAX_COMMAND_GAP
    assert np.abs(v[1:] * dt[1:, None] - np.diff(q, axis=0)).max() < 1e-6
    assert np.abs(v).max() > 0.1, "no motion"
    assert bridge.stop() == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"output": "joint_trajectory"}, "command interface = effort; expected position"),
        ({"output": "smoke"}, "one of joint_commands, joint_trajectory"),
    ],
)
def test_an_output_incompatible_with_the_controller_ends_the_node(positions, parameters, words):
    process = positions.start("joint_controller", controller="pid_gravity", **parameters)
    assert process.wait() == 2
    assert words in process.output


# --- the simulator has the same interface


def test_the_simulator_publishes_its_interfaces_and_rejects_position_commands(ros):
    states = ros.states()
    ros.start("simulator")
    ros.start("joint_controller", controller="position")
    status = ros.diagnosis("joint_controller", lambda values: values["level"] == ERROR)
    assert "PositionController = position; joint 'R1' accepts effort, voltage" in status["message"]
    assert "pid_gravity" in status["message"]
    ros.wait_for(lambda: len(states), "no joint_states")
    assert tuple(states.newest.name) == FIVE


def test_an_emergency_stop_stops_simulated_time(ros):
    states = ros.states()
    ros.start("simulator")
    ros.wait_until(states, 0.1)
    ros.publish(Bool(data=True), "emergency_stop")
    status = ros.diagnosis("simulator", lambda values: values["level"] == ERROR)
    assert status["message"] == "emergency stop by topic emergency_stop"
    count = len(states)
    assert ros.pause(False).success, "only the reset continues the simulation"
    ros.diagnosis("simulator", lambda values: values["level"] == ERROR)
    assert len(states) == count
    assert ros.trigger("simulator/reset_emergency_stop").success
    ros.wait_longer(states, 0.1)


@pytest.mark.parametrize("nodes", [["simulator", "joint_controller"], ["composed"]])
def test_an_emergency_stop_of_the_simulator_ends_goals_and_trajectories(ros, nodes):
    states = ros.states()
    for node in nodes:
        ros.start(node, GAINS)
    ros.wait_until(states, 0.1)
    client = ros.action(FollowJointTrajectory, "joint_controller/follow_joint_trajectory")
    away = FollowJointTrajectory.Goal(trajectory=trajectory((30.0, INITIAL + 0.1), names=FIVE))
    handle = ros.answer(client.send_goal_async(away))
    assert handle.accepted
    assert ros.trigger("simulator/emergency_stop").success
    result = ros.answer(handle.get_result_async()).result
    assert result.error_code == result.INVALID_GOAL
    assert result.error_string.startswith("interrupted: emergency stop by service")
    assert not ros.answer(client.send_goal_async(away)).accepted
    values = ros.diagnosis("joint_controller", lambda v: "goal_rejected" in v)
    assert "emergency stop by service" in values["last goal_rejected"]
    ros.publish(trajectory((1.0, INITIAL), names=FIVE), "joint_controller/joint_trajectory")
    values = ros.diagnosis("joint_controller", lambda v: "trajectory_rejected" in v)
    assert "emergency stop by service" in values["last trajectory_rejected"]
    assert ros.trigger("simulator/reset_emergency_stop").success
    stopped = np.array(states.newest.position)
    ros.wait_longer(states, 1.0)
    assert np.abs(states.newest.position - stopped).max() < 2e-3
    assert ros.answer(client.send_goal_async(away)).accepted


def stands(shared, positions):
    """Return the configuration of the arm after it is commanded again and at rest."""
    commands = len(positions.commands)
    shared.wait_for(lambda: len(positions.commands) > commands + 20, "not commanded")
    shared.wait_for(lambda: np.abs(positions.news().velocity).max() < 1e-4, "no rest")
    return np.array(positions.news().position)


SETTLED = 5e-3
"""Position error [rad] of a joint that still settles; one that sinks moves by 0.02 rad or more."""


@pytest.mark.slow
def test_position_motors_do_not_sink_at_interruptions(positions, shared, controller):
    """After a gap of states and after a restart the controller uses the last position commands."""
    node = controller("position")
    positions.commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(positions.commands) > 20, "no commands")
    message = trajectory((1.0, AWAY, np.zeros(2)), names=JOINTS)
    shared.publish(message, "joint_controller/joint_trajectory")
    states = positions.states
    shared.wait_for(lambda: np.abs(np.array(states.newest.position) - AWAY).max() < 0.01, "away")
    positions.broken("soft")
    shared.wait_for(lambda: np.abs(np.array(states.newest.position) - AWAY).max() > 0.02, "rigid")
    before = stands(shared, positions)
    for _ in range(3):
        for id in (1, 2):
            positions.broken(f"silent-{id}")
        seen = len(states)
        shared.wait_for(
            lambda: time.time() - stamp(states.newest) > 2 * MAX_STATE_GAP, "states continue"
        )
        for id in (1, 2):
            positions.mend(f"silent-{id}")
        shared.wait_for(lambda seen=seen: len(states) > seen + 50, "no states")
        np.testing.assert_allclose(stands(shared, positions), before, atol=SETTLED)
    assert node.stop() == 0
    node = controller("position")
    np.testing.assert_allclose(stands(shared, positions), before, atol=SETTLED)
    assert positions.change_state("deactivate")
    positions.activate()
    after = stands(shared, positions)  # activation at the measured position adds one more error
    np.testing.assert_allclose(after - before, before - AWAY, rtol=0.2, atol=2e-3)
    positions.mend("soft")
    assert node.stop() == 0


def stamp(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


@pytest.mark.slow
def test_a_small_stability_margin_is_logged_before_motion(ros):
    """A control period of 4 ms is too long for gains that are stable with 1 ms."""
    for rate, is_thin in ((1000, False), (250, True)):
        simulator = ros.start("simulator", arm="two_link", update_rate=float(rate), lockstep=True)
        node = ros.start("joint_controller", arm="two_link", controller="pid_gravity")
        ros.diagnosis("joint_controller", lambda values: values["message"] == "running")
        found = "margin < " in node.output and f"period of {1 / rate:g} s" in node.output
        assert found is is_thin
        assert node.stop() == simulator.stop() == 0
