"""Serialization of messages: validated, and fast for joint states.

``decode`` checks the size limits before it converts, and raises one error type for both.

Converting a JointState into Python objects takes longer than the rest of a control cycle.
Consecutive messages differ only in stamp and numbers, which are read from and written to the
serialized bytes in place. A message of another layout goes through the library's conversion.

Plain CDR: a string or sequence is a 4-byte length and its content. Every item is aligned to its
size, counted from the end of the 4-byte encoding header.

References
----------
OMG DDS-XTypes 1.3, section 7.4.1.

"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.subscription import Subscription
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue

HEADER_SIZE = 4
"""Size [bytes] of the encoding header, after which the content starts."""
STAMP = struct.Struct("=iI")
"""Seconds and nanoseconds, the first field of every header."""
FIELDS = ("position", "velocity", "effort")
"""Fields of a JointState, in the order of the message."""
POINTS = 20_000
"""Maximum number of waypoints of a trajectory, or poses of a path."""
NAMES = 1_000
"""Maximum number of joint names in a message."""
MAX_NAME_LENGTH = 256
"""Maximum size [bytes] of a name."""


class Limit(NamedTuple):
    """Maximum ``size`` [bytes]; ``sequence`` follows the header, after joint_names if ``named``."""

    size: int
    sequence: str = ""
    named: bool = False


DEFAULT_LIMIT = Limit(2**16)
LIMITS = {
    DiagnosticArray: Limit(2**20),
    JointTrajectory: Limit(2**24, "points", named=True),
    MultiDOFJointTrajectory: Limit(2**24, "points", named=True),
    Path: Limit(2**24, "poses"),
    String: Limit(2**20),
}


def decode(data: bytes, kind: type) -> Any:
    """Return the message of these bytes.

    Raises
    ------
    InvalidValue
        More bytes, names or points than the limit of ``kind``, checked before any of them becomes
        an object; or invalid bytes.

    """
    limit = LIMITS.get(kind, DEFAULT_LIMIT)
    if len(data) > limit.size:
        raise InvalidValue(f"message = {len(data)} bytes; expected at most {limit.size}")
    if limit.sequence:
        offset = after_string(data, HEADER_SIZE + STAMP.size)
        if limit.named:
            count, offset = length(data, offset)
            check_names(count, 0)
            for _ in range(count):
                size, offset = length(data, offset)
                check_names(0, size - 1)
                offset += size
        check_points(length(data, offset)[0], limit.sequence)
    try:
        return deserialize_message(data, kind)
    except Exception as error:  # RMWError, MemoryError and more, by middleware and message
        raise InvalidValue(
            f"message = {len(data)} bytes; expected a {kind.__name__}: {error}"
        ) from error


def check_points(count: int, what: str = "points") -> None:
    """Raise InvalidValue for more than ``POINTS``."""
    if count > POINTS:
        raise InvalidValue(f"{what} = {count}; expected at most {POINTS}: send it in parts")


def check_names(names: int, longest: int) -> None:
    """Raise InvalidValue for more than ``NAMES`` joints or ``MAX_NAME_LENGTH`` bytes of a name."""
    if names > NAMES:
        raise InvalidValue(f"joint_names = {names}; expected at most {NAMES}")
    if longest > MAX_NAME_LENGTH:
        raise InvalidValue(f"joint name of {longest} bytes; expected at most {MAX_NAME_LENGTH}")


def aligned(offset: int, size: int) -> int:
    """Return the first offset from ``offset`` on that is aligned for an item of this size."""
    return offset + (HEADER_SIZE - offset) % size


def length(data: bytes | bytearray, offset: int) -> tuple[int, int]:
    """Return a length and the offset after it; raise InvalidValue at the end of the message."""
    offset = aligned(offset, 4)
    if offset + 4 > len(data):
        raise InvalidValue(
            f"message = {len(data)} bytes; expected at least {offset + 4}: it is truncated"
        )
    # The second byte is odd if numbers are little-endian.
    return int.from_bytes(data[offset : offset + 4], "little" if data[1] & 1 else "big"), offset + 4


def after_string(data: bytes | bytearray, offset: int) -> int:
    """Return the offset after a string."""
    size, offset = length(data, offset)
    return offset + size


def listen(
    node: Node,
    kind: type,
    topic: str,
    take: Callable[[Any], None],
    profile: QoSProfile | int,
    reject: Callable[[str], object],
) -> Subscription:
    """Subscribe and pass messages to ``take``; invalid messages never raise in the executor.

    ``reject`` receives the text of each error of this package, of invalid bytes and of content
    that ``take`` rejects.
    """

    def receive(data: bytes) -> None:
        try:
            take(decode(data, kind))
        except ArmDynamicsError as error:
            reject(str(error))

    return node.create_subscription(kind, topic, receive, profile, raw=True)


class JointStateContent(NamedTuple):
    """Content of a JointState; time [s]; fields (n,) for n ``names``, or empty."""

    names: tuple[str, ...]
    time: float
    position: Vector
    velocity: Vector
    effort: Vector


def split_time(seconds: float) -> tuple[int, int]:
    """Return whole seconds and nanoseconds."""
    whole = int(seconds // 1)
    carry, nanoseconds = divmod(round((seconds - whole) * 1e9), 1_000_000_000)
    return whole + carry, nanoseconds


def seconds(sec: int, nanosec: int) -> float:
    """Return a stamp in seconds; raise InvalidValue for an invalid one."""
    if nanosec >= 1_000_000_000 or sec >= 2**31 - 1:
        raise InvalidValue(f"stamp = {sec} s + {nanosec} ns; expected fewer than 1e9 ns")
    return sec + nanosec * 1e-9


def decode_joint_state(message: JointState) -> JointStateContent:
    """Return the content of a message; raise InvalidValue for an invalid stamp."""
    stamp = message.header.stamp
    fields = (np.array(getattr(message, field), dtype=float) for field in FIELDS)
    return JointStateContent(tuple(message.name), seconds(stamp.sec, stamp.nanosec), *fields)


def field_offsets(data: bytes | bytearray) -> list[slice]:
    """Return the byte ranges of the three fields in a serialized JointState.

    Raise InvalidValue for a length beyond the end.
    """
    offset = after_string(data, HEADER_SIZE + STAMP.size)
    count, offset = length(data, offset)
    for _ in range(count):
        offset = after_string(data, offset)
    ranges = []
    for _ in FIELDS:
        count, offset = length(data, offset)
        begin = aligned(offset, 8) if count else offset
        offset = begin + 8 * count
        ranges.append(slice(begin, offset))
    return ranges


class JointStateReader:
    """Reads serialized JointStates, fast if their layout does not change."""

    def __init__(self) -> None:
        self._size = -1
        self._names: tuple[str, ...] = ()
        self._fixed: list[tuple[slice, bytes]] = []
        self._slots: list[slice] = []

    def read(self, data: bytes) -> JointStateContent:
        """Return the content of a serialized message; raise InvalidValue for an invalid one."""
        if len(data) != self._size or any(data[span] != expected for span, expected in self._fixed):
            return self._read_layout(data)
        sec, nanosec = STAMP.unpack_from(data, HEADER_SIZE)
        fields = (np.frombuffer(data[span]) for span in self._slots)
        return JointStateContent(self._names, seconds(sec, nanosec), *fields)

    def _read_layout(self, data: bytes) -> JointStateContent:
        content = decode_joint_state(decode(data, JointState))
        self._size = -1
        spans = field_offsets(data)
        if all(
            data[p] == getattr(content, f).tobytes() for p, f in zip(spans, FIELDS, strict=True)
        ):
            self._size, self._names, self._slots = len(data), content.names, spans
            edges = [slice(0, HEADER_SIZE), slice(HEADER_SIZE + STAMP.size, spans[0].start)]
            edges += [slice(a.stop, b.start) for a, b in pairwise(spans)]
            self._fixed = [(edge, data[edge]) for edge in edges]
        return content


class JointStateWriter:
    """Serializes JointStates whose names and frame never change."""

    def __init__(self, names: tuple[str, ...], fields: tuple[str, ...], frame: str = "") -> None:
        zeros = {span: [0.0] * len(names) for span in fields}
        message = JointState(name=list(names), **zeros)
        message.header.frame_id = frame
        self._bytes = bytearray(serialize_message(message))
        self._slots = [span for span in field_offsets(self._bytes) if span.stop > span.start]

    def write(self, time: float, *values: Vector) -> bytes:
        """Return the message of ``time`` [s] with one vector (n,) per field."""
        STAMP.pack_into(self._bytes, HEADER_SIZE, *split_time(time))
        for span, vector in zip(self._slots, values, strict=True):
            self._bytes[span] = vector.tobytes()
        return bytes(self._bytes)


def clock(time: float, head: bytes = bytes(serialize_message(Clock()))[:HEADER_SIZE]) -> bytes:
    """Return a serialized Clock of ``time`` [s]."""
    return head + STAMP.pack(*split_time(time))
