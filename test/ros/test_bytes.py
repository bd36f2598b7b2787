"""Invalid bytes and messages beyond the size limits are rejected with an error of the package."""

import random
import struct

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import (
    Pose,
    PoseStamped,
    Transform,
    Twist,
    TwistStamped,
    WrenchStamped,
)
from nav_msgs.msg import Path
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, Header
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)

from arm_dynamics import load_arm
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.ros.messages import conversions
from arm_dynamics.ros.messages.conversions import Frames
from arm_dynamics.ros.messages.serialization import (
    LIMITS,
    MAX_NAME_LENGTH,
    NAMES,
    POINTS,
    JointStateReader,
    JointStateWriter,
    decode,
)
from arm_dynamics.ros.topics.capability_topics import read_available
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary

ARM = load_arm("five_dof")
NAMES_OF_ARM = list(ARM.joint_names)
TRIES = 2000
"""Mutations of each topic's message."""

ZEROS = [0.0] * 5
FRAMES = Frames(ARM.base_frame, ARM.tool_frame)
HEADER = Header(frame_id=FRAMES.base)
UPRIGHT = Pose()
POINT = JointTrajectoryPoint(positions=ZEROS, velocities=ZEROS, accelerations=ZEROS)
POINT.time_from_start.sec = 1
PLACED = MultiDOFJointTrajectoryPoint(transforms=[Transform()], velocities=[Twist()])


def joint_states(reader=JointStateReader()):  # noqa: B008 - as a node keeps it, with what it learnt
    return lambda data: conversions.read_state(ARM.joint_names, reader.read(data))


def joint_commands(reader=JointStateReader()):  # noqa: B008
    return lambda data: conversions.read_command(ARM.joint_names, reader.read(data))


def read_by(kind, take):
    return lambda data: take(decode(data, kind))


TOPICS = {
    "joint_states": (
        JointState(header=HEADER, name=NAMES_OF_ARM, position=ZEROS, velocity=ZEROS, effort=ZEROS),
        joint_states(),
    ),
    "joint_commands": (JointState(name=NAMES_OF_ARM, effort=ZEROS), joint_commands()),
    "voltage_commands": (
        Float64MultiArray(data=ZEROS),
        read_by(
            Float64MultiArray, lambda m: conversions.read_voltage(NAMES_OF_ARM, NAMES_OF_ARM, m, 0)
        ),
    ),
    "joint_trajectory": (
        JointTrajectory(header=HEADER, joint_names=NAMES_OF_ARM, points=[POINT]),
        read_by(JointTrajectory, lambda m: conversions.read_trajectory(ARM, m, 0.0)),
    ),
    "target_pose": (
        PoseStamped(header=HEADER, pose=UPRIGHT),
        read_by(PoseStamped, lambda m: conversions.read_pose(FRAMES, m)),
    ),
    "target_twist": (
        TwistStamped(header=HEADER),
        read_by(TwistStamped, lambda m: conversions.read_twist(FRAMES, m)),
    ),
    "target_wrench": (
        WrenchStamped(header=HEADER),
        read_by(WrenchStamped, lambda m: conversions.read_wrench(FRAMES, m)),
    ),
    "path": (
        Path(header=HEADER, poses=[PoseStamped(header=HEADER, pose=UPRIGHT)]),
        read_by(Path, lambda m: conversions.read_path(FRAMES, m)),
    ),
    "trajectory": (
        MultiDOFJointTrajectory(header=HEADER, joint_names=[ARM.tool_frame], points=[PLACED]),
        read_by(MultiDOFJointTrajectory, lambda m: conversions.read_timed_poses(FRAMES, m)),
    ),
    "capabilities": (
        DiagnosticArray(
            status=[
                DiagnosticStatus(
                    name="R1", values=[KeyValue(key="available_interfaces", value="effort")]
                )
            ]
        ),
        read_by(DiagnosticArray, read_available),
    ),
    "/diagnostics": (
        DiagnosticArray(
            status=[
                DiagnosticStatus(name="simulator", hardware_id="arm_dynamics", values=[KeyValue()])
            ]
        ),
        read_by(DiagnosticArray, DiagnosticsSummary().read),
    ),
    "emergency_stop": (Bool(data=True), read_by(Bool, lambda m: m.data)),
}
LENGTHS = (0, 1, 255, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


def mutated(good, rng):
    """Return a truncated, bit-flipped, over-long or otherwise damaged copy."""
    data = bytearray(good)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(6):
            case 0:
                del data[at:]
            case 1 if data:
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                data[at & ~3 : (at & ~3) + 4] = struct.pack("<I", rng.choice(LENGTHS))
            case 3:
                data[at:at] = rng.randbytes(rng.choice((1, 4, 8, 1000)))
            case 4 if data:
                data[at] = rng.randrange(128, 256)  # no UTF-8 within a string
            case 5:
                del data[at : at + rng.choice((1, 4, 8))]
    return bytes(data)


@pytest.mark.parametrize("topic", TOPICS)
def test_damaged_bytes_raise_only_package_errors(topic):
    message, read = TOPICS[topic]
    good, rng, rejected = bytes(serialize_message(message)), random.Random(topic), 0
    read(good)
    for _ in range(TRIES):
        try:
            read(mutated(good, rng))
        except ArmDynamicsError:
            rejected += 1
    assert rejected > TRIES / 20
    read(good)  # what was learnt of damaged ones does no harm


def test_a_command_can_contain_any_decoded_stamp():
    """Each decoded stamp can be encoded again."""
    good = bytes(serialize_message(TOPICS["joint_states"][0]))
    writer, rng, read = JointStateWriter(ARM.joint_names, ("effort",)), random.Random(1), 0
    reader = JointStateReader()
    for i in range(TRIES):
        data = bytearray(good)
        data[4:12] = rng.randbytes(8) if i % 3 else b"\xff\xff\xff\x7f" + rng.randbytes(4)
        try:
            content = reader.read(bytes(data))
        except InvalidValue:
            continue
        read += 1
        writer.write(content.time, np.zeros(5))
    assert read > 100


def test_a_message_of_the_other_byte_order_is_decoded_quickly():
    """Decoded in the wrong byte order, 5 names would be 83 million."""
    data = b"\0\0\0\0" + struct.pack(">iIIxxxxI", 1, 2, 1, 5)
    data += b"".join(struct.pack(">I", 3) + f"R{i}".encode() + b"\0\0" for i in range(1, 6))
    data += struct.pack(">III", 0, 0, 0)
    content = JointStateReader().read(data)
    assert content.names == ARM.joint_names
    assert content.time == 1.000000002


# --- limits


def many(kind, count):
    """Return the bytes of a message with ``count`` points."""
    message, _ = TOPICS[{JointTrajectory: "joint_trajectory", Path: "path"}.get(kind, "trajectory")]
    sequence = LIMITS[kind].sequence
    names = {"joint_names": message.joint_names} if LIMITS[kind].named else {}
    items = [getattr(message, sequence)[0]] * count
    return bytes(serialize_message(kind(header=HEADER, **names, **{sequence: items})))


@pytest.mark.parametrize("kind", [JointTrajectory, MultiDOFJointTrajectory, Path])
def test_points_beyond_the_limit_are_rejected_by_their_number(kind, monkeypatch):
    data = many(kind, POINTS + 1)
    monkeypatch.setattr(
        "arm_dynamics.ros.messages.serialization.deserialize_message",
        lambda *_: pytest.fail("it was converted"),
    )
    with pytest.raises(InvalidValue, match=rf"= {POINTS + 1}; expected at most {POINTS}"):
        decode(data, kind)


def test_the_limit_of_points_is_accepted():
    assert len(decode(many(JointTrajectory, POINTS), JointTrajectory).points) == POINTS


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (JointTrajectory(joint_names=["a"] * (NAMES + 1)), f"joint_names = {NAMES + 1}"),
        (
            JointTrajectory(joint_names=["a" * (MAX_NAME_LENGTH + 1)]),
            f"joint name of {MAX_NAME_LENGTH + 1} bytes",
        ),
        (JointState(name=["a" * 70_000]), "bytes; expected at most 65536"),
        (Float64MultiArray(data=[0.0] * 10_000), "bytes; expected at most 65536"),
    ],
)
def test_names_and_sizes_beyond_the_limit_are_rejected(message, words):
    with pytest.raises(InvalidValue, match=words):
        decode(bytes(serialize_message(message)), type(message))
