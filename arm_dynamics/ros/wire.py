"""JointState messages as the middleware carries them: only what changes is converted.

Turning a JointState into Python objects costs more than everything else in a control tick.
From one message to the next only the stamp and the numbers differ, so these are read from and
written to the serialized bytes in place. Any message that does not fit what was learned goes
through the library's own conversion.
"""

from __future__ import annotations

import struct
import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.arrays import Vector

STAMP = struct.Struct("=iI")
AT = 4
"""The stamp stands right behind the four bytes that name the encoding."""
FIELDS = ("position", "velocity", "effort")


class Joints(NamedTuple):
    """A JointState's content; time [s]; fields as long as ``names``, or empty."""

    names: tuple[str, ...]
    time: float
    position: Vector
    velocity: Vector
    effort: Vector


def split(seconds: float) -> tuple[int, int]:
    """Whole seconds and nanoseconds."""
    whole = int(seconds // 1)
    carry, nanoseconds = divmod(round((seconds - whole) * 1e9), 1_000_000_000)
    return whole + carry, nanoseconds


def joints(message: JointState) -> Joints:
    """The content of a message."""
    stamp = message.header.stamp
    fields = (np.array(getattr(message, field), dtype=float) for field in FIELDS)
    return Joints(tuple(message.name), stamp.sec + stamp.nanosec * 1e-9, *fields)


def slots(data: bytes | bytearray) -> list[slice]:
    """Where the numbers of the three fields stand in a serialized JointState.

    Plain CDR: a string or sequence is a 4-byte length and its content; every item is aligned
    to its own size, counted from behind the encoding.
    Source: OMG DDS-XTypes 1.3, section 7.4.1.
    """
    at = _behind_string(data, AT + STAMP.size)
    count, at = _length(data, at)
    for _ in range(count):
        at = _behind_string(data, at)
    found = []
    for _ in FIELDS:
        count, at = _length(data, at)
        begin = _aligned(at, 8) if count else at
        at = begin + 8 * count
        found.append(slice(begin, at))
    return found


def _aligned(at: int, size: int) -> int:
    return at + (AT - at) % size


def _length(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """A length, and the place behind it."""
    at = _aligned(at, 4)
    return int.from_bytes(data[at : at + 4], sys.byteorder), at + 4


def _behind_string(data: bytes | bytearray, at: int) -> int:
    length, at = _length(data, at)
    return at + length


class JointStateReader:
    """Reads serialized JointStates of one layout fast, and those of any other correctly."""

    def __init__(self) -> None:
        self._size = -1
        self._names: tuple[str, ...] = ()
        self._fixed: list[tuple[slice, bytes]] = []
        self._slots: list[slice] = []

    def read(self, data: bytes) -> Joints:
        """The content of a serialized message."""
        if len(data) != self._size or any(data[part] != kept for part, kept in self._fixed):
            return self._learn(data)
        sec, nanosec = STAMP.unpack_from(data, AT)
        fields = (np.frombuffer(data[part]) for part in self._slots)
        return Joints(self._names, sec + nanosec * 1e-9, *fields)

    def _learn(self, data: bytes) -> Joints:
        content = joints(deserialize_message(data, JointState))
        self._size = -1
        places = slots(data)
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
        self._slots = [place for place in slots(self._bytes) if place.stop > place.start]

    def write(self, time: float, *values: Vector) -> bytes:
        """The message of ``time`` [s] with one vector per field."""
        STAMP.pack_into(self._bytes, AT, *split(time))
        for place, vector in zip(self._slots, values, strict=True):
            self._bytes[place] = vector.tobytes()
        return bytes(self._bytes)


def clock(time: float, head: bytes = bytes(serialize_message(Clock()))[:AT]) -> bytes:
    """A serialized Clock of ``time`` [s]."""
    return head + STAMP.pack(*split(time))
