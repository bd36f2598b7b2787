"""JointState messages as the middleware carries them: only what changes is converted.

Turning a JointState into Python objects costs more than everything else in a control tick.
From one message to the next only the stamp and the numbers differ, so these are read from and
written to the serialized bytes in place. Any message that does not fit what was learned goes
through the library's own conversion.
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
    """A JointState's content; time [s]; fields as long as ``names``, or empty."""

    names: tuple[str, ...]
    time: float
    position: Vector
    velocity: Vector
    effort: Vector


def split_time(seconds: float) -> tuple[int, int]:
    """Whole seconds and nanoseconds."""
    whole = int(seconds // 1)
    carry, nanoseconds = divmod(round((seconds - whole) * 1e9), 1_000_000_000)
    return whole + carry, nanoseconds


def seconds(sec: int, nanosec: int) -> float:
    """A stamp as seconds; raises InvalidValue for one that is no time."""
    if nanosec >= 1_000_000_000 or sec >= 2**31 - 1:
        raise InvalidValue(f"stamp = {sec} s + {nanosec} ns; expected fewer than 1e9 ns")
    return sec + nanosec * 1e-9


def decode_joint_state(message: JointState) -> JointStateContent:
    """The content of a message; raises InvalidValue for a stamp that is no time."""
    stamp = message.header.stamp
    fields = (np.array(getattr(message, field), dtype=float) for field in FIELDS)
    return JointStateContent(tuple(message.name), seconds(stamp.sec, stamp.nanosec), *fields)


def field_offsets(data: bytes | bytearray) -> list[slice]:
    """Where the numbers of the three fields stand in a serialized JointState.

    Raises InvalidValue where a length leads beyond the end.
    """
    at = behind_string(data, AT + STAMP.size)
    count, at = length(data, at)
    for _ in range(count):
        at = behind_string(data, at)
    found = []
    for _ in FIELDS:
        count, at = length(data, at)
        begin = aligned(at, 8) if count else at
        at = begin + 8 * count
        found.append(slice(begin, at))
    return found


class JointStateReader:
    """Reads serialized JointStates of one layout fast, and those of any other correctly."""

    def __init__(self) -> None:
        self._size = -1
        self._names: tuple[str, ...] = ()
        self._fixed: list[tuple[slice, bytes]] = []
        self._slots: list[slice] = []

    def read(self, data: bytes) -> JointStateContent:
        """The content of a serialized message; raises InvalidValue where it has none."""
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
        """The message of ``time`` [s] with one vector per field."""
        STAMP.pack_into(self._bytes, AT, *split_time(time))
        for place, vector in zip(self._slots, values, strict=True):
            self._bytes[place] = vector.tobytes()
        return bytes(self._bytes)


def clock(time: float, head: bytes = bytes(serialize_message(Clock()))[:AT]) -> bytes:
    """A serialized Clock of ``time`` [s]."""
    return head + STAMP.pack(*split_time(time))
