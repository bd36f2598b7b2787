"""Topics of the simulator: states, clock, robot description, transforms and diagnostics."""

from xml.etree import ElementTree

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

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
    shared.transforms = shared.record(TFMessage, "/tf")
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


def urdf_transforms(positions):
    """Return the transform (4, 4) of each link of the URDF from its parent, by their names."""
    found = {}
    for joint in ElementTree.fromstring(load_arm("five_dof").urdf).iter("joint"):
        if joint.find("parent") is None:
            continue  # of <ros2_control>
        numbers = {"xyz": "0 0 0", "rpy": "0 0 0"} | joint.find("origin").attrib
        xyz, rpy = (np.array(numbers[key].split(), float) for key in ("xyz", "rpy"))
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
        if joint.get("name") in positions:
            axis = np.array(joint.find("axis").get("xyz").split(), float)
            turn = np.eye(4)
            turned = axis * positions[joint.get("name")]
            turn[:3, :3] = Rotation.from_rotvec(turned).as_matrix()
            placed = placed @ turn
        found[joint.find("parent").get("link"), joint.find("child").get("link")] = placed
    return found


def ros_transforms(message):
    """Return the transforms (4, 4) of a TFMessage by parent and child frame."""
    found = {}
    for item in message.transforms:
        p, r = item.transform.translation, item.transform.rotation
        placed = np.eye(4)
        placed[:3, 3] = p.x, p.y, p.z
        placed[:3, :3] = Rotation.from_quat([r.x, r.y, r.z, r.w]).as_matrix()
        found[item.header.frame_id, item.child_frame_id] = placed
    return found


def test_the_transforms_of_each_state_are_those_of_the_urdf(shared, run):
    static = shared.record(TFMessage, "/tf_static", latched=True)
    shared.wait_for(lambda: len(static), "no /tf_static")
    fixed = ros_transforms(static.newest)
    states = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in run[1]}
    compared = 0
    for message in shared.transforms.messages():
        stamps = {(t.header.stamp.sec, t.header.stamp.nanosec) for t in message.transforms}
        state = states.get(*stamps)
        if state is None:  # the initial configuration, during the compilation
            continue
        found = ros_transforms(message)
        assert not {*found} & {*fixed}
        expected = urdf_transforms(dict(zip(state.name, state.position, strict=True)))
        assert {*found, *fixed} == {*expected}
        for links, placed in {**found, **fixed}.items():
            np.testing.assert_allclose(placed, expected[links], atol=1e-12)
        compared += 1
    assert compared > 2


def test_both_nodes_end_with_0_on_an_interrupt(shared, run):
    assert shared.stop_all() == [0, 0], shared.report("")
    assert all("Traceback" not in p.output for p in shared.processes), shared.report("")


def test_diagnostics_contain_computed_and_applied_effort(ros):
    """During the controlled stop the applied effort equals the computed effort."""
    ros.start("simulator")
    key = "R2 effort computed / applied [N·m]"
    computed, applied = ros.diagnosis("simulator", lambda v: key in v)[key].split(" / ")
    assert float(computed) == float(applied) != 0
