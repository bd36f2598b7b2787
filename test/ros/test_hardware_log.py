"""Log and recording of the hardware node; maximum age of a command."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from arm_dynamics.recording.bag import COMMANDS, REFERENCES, STATES, URDF, messages
from arm_dynamics.recording.table import Recording

from .link import to_time
from .motors import JOINTS, Motors

pytestmark = [pytest.mark.hardware, pytest.mark.slow]  # time-outs of hardware in real time

MICROSECOND = 1000
"""Tolerance [ns] above the rounding of a time in seconds."""
pytest.importorskip("rosbags", reason="rosbags is not installed")


@pytest.fixture(scope="module")
def motors(tmp_path_factory):
    """Start an inactive arm."""
    arm = Motors(tmp_path_factory.mktemp("motors"), fresh=True)
    try:
        assert arm.change_state("configure")
        yield arm
    finally:
        arm.close()


@pytest.fixture
def shared(motors):
    """Return the domain whose output is shown after a failure."""
    return motors.ros


def test_the_log_names_the_next_lifecycle_transition(motors, shared):
    shared.wait_for(lambda: "2 motors reply" in motors.process.output, "no log line")
    assert "ros2 lifecycle set /hardware activate" in motors.process.output
    assert "ros2 lifecycle set /hardware configure" in motors.process.output


def test_commands_with_old_state_stamps_are_rejected(motors, shared):
    old = to_time(motors.news().header.stamp.sec - 5.0)
    message = JointState(name=list(JOINTS), effort=[1.0, 1.0])
    message.header.stamp = old
    shared.publish(message, "joint_commands")
    status = motors.diagnosis(lambda values: "command_rejected" in values)
    assert "expected at most 0.1 s" in str(status)


def test_a_recording_contains_published_states_and_commands(tmp_path):
    folder = tmp_path / "run"
    arm = Motors(tmp_path, recording_path=folder)
    try:
        assert arm.change_state("configure")
        arm.activate()
        controller = arm.controller()
        commands = arm.ros.record(JointState, "joint_commands")
        arm.ros.wait_for(lambda: len(commands) > 150, "no commands")
        assert controller.stop() == 0
        assert arm.process.stop() == 0, arm.ros.report("")
        shown = arm.states.messages()
    finally:
        arm.close()
    found = {STATES: [], COMMANDS: [], REFERENCES: [], URDF: []}
    for topic, time, message in messages(folder):
        found[topic].append((time, message))
    assert len(found[COMMANDS]) > 40
    assert {tuple(m.name) for _, m in found[STATES]} == {JOINTS}
    times = np.array([time for time, _ in found[STATES]])
    assert (np.diff(times) > 0).all()
    assert len(found[URDF]) == 1
    recording = Recording.load(folder)
    errors = recording.position_error[np.isfinite(recording.position_error).all(axis=1)]
    assert len(errors) == len(found[REFERENCES]) > 0
    assert np.abs(errors).max() < 0.1
    assert recording.arm.joint_names == JOINTS
    at = np.searchsorted(times, [nanoseconds(m) - MICROSECOND for m in shown])
    written = [found[STATES][i][1] for i in at]
    assert all(
        abs(nanoseconds(w) - nanoseconds(m)) < MICROSECOND
        for w, m in zip(written, shown, strict=True)
    )
    assert [list(w.position) for w in written] == [list(m.position) for m in shown]


def test_an_existing_recording_folder_is_rejected(ros, tmp_path):
    node = ros.start("hardware", arm="so101", recording_path=tmp_path)
    assert node.wait() == 2
    assert "exists already" in node.output


def nanoseconds(message):
    """Return the stamp of a message [ns]."""
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
