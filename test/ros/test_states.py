"""Topics of the simulator: states, clock, robot description and diagnostics."""

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from arm_dynamics import load_arm

from .link import GAINS, INITIAL, JOINTS, LOCKSTEP, Motion

FRESH = True
SLOWER = {**LOCKSTEP, "real_time_factor": 2.0}
"""A recorder on a busy machine misses few messages."""
PERIOD = 4_000_000


@pytest.fixture(scope="module")
def run(shared):
    """Run 1 s in lockstep at 250 Hz; return the simulator, the states and the clock messages."""
    states, ticks = shared.states(), shared.record(Clock, "/clock")
    simulator = shared.start("simulator", update_rate=250.0, **SLOWER)
    shared.wait_for(lambda: len(states) and len(ticks), "no state and no clock")
    shared.start("joint_controller", GAINS)
    shared.wait_until(states, 1.0)
    return simulator, states.messages(), ticks.messages()


def once(messages):
    """Return the first state of each stamp; states repeated in lockstep must be equal."""
    found = {}
    for message in messages:
        key = (message.header.stamp.sec, message.header.stamp.nanosec)
        assert found.setdefault(key, message) == message
    return list(found.values())


def test_every_state_has_every_joint_and_the_base_frame(run):
    base = load_arm("five_dof").base_frame
    for message in run[1]:
        assert tuple(message.name) == JOINTS
        assert len(message.position) == len(message.velocity) == len(message.effort) == 5
        assert np.isfinite([*message.position, *message.velocity, *message.effort]).all()
        assert message.header.frame_id == base


def test_stamps_increase_by_the_period(run):
    stamps = Motion(once(run[1])).stamps
    assert stamps[0] == 0
    steps = np.diff(stamps)
    assert not (steps % PERIOD).any()
    assert np.mean(steps == PERIOD) > 0.5
    assert (steps > 0).all()


def test_the_clock_equals_the_state_stamps(run):
    _, states, ticks = run
    shown = Motion(once(states)).stamps
    clock = [m.clock.sec * 10**9 + m.clock.nanosec for m in ticks]
    assert clock == sorted(clock)
    assert len({*shown} & {*clock}) > 0.5 * len(shown)
    assert not np.any(np.mod(clock, PERIOD))


def test_the_arm_holds_its_initial_pose(run):
    motion = Motion(run[1])
    assert np.abs(motion.q - INITIAL).max() < 1e-6
    assert np.abs(motion.v).max() < 1e-6


def test_a_late_subscriber_receives_the_robot_description(shared, run):
    record = shared.record(String, "robot_description", latched=True)
    shared.wait_for(lambda: len(record), "no robot_description")
    assert record.newest.data == load_arm("five_dof").urdf


def test_both_nodes_end_with_0_on_an_interrupt(shared, run):
    assert shared.stop_all() == [0, 0], shared.report("")
    assert all("Traceback" not in p.output for p in shared.processes), shared.report("")


def test_diagnostics_contain_computed_and_applied_effort(ros):
    """During the controlled stop the applied effort equals the computed effort."""
    ros.start("simulator")
    key = "R2 effort computed / applied [N·m]"
    computed, applied = ros.diagnosis("simulator", lambda v: key in v)[key].split(" / ")
    assert float(computed) == float(applied) != 0
