"""Validated deserialization: size limits first, then conversion, with one error type for both.

Plain CDR: a string or sequence is a 4-byte length and its content. Every item is aligned to its
size, counted from the end of the 4-byte encoding header.

References
----------
OMG DDS-XTypes 1.3, section 7.4.1.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue

AT = 4
"""Offset [bytes] of the content, after the encoding header."""
STAMP = 8
"""Size [bytes] of a stamp, the first field of every header."""
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


USUAL = Limit(2**16)
LIMITS = {
    DiagnosticArray: Limit(2**20),
    JointTrajectory: Limit(2**24, "points", named=True),
    MultiDOFJointTrajectory: Limit(2**24, "points", named=True),
    Path: Limit(2**24, "poses"),
}


def decode(data: bytes, kind: type) -> Any:
    """Return the message of these bytes.

    Raises
    ------
    InvalidValue
        More bytes, names or points than the limit of ``kind``, checked before any of them becomes
        an object; or invalid bytes.

    """
    limit = LIMITS.get(kind, USUAL)
    if len(data) > limit.size:
        raise InvalidValue(f"message = {len(data)} bytes; expected at most {limit.size}")
    if limit.sequence:
        _check_sequence(data, limit)
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


def _check_sequence(data: bytes, limit: Limit) -> None:
    at = behind_string(data, AT + STAMP)
    if limit.named:
        count, at = length(data, at)
        check_names(count, 0)
        for _ in range(count):
            size, at = length(data, at)
            check_names(0, size - 1)
            at += size
    check_points(length(data, at)[0], limit.sequence)


def aligned(at: int, size: int) -> int:
    """Return the first offset from ``at`` on that is aligned for an item of this size."""
    return at + (AT - at) % size


def length(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return a length and the offset after it; raise InvalidValue at the end of the message."""
    at = aligned(at, 4)
    if at + 4 > len(data):
        raise InvalidValue(
            f"message = {len(data)} bytes; expected at least {at + 4}: it is truncated"
        )
    # The second byte is odd if numbers are little-endian.
    return int.from_bytes(data[at : at + 4], "little" if data[1] & 1 else "big"), at + 4


def behind_string(data: bytes | bytearray, at: int) -> int:
    """Return the offset after a string."""
    size, at = length(data, at)
    return at + size


def listen(
    node: Node,
    kind: type,
    topic: str,
    take: Callable[[Any], None],
    profile: QoSProfile | int,
    refuse: Callable[[str], object],
) -> Subscription:
    """Subscribe and pass messages to ``take``; invalid messages never raise in the executor.

    ``refuse`` receives the text of each error of this package, of invalid bytes and of content
    that ``take`` rejects.
    """

    def heard(data: bytes) -> None:
        try:
            take(decode(data, kind))
        except ArmDynamicsError as error:
            refuse(str(error))

    return node.create_subscription(kind, topic, heard, profile, raw=True)
