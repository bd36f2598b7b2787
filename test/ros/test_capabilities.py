"""A law that an arm's motors cannot follow is refused, with the reason and the laws that work."""

import time

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.control.control_loop import MAX_STATE_GAP
from arm_dynamics.ros.topic_driver import MAX_COMMAND_GAP

from .link import JOINTS as FIVE
from .link import Motion, trajectory
from .motors import JOINTS, Motors

AWAY = np.array([0.3, -0.2])
OTHERS = "arm_controller/joint_trajectory"
ERROR = 2
TICK = 2e-6
"""What differences of times since 1970 are good for [s]."""


@pytest.fixture(scope="module")
def positions(tmp_path_factory):
    """An arm whose motors are commanded by positions, active."""
    arm = Motors(tmp_path_factory.mktemp("positions"), command_interface="position")
    try:
        assert arm.ask("configure")
        assert arm.ask("activate"), arm.ros.told("not activated")
        yield arm
    finally:
        arm.close()


@pytest.fixture
def controller(positions):
    """Starts controllers; whatever a failure leaves is undone, or a second try would fail too."""
    started = []

    def start(name):
        started.append(positions.controller(name))
        return started[-1]

    yield start
    for law in started:
        law.kill()
    for fault in ("soft", "silent-1", "silent-2"):
        (positions.port / fault).unlink(missing_ok=True)
    if positions.life != "active":
        positions.ros.trigger("hardware/reset_emergency_stop")
        positions.ros.wait_for(lambda: positions.ask("activate"), "not activated")


@pytest.fixture
def shared(positions):
    """For the report of a failure."""
    return positions.ros


def test_a_law_of_efforts_gets_no_command_to_motors_of_positions(positions, shared):
    commands = shared.record(JointState, "joint_commands")
    law = positions.controller("pid_gravity")
    told = shared.diagnosis("joint_controller", lambda values: values["level"] == ERROR)
    for word in (
        "of PidGravity = effort",
        "joint 'J1' accepts position",
        "accepted controllers: position",
    ):
        assert word in told["message"]
    before = len(commands)
    assert int(told["controller_incompatible"]) > 0
    positions.news()
    assert len(commands) == before
    assert law.stop() == 0


def test_a_law_of_positions_moves_them_and_no_other_takes_its_place(positions, shared):
    law = positions.controller("position")
    commands = shared.record(JointState, "joint_commands")
    shared.wait_for(lambda: len(commands) > 20, "no commands")
    message = trajectory((1.0, AWAY, np.zeros(2)), names=JOINTS)
    shared.publish(message, "joint_controller/joint_trajectory")
    states = positions.states
    shared.wait_for(lambda: np.abs(np.array(states.newest.position) - AWAY).max() < 0.01, "away")
    (answer,) = shared.set("joint_controller", controller="pid")
    assert not answer.successful
    assert "joint 'J1' accepts position; accepted controllers: position" in answer.reason
    assert law.stop() == 0


def test_positions_become_points_for_a_controller_of_trajectories(positions, shared):
    """v of each point is the change of its positions over its time: that between two states."""
    states, first = positions.states, len(positions.states)
    points = shared.record(JointTrajectory, OTHERS)
    bridge = positions.start(
        "joint_controller", controller="position", output="joint_trajectory", output_topic=OTHERS
    )
    shared.wait_for(lambda: len(points) > 50, "no points")
    message = trajectory((0.5, AWAY / 2, np.zeros(2)), names=JOINTS)
    shared.publish(message, "joint_controller/joint_trajectory")
    shared.wait_for(
        lambda: np.allclose(points.newest.points[0].positions, AWAY / 2), "not led to the end"
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
    assert np.abs(v).max() > 0.1, "it never led"
    assert bridge.stop() == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"output": "joint_trajectory"}, "command interface = effort; expected position"),
        ({"output": "smoke"}, "one of joint_commands, joint_trajectory"),
    ],
)
def test_an_output_that_the_law_cannot_have_ends_the_node(positions, parameters, words):
    process = positions.start("joint_controller", controller="pid_gravity", **parameters)
    assert process.wait() == 2
    assert words in process.output


# --- the simulator has the same face


def test_a_simulated_arm_says_what_it_takes_and_refuses_likewise(ros):
    states = ros.states()
    ros.start("simulator")
    ros.start("joint_controller", controller="position")
    told = ros.diagnosis("joint_controller", lambda values: values["level"] == ERROR)
    assert "PositionController = position; joint 'R1' accepts effort, voltage" in told["message"]
    assert "pid_gravity" in told["message"]
    ros.wait_for(lambda: len(states), "no joint_states")
    assert tuple(states.newest.name) == FIVE


def test_an_emergency_stop_of_a_simulated_arm_stops_its_time(ros):
    states = ros.states()
    ros.start("simulator")
    ros.wait_until(states, 0.1)
    ros.publish(Bool(data=True), "emergency_stop")
    told = ros.diagnosis("simulator", lambda values: values["level"] == ERROR)
    assert told["message"] == "emergency stop by topic emergency_stop"
    count = len(states)
    assert ros.pause(False).success, "going on is for the reset to say"
    ros.diagnosis("simulator", lambda values: values["level"] == ERROR)
    assert len(states) == count
    assert ros.trigger("simulator/reset_emergency_stop").success
    ros.wait_longer(states, 0.1)


def stands(shared, positions):
    """Where the arm is once it rests and is commanded again."""
    commands = len(positions.commands)
    shared.wait_for(lambda: len(positions.commands) > commands + 20, "not commanded")
    shared.wait_for(lambda: np.abs(positions.news().velocity).max() < 1e-4, "no rest")
    return np.array(positions.news().position)


@pytest.mark.quick(1)
def test_servos_that_their_load_bends_do_not_sink_with_interruptions(positions, shared, controller):
    """No states for a while, and a controller that is started again; both know the last goal."""
    law = controller("position")
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
            lambda: time.time() - stamp(states.newest) > 2 * MAX_STATE_GAP, "states go on"
        )
        for id in (1, 2):
            positions.mend(f"silent-{id}")
        shared.wait_for(lambda seen=seen: len(states) > seen + 50, "no states")
        np.testing.assert_allclose(stands(shared, positions), before, atol=1e-3)
    assert law.stop() == 0
    law = controller("position")
    np.testing.assert_allclose(stands(shared, positions), before, atol=1e-3)
    assert positions.ask("deactivate")
    assert positions.ask("activate"), shared.told("not activated")
    after = stands(shared, positions)  # taken up where it is, it is bent once more, and no more
    np.testing.assert_allclose(after - before, before - AWAY, rtol=0.2, atol=2e-3)
    positions.mend("soft")
    assert law.stop() == 0


def stamp(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


@pytest.mark.slow
def test_a_simulated_arms_thin_margin_is_logged_before_it_moves(ros):
    """At the period of the simulator: 4 ms are too long for gains that hold with 1 ms."""
    for rate, thin in ((1000, False), (250, True)):
        simulator = ros.start("simulator", arm="two_link", update_rate=float(rate), lockstep=True)
        law = ros.start("joint_controller", arm="two_link", controller="pid_gravity")
        ros.diagnosis("joint_controller", lambda values: values["message"] == "running")
        found = "margin < " in law.output and f"period of {1 / rate:g} s" in law.output
        assert found is thin
        assert law.stop() == simulator.stop() == 0
