"""Clients that stream: MoveIt Servo's windows, velocities alone, and ``~/commands``."""

import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from .link import GAINS, INITIAL, JOINTS, Motion, stamp, trajectory

TOPIC, COMMANDS = "joint_controller/joint_trajectory", "joint_controller/commands"
INWARD = np.array([1.0, 1.0, -1.0, 1.0, 1.0])
SIZE, RATE = np.array([0.3, 0.2, 0.2, 0.3, 0.3]), 1.5


def source(t):
    """Position and velocity of a motion that begins and ends at rest after 2π/RATE."""
    return (
        INITIAL + SIZE * (1 - np.cos(RATE * t)) / 2,
        SIZE * RATE * np.sin(RATE * t) / 2,
    )


@pytest.fixture(scope="module")
def loop(shared):
    """A controlled arm in lockstep at the clock's pace, as far as the machine goes along."""
    states = shared.states()
    shared.start("simulator", lockstep=True)
    shared.start("joint_controller", GAINS, allow_integration_in_goal_trajectories=True)
    shared.wait_until(states, 0.1)
    return states


def streamed(shared, loop, kind, topic, message, seconds):
    """The motion while ``message(time)`` is published each 10 ms of the states' time."""
    publisher = shared.meet(kind, topic)
    first, begin, sent = len(loop), stamp(loop.newest), 0
    while sent < round(seconds * 100):
        shared.wait_until(loop, begin + 0.01 * (sent + 1))
        now = stamp(loop.newest) - begin
        sent = round(now * 100)
        found = message(now, begin)
        if found is not None:
            publisher.publish(found)
    return Motion(loop.messages(first)), begin


def window():
    """Messages as MoveIt Servo makes them, each stamped by its oldest waypoint."""
    points = []

    def message(now, begin):
        points.append((now + 0.1, *source(now + 0.1)))
        while points[0][0] < now - 0.1:
            points.pop(0)
        if len(points) < 3:
            return None
        rows = [(t - points[0][0], q, v) for t, q, v in points[:-1]]
        return trajectory(*rows, start=begin + points[0][0])

    return message


def rejected(shared):
    """Streamed messages that were rejected."""
    values = shared.diagnosis("joint_controller", lambda values: True)
    return {name: values[name] for name in values if name.endswith("refused")}


def test_moveit_servo_drives_the_arm(shared, loop):
    motion, begin = streamed(shared, loop, JointTrajectory, TOPIC, window(), 2.0)
    true = np.array([source(t - begin)[0] for t in motion.t])
    assert rejected(shared) == {}
    assert np.abs(motion.q - true).max() < 0.05
    assert np.abs(motion.q[-1] - INITIAL).max() > 0.1
    shared.wait_longer(loop, 1.0)
    assert np.abs(np.array(loop.newest.velocity)).max() < 1e-2


def test_velocities_alone_drive_the_arm(shared, loop):
    before = np.array(loop.newest.position)

    def message(now, begin):
        return trajectory((0.01, [], INWARD * source(now + 0.01)[1]))

    motion, _ = streamed(shared, loop, JointTrajectory, TOPIC, message, 2.0)
    assert rejected(shared) == {}
    way = INWARD * (source(2.0)[0] - INITIAL)
    assert np.abs(motion.q[-1] - before - way).max() < 0.05


@pytest.mark.parametrize("interface", ["velocity", "position"])
def test_commands_drive_the_arm_until_they_cease(shared, loop, interface):
    assert shared.set("joint_controller", **{"commands.interface": interface})[0].successful
    start = np.array(loop.newest.position)

    def message(now, begin):
        values = 0.1 * INWARD if interface == "velocity" else start - 0.1 * now * INWARD
        return Float64MultiArray(data=values.tolist())

    motion, _ = streamed(shared, loop, Float64MultiArray, COMMANDS, message, 1.0)
    way = 0.1 * INWARD * (1 if interface == "velocity" else -1)
    assert rejected(shared) == {}
    assert np.abs(motion.q[-1] - start - way).max() < 0.03
    shared.wait_longer(loop, 1.5)
    assert np.abs(np.array(loop.newest.velocity)).max() < 1e-2
    values = shared.diagnosis("joint_controller", lambda values: "stream_ended" in values)
    assert "the reference comes to rest" in values["last stream_ended"]


def test_commands_and_parameters_are_checked(shared, loop):
    shared.publish(Float64MultiArray(data=[0.0] * 4), COMMANDS)
    values = shared.diagnosis("joint_controller", lambda values: "command_rejected" in values)
    assert (
        f"4 values; expected one position of each of {JOINTS[0]}" in values["last command_rejected"]
    )
    result = shared.set("joint_controller", **{"commands.interface": "effort"})[0]
    assert "expected one of position, velocity" in result.reason
