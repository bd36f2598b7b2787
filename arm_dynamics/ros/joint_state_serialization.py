"""Fast serialization of JointState messages: only stamp and numbers are converted.

Converting a JointState into Python objects takes longer than the rest of a control cycle.
Consecutive messages differ only in stamp and numbers, which are read from and written to the
serialized bytes in place. A message of another layout goes through the library's conversion.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.ros.decode import AT, aligned, behind_string, decode, length

STAMP = struct.Struct("=iI")
FIELDS = ("position", "velocity", "effort")


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
    at = behind_string(data, AT + STAMP.size)
    count, at = length(data, at)
    for _ in range(count):
        at = behind_string(data, at)
    ranges = []
    for _ in FIELDS:
        count, at = length(data, at)
        begin = aligned(at, 8) if count else at
        at = begin + 8 * count
        ranges.append(slice(begin, at))
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
        if len(data) != self._size or any(data[part] != kept for part, kept in self._fixed):
            return self._learn(data)
        sec, nanosec = STAMP.unpack_from(data, AT)
        fields = (np.frombuffer(data[part]) for part in self._slots)
        return JointStateContent(self._names, seconds(sec, nanosec), *fields)

    def _learn(self, data: bytes) -> JointStateContent:
        content = decode_joint_state(decode(data, JointState))
        self._size = -1
        places = field_offsets(data)
        if all(
            data[p] == getattr(content, f).tobytes() for p, f in zip(places, FIELDS, strict=True)
        ):
            self._size, self._names, self._slots = len(data), content.names, places
            edges = [slice(0, AT), slice(AT + STAMP.size, places[0].start)]
            edges += [slice(a.stop, b.start) for a, b in pairwise(places)]
            self._fixed = [(edge, data[edge]) for edge in edges]
        return content


class JointStateWriter:
    """Serializes JointStates whose names and frame never change."""

    def __init__(self, names: tuple[str, ...], fields: tuple[str, ...], frame: str = "") -> None:
        zeros = {field: [0.0] * len(names) for field in fields}
        message = JointState(name=list(names), **zeros)
        message.header.frame_id = frame
        self._bytes = bytearray(serialize_message(message))
        self._slots = [place for place in field_offsets(self._bytes) if place.stop > place.start]

    def write(self, time: float, *values: Vector) -> bytes:
        """Return the message of ``time`` [s] with one vector (n,) per field."""
        STAMP.pack_into(self._bytes, AT, *split_time(time))
        for place, vector in zip(self._slots, values, strict=True):
            self._bytes[place] = vector.tobytes()
        return bytes(self._bytes)


def clock(time: float, head: bytes = bytes(serialize_message(Clock()))[:AT]) -> bytes:
    """Return a serialized Clock of ``time`` [s]."""
    return head + STAMP.pack(*split_time(time))
