"""Streaming clients: windows of MoveIt Servo, velocity-only trajectories and ``~/commands``."""

import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from .link import GAINS, INITIAL, JOINTS, Motion, stamp, trajectory

TOPIC, COMMANDS = "joint_controller/joint_trajectory", "joint_controller/commands"
INWARD = np.array([1.0, 1.0, -1.0, 1.0, 1.0])
PERIODS = 10
"""Control periods of 2 ms between two messages of a source."""
STEP = 2e-3 * PERIODS
SIZE, RATE = np.array([0.3, 0.2, 0.2, 0.3, 0.3]), 1.5


def source(t):
    """Return position and velocity of a motion from rest to rest of duration 2π/RATE."""
    return (
        INITIAL + SIZE * (1 - np.cos(RATE * t)) / 2,
        SIZE * RATE * np.sin(RATE * t) / 2,
    )


@pytest.fixture(scope="module")
def loop(shared):
    """Start a controlled arm in lockstep, in real time if the machine is fast enough."""
    states = shared.states()
    shared.start("simulator", lockstep=True)
    shared.start("joint_controller", GAINS, allow_integration_in_goal_trajectories=True)
    shared.wait_until(states, 0.1)
    return states


def streamed(shared, loop, kind, topic, message, seconds):
    """Publish ``message(time)`` every STEP of simulated time; return the motion and its start.

    Simulated time advances only between messages, so that no message of a busy machine is late.
    """
    publisher = shared.meet(kind, topic)
    assert shared.pause().success
    assert shared.set("simulator", step_count=PERIODS)[0].successful
    first, begin = len(loop), stamp(loop.newest)
    for k in range(1, round(seconds / STEP) + 1):
        assert shared.trigger("simulator/step").success
        end = begin + STEP * k - 0.001  # a state may be repeated while a controller is late
        shared.wait_for(lambda end=end: stamp(loop.newest) > end, "no state after a step")
        found = message(stamp(loop.newest) - begin, begin)
        if found is not None:
            publisher.publish(found)
            shared.get("joint_controller", "controller")  # answered after the message's arrival
    assert shared.pause(False).success
    return Motion(loop.messages(first)), begin


def window():
    """Return a source of messages like MoveIt Servo's, stamped by their oldest waypoint."""
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
    """Return the reasons of rejections by kind."""
    values = shared.diagnosis("joint_controller", lambda values: True)
    return {name: values[name] for name in values if name.endswith("rejected") and "last" in name}


def test_moveit_servo_windows_move_the_arm(shared, loop):
    motion, begin = streamed(shared, loop, JointTrajectory, TOPIC, window(), 2.0)
    true = np.array([source(t - begin)[0] for t in motion.t])
    assert rejected(shared) == {}
    assert np.abs(motion.q - true).max() < 0.05
    assert np.abs(motion.q[-1] - INITIAL).max() > 0.1
    shared.wait_longer(loop, 1.0)
    assert np.abs(np.array(loop.newest.velocity)).max() < 1e-2


def test_velocity_only_trajectories_move_the_arm(shared, loop):
    before = np.array(loop.newest.position)

    def message(now, begin):
        return trajectory((STEP, [], INWARD * source(now + STEP)[1]))

    motion, _ = streamed(shared, loop, JointTrajectory, TOPIC, message, 2.0)
    assert rejected(shared) == {}
    distance = INWARD * (source(2.0)[0] - INITIAL)
    assert np.abs(motion.q[-1] - before - distance).max() < 0.05


@pytest.mark.parametrize("interface", ["velocity", "position"])
def test_streamed_commands_move_the_arm_until_they_end(shared, loop, interface):
    assert shared.set("joint_controller", **{"commands.interface": interface})[0].successful
    start = np.array(loop.newest.position)

    def message(now, begin):
        values = 0.1 * INWARD if interface == "velocity" else start - 0.1 * now * INWARD
        return Float64MultiArray(data=values.tolist())

    motion, _ = streamed(shared, loop, Float64MultiArray, COMMANDS, message, 1.0)
    distance = 0.1 * INWARD * (1 if interface == "velocity" else -1)
    assert rejected(shared) == {}
    assert np.abs(motion.q[-1] - start - distance).max() < 0.03
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
