"""Lockstep: the same motion, bit for bit, whatever else the machine does."""

import subprocess
import sys

import numpy as np
import pytest

from .link import GAINS, LOCKSTEP, Motion, Ros, joint_state

SECONDS = 5.0
DISPLACED = [0, -0.9, 0.5, 0, 0.2]


def sequence(messages):
    """stamp → bytes of position, velocity and effort; repeated states must be the same."""
    motion, found = Motion(messages), {}
    for i, stamp in enumerate(motion.stamps):
        if stamp <= SECONDS * 1e9:
            row = motion.q[i].tobytes() + motion.v[i].tobytes() + motion.tau[i].tobytes()
            assert found.setdefault(stamp, row) == row
    assert set(found) <= set(range(0, 5_000_000_001, 2_000_000))
    return found


def assert_same(one, other, count):
    """Equal at every instant that reached both recorders: ``count`` of them, late ones too."""
    common = one.keys() & other.keys()
    assert len(common) > count
    assert max(common) > 0.8e9 * SECONDS
    assert [s for s in sorted(common) if one[s] != other[s]] == []


def pair(**factor):
    """The motion from a displaced start, with the controller in a process of its own."""
    ros = Ros()
    try:
        states = ros.states()
        ros.start("simulator", initial_positions=DISPLACED, **LOCKSTEP | factor)
        ros.wait_for(lambda: len(states), "no state")
        ros.start("joint_controller", GAINS, payload_mass=0.5)
        ros.wait_until(states, SECONDS)
        assert ros.stop_all() == [0, 0], ros.told("")
        return sequence(states.messages())
    finally:
        ros.close()


@pytest.fixture(scope="module")
def quiet():
    """So slow that its recorder misses little."""
    return pair(real_time_factor=2.0)


@pytest.fixture
def busy_loops():
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.slow
def test_a_busy_machine_changes_no_bit(quiet, busy_loops):
    assert_same(pair(), quiet, 50)  # a busy recorder misses most


def test_the_motion_compared_is_a_motion(quiet):
    """The controller expects 0.5 kg that is not there, so the arm moves away from its start."""
    first, last = (np.frombuffer(quiet[s])[:5] for s in (min(quiet), max(quiet)))
    assert np.abs(first - DISPLACED).max() < 1e-3
    assert len(set(quiet.values())) > 300
    assert np.abs(last - first).max() < 0.05


def test_one_process_moves_as_two_do(ros, quiet):
    """All but the first instants, which pass before anyone can listen."""
    states = ros.states()
    told = {"joint_controller:payload_mass": 0.5}
    composed = ros.start("composed", GAINS, initial_positions=DISPLACED, **told)
    ros.wait_until(states, SECONDS)
    assert composed.stop() == 0
    assert_same(sequence(states.messages()), quiet, 300)


def test_time_stands_until_a_controller_answers(ros):
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.wait_for(lambda: len(states) >= 5, "the state is not repeated")
    assert len(set(map(bytes, states.raw))) == 1
    assert set(Motion(states.messages()).stamps) == {0}
    ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)


def test_an_answer_to_another_state_is_none(ros):
    """Commands with a stamp of another instant let no time pass; one with the state's does."""
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
    ros.wait_for(lambda: Motion(states.messages()).stamps[-1] == 2_000_000, "no answer taken")
