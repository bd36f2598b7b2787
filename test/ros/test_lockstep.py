"""Lockstep: the motion is bit-identical at any load of the machine."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from arm_dynamics.ros.topics.arm_topics import REPLY_TIMEOUT, LockstepWait
from arm_dynamics.safety.events import Events

from .link import GAINS, LOCKSTEP, Motion, Ros, joint_state

SECONDS = 5.0
DISPLACED = [0, -0.9, 0.5, 0, 0.2]


def sequence(messages):
    """Return stamp → bytes of position, velocity and effort; repeated states must be equal."""
    motion, found = Motion(messages), {}
    for i, stamp in enumerate(motion.stamps):
        if stamp <= SECONDS * 1e9:
            row = motion.q[i].tobytes() + motion.v[i].tobytes() + motion.tau[i].tobytes()
            assert found.setdefault(stamp, row) == row
    assert set(found) <= set(range(0, int(SECONDS * 1e9) + 1, 2_000_000))
    return found


def assert_same(one, other, count):
    """Check that more than ``count`` states are in both records, late ones too, and are equal."""
    common = one.keys() & other.keys()
    assert len(common) > count
    assert max(common) > 0.8e9 * SECONDS
    assert [s for s in sorted(common) if one[s] != other[s]] == []


def pair(**factor):
    """Return the motion from a displaced start, with the controller in a separate process."""
    ros = Ros()
    try:
        states = ros.states()
        ros.start("simulator", initial_positions=DISPLACED, **LOCKSTEP | factor)
        ros.wait_for(lambda: len(states), "no state")
        ros.start("joint_controller", GAINS, payload_mass=0.5)
        ros.wait_until(states, SECONDS)
        assert ros.stop_all() == [0, 0], ros.report("")
        return sequence(states.messages())
    finally:
        ros.close()


@pytest.fixture(scope="module")
def quiet():
    """Return a motion at a low real-time factor, of which the recorder misses few states."""
    return pair(real_time_factor=2.0)


@pytest.fixture
def busy_loops():
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.slow
def test_motion_is_bit_identical_on_a_busy_machine(quiet, busy_loops):
    assert_same(pair(real_time_factor=2.0), quiet, 50)  # a busy recorder misses some


def test_the_compared_motion_is_not_constant(quiet):
    """The controller's model has a payload of 0.5 kg that the arm lacks, so the arm moves."""
    first, last = (np.frombuffer(quiet[s])[:5] for s in (min(quiet), max(quiet)))
    assert np.abs(first - DISPLACED).max() < 1e-3
    assert len(set(quiet.values())) > 300
    assert np.abs(last - first).max() < 0.05


def test_motion_is_bit_identical_in_one_and_two_processes(ros, quiet):
    """The first states are not compared, because they precede the subscription."""
    states = ros.states()
    parameters = {"joint_controller:payload_mass": 0.5}
    composed = ros.start("composed", GAINS, initial_positions=DISPLACED, **parameters)
    ros.wait_until(states, SECONDS)
    assert composed.stop() == 0
    assert_same(sequence(states.messages()), quiet, 300)


def test_time_stops_until_a_controller_commands(ros):
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.wait_for(lambda: len(states) >= 5, "the state is not repeated")
    assert len(set(map(bytes, states.raw))) == 1
    assert set(Motion(states.messages()).stamps) == {0}
    ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)


def test_a_command_with_another_stamp_does_not_advance_time(ros):
    """Only a command with the stamp of the state advances time."""
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.wait_for(lambda: len(states), "no state")
    late = joint_state(effort=[0.0] * 5)
    late.header.stamp.sec = 7
    for _ in range(5):
        ros.publish(late, "joint_commands")
    count = len(states)
    ros.wait_for(lambda: len(states) > count + 3, "the state is not repeated")
    assert set(Motion(states.messages()).stamps) == {0}
    ros.publish(joint_state(effort=[0.0] * 5), "joint_commands")
    ros.wait_for(lambda: Motion(states.messages()).stamps[-1] == 2_000_000, "no command accepted")


def test_a_wait_for_a_command_is_reported_until_commands_continue(ros):
    """The test is the controller: it answers the first state and then dies."""
    states, reply = ros.states(), joint_state(effort=[0.0] * 5)
    simulator = ros.start("simulator", **LOCKSTEP)
    ros.publish(reply, "joint_commands")
    ros.wait_for(
        lambda: len(states) and Motion([states.newest]).stamps == [2_000_000], "no command accepted"
    )
    found = ros.diagnosis("simulator", lambda values: values["message"] != "running")
    for text in (found["message"], found["last command_missing"]):
        assert text.startswith("/joint_commands: time without a command = "), text
        assert "start or restart the controller" in text
    assert "command_missing: /joint_commands" in simulator.output
    reply.header.stamp.nanosec = 2_000_000
    ros.publish(reply, "joint_commands")
    ros.diagnosis("simulator", lambda values: values["message"] == "running")
    assert "/joint_commands: commands continue after" in simulator.output


def test_a_long_wait_is_reported_at_each_doubling_and_its_end_once():
    reports, infos = [], []
    logger = SimpleNamespace(info=infos.append)
    node = SimpleNamespace(
        get_logger=lambda: logger, resolve_topic_name=lambda name: f"/left/{name}"
    )
    wait = LockstepWait(node, Events(lambda kind, text: reports.append((kind, text))))
    wait.elapse(0.9 * REPLY_TIMEOUT)
    wait.end()
    assert wait.trouble == ""
    assert not reports
    for _ in range(70):
        wait.elapse(0.1 * REPLY_TIMEOUT)
    assert [kind for kind, _ in reports] == ["command_missing"] * 3
    waits = [float(text.split(" = ")[1].split()[0]) for _, text in reports]
    assert waits == [REPLY_TIMEOUT, 2 * REPLY_TIMEOUT, 4 * REPLY_TIMEOUT]
    assert reports[0][1].startswith("/left/joint_commands: time without a command = ")
    wait.end()
    wait.end()
    assert len(infos) == 1
    assert wait.trouble == ""
