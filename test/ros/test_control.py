"""Closed loop over topics: settling, trajectories, reference steps and rejected inputs."""

import numpy as np
import pytest
from scipy.interpolate import BPoly
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from .link import (
    GAINS,
    INITIAL,
    JOINTS,
    LOCKSTEP,
    Motion,
    joint_state,
    stamp,
    trajectory,
)

SETTLE = 2.0
"""Settling time [s] of a displaced arm."""


@pytest.fixture(scope="module")
def loop(shared):
    """Start a controlled arm in lockstep; return the recorded states."""
    states = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start("joint_controller", GAINS)
    shared.wait_until(states, 0.1)
    return states


# --- settling


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("payload", "modeled", "limit"), [(0.0, 0.0, 1e-3), (0.5, 0.5, 1e-3), (0.5, 0.0, 0.02)]
)
def test_a_displaced_arm_settles(ros, payload, modeled, limit):
    displaced = INITIAL + np.array([0, 0.2, 0.2, 0, 0.2])
    states = ros.states()
    ros.start("simulator", initial_positions=displaced, payload_mass=payload, **LOCKSTEP)
    ros.start("joint_controller", GAINS, payload_mass=modeled)
    ros.wait_until(states, 0.1)
    ros.publish(joint_state(position=INITIAL), "joint_controller/reference")
    ros.wait_longer(states, SETTLE + 1.5)
    motion = Motion(states.messages())
    has_moved = motion.q[:, 1] < displaced[1] - 0.1
    assert has_moved.any()
    start = motion.t[int(np.argmax(has_moved))] - 0.1
    settled = motion.at(start + SETTLE)
    assert np.abs(motion.q[settled:] - INITIAL).max() < limit


# --- trajectories

AWAY = INITIAL + np.array([0.3, 0.25, -0.3, 0.4, -0.3])
REST = np.zeros(5)
SHAPES = {
    "linear": ([(0, INITIAL), (1.0, AWAY), (2.0, INITIAL)], 0.05),
    "cubic": ([(0, INITIAL, REST), (1.0, AWAY, REST), (2.0, INITIAL, REST)], 0.02),
    "quintic": ([(0, INITIAL, REST, REST), (1.0, AWAY, REST, REST)], 0.02),
    "back": ([(0, AWAY, REST, REST), (1.0, INITIAL, REST, REST)], 0.02),
}


def spline(points, start):
    """Return the lowest-order spline of SciPy that meets the values of each waypoint."""
    times = [start + t for t, *_ in points]
    rows = [np.array(rows) for _, *rows in points]
    return BPoly.from_derivatives(times, rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_trajectory_tracking_error_is_bounded(shared, loop, shape):
    """The error is at most 0.02 rad (0.05 rad at corners of a linear one) and vanishes at rest."""
    points, limit = SHAPES[shape]
    shared.meet(JointTrajectory, "joint_controller/joint_trajectory")
    assert shared.pause().success, "the trajectory arrives before its start on a busy machine too"
    first, start = len(loop), round(stamp(loop.newest) + 1.0, 3)
    shared.publish(trajectory(*points, start=start), "joint_controller/joint_trajectory")
    shared.get("joint_controller", "arm")
    assert shared.pause(False).success
    end = start + points[-1][0]
    shared.wait_until(loop, end + 1.0)
    motion = Motion(loop.messages(first))
    during = slice(motion.at(start), motion.at(end))
    assert np.abs(motion.q[during] - spline(points, start)(motion.t[during])).max() < limit
    assert np.abs(motion.q[motion.at(end + 0.99) :] - points[-1][1]).max() < 1e-3


def test_joints_in_any_order_are_accepted(shared, loop):
    order = [4, 2, 0, 1, 3]
    names = [JOINTS[i] for i in order]
    points = [(0.5, AWAY[order])]
    shared.publish(trajectory(*points, names=names), "joint_controller/joint_trajectory")
    shared.wait_longer(loop, 2.0)
    assert np.abs(np.array(loop.newest.position) - AWAY).max() < 1e-3
    shared.publish(trajectory((0.5, INITIAL)), "joint_controller/joint_trajectory")
    shared.wait_longer(loop, 2.0)


def changed(joint, value):
    q = INITIAL.copy()
    q[JOINTS.index(joint)] = value
    return q


NAN = float("nan")
REJECTED = {
    "unknown joint": (trajectory((1, INITIAL), names=[*JOINTS[:4], "R9"]), ["R9"]),
    "missing joint": (trajectory((1, INITIAL[:4]), names=JOINTS[:4]), ["missing", "R5"]),
    "wrong length": (trajectory((1, INITIAL[:3])), ["3 positions", "expected 5"]),
    "NaN": (trajectory((1, changed("R4", NAN))), ["R4", "nan"]),
    "equal times": (trajectory((1, INITIAL), (1, AWAY)), ["waypoint 1", "increasing"]),
    "beyond the upper limit": (trajectory((9, changed("R3", 0.7))), ["R3", "0.6"]),
    "too fast": (
        trajectory((0.5, INITIAL), (0.6, changed("R3", -1.0))),
        ["R3", "velocity", "1.2"],
    ),
}


@pytest.fixture(scope="module")
def rejections(shared, loop):
    """Return the diagnostics of each invalid trajectory and the motion during the test."""
    shared.wait_longer(loop, 1.0)
    start, reports = len(loop), {}
    for count, (kind, (message, _)) in enumerate(REJECTED.items(), 1):
        shared.publish(message, "joint_controller/joint_trajectory")
        reports[kind] = shared.diagnosis(
            "joint_controller",
            lambda values, n=count: values.get("trajectory_rejected") == str(n),
            f"{kind} is not counted as rejection {count}",
        )["last trajectory_rejected"]
    shared.wait_longer(loop, 1.0)
    return reports, Motion(loop.messages(start))


@pytest.mark.parametrize("kind", REJECTED)
def test_an_invalid_trajectory_is_rejected_with_its_cause(rejections, kind):
    for word in REJECTED[kind][1]:
        assert word in rejections[0][kind]


def test_rejected_trajectories_do_not_move_the_arm(rejections):
    motion = rejections[1]
    assert motion.t[-1] - motion.t[0] > 1
    assert np.abs(motion.q - INITIAL).max() < 1e-3


# --- references


def test_a_reference_steps_the_named_joints(shared, loop):
    target = changed("R2", -1.0)
    shared.publish(joint_state(["R2"], [-1.0]), "joint_controller/reference")
    shared.wait_longer(loop, 2.0)
    last = len(loop)
    shared.wait_longer(loop, 0.2)
    assert np.abs(Motion(loop.messages(last)).q - target).max() < 2e-3
    shared.publish(joint_state(["R2"], [INITIAL[1]]), "joint_controller/reference")
    shared.wait_longer(loop, 2.0)


BAD_REFERENCES = {
    "unknown joint": (joint_state(["R9"], [0.0]), "R9"),
    "out of range": (joint_state(["R3"], [0.7]), "R3"),
    "more names than positions": (joint_state(["R1", "R2"], [0.1]), "positions = 1; expected 2"),
}


def test_invalid_references_are_rejected_with_their_cause(shared, loop):
    shared.wait_longer(loop, 0.5)
    start = len(loop)
    for count, (message, word) in enumerate(BAD_REFERENCES.values(), 1):
        shared.publish(message, "joint_controller/reference")
        values = shared.diagnosis(
            "joint_controller", lambda v, n=count: v.get("reference_rejected") == str(n)
        )
        assert word in values["last reference_rejected"]
    assert np.abs(Motion(loop.messages(start)).q - INITIAL).max() < 2e-3


def test_tracking_shows_reference_feedback_error_and_output(shared, loop):
    first = len(loop)
    record = shared.record(JointTrajectory, "joint_controller/tracking")
    shared.wait_for(lambda: len(record) >= 3, "no tracking")
    commands = shared.record(JointState, "joint_commands")
    start = len(record)
    shared.wait_for(lambda: len(record) > start + 30, "no tracking")
    by_stamp = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in loop.messages(first)}
    answers = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in commands.messages()}
    compared = 0
    for message in record.messages(start):
        reference, feedback, error, output = message.points
        key = (message.header.stamp.sec, message.header.stamp.nanosec)
        assert tuple(message.joint_names) == JOINTS
        assert list(reference.positions) == pytest.approx(INITIAL.tolist())
        if key in by_stamp:  # the recorder may have missed a state on a busy machine
            assert feedback.positions == by_stamp[key].position
            assert feedback.velocities == by_stamp[key].velocity
            compared += 1
        difference = np.array(reference.positions) - np.array(feedback.positions)
        assert np.array_equal(error.positions, difference)
        if key in answers:
            assert output.effort == answers[key].effort
            compared += 1
    assert compared > 6


@pytest.mark.slow
def test_a_trajectory_before_the_first_state_is_rejected(ros):
    ros.start("joint_controller", GAINS)
    ros.publish(trajectory((1, INITIAL)), "joint_controller/joint_trajectory")
    values = ros.diagnosis("joint_controller", lambda v: "trajectory_rejected" in v)
    assert "no state of the arm" in values["last trajectory_rejected"]
    assert values["message"] == "waiting for joint_states"
    assert values["level"] == 1
    assert ros.stop_all() == [0], ros.report("")
