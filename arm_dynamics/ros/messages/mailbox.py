"""Subscription polled by a control loop, with the GID of each message's publisher.

An executor rebuilds its wait set for every message, which is too slow for a loop at 1 kHz. rclpy
omits the GID; rcl provides it in ``rmw_message_info_t``, and
``Node.get_publishers_info_by_topic`` returns the node of each GID. The structures are those of
rcl and rmw since ROS 2 Iron.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile

TAKEN, NOTHING = 0, 401
"""rcl's return codes RCL_RET_OK and RCL_RET_SUBSCRIPTION_TAKE_FAILED."""
SPACE = 4096
"""Initial size [bytes] of a buffer; rmw enlarges it for longer messages."""


class Taken(NamedTuple):
    """Received message: bytes, time of reception [s], GID of the publisher (b"" if unknown)."""

    data: bytes
    received: float
    publisher: bytes


class _Info(ctypes.Structure):
    """rmw_message_info_t, with space for fields of later versions."""

    _fields_ = (
        ("source_timestamp", ctypes.c_int64),
        ("received_timestamp", ctypes.c_int64),
        ("publication_sequence_number", ctypes.c_uint64),
        ("reception_sequence_number", ctypes.c_uint64),
        ("implementation", ctypes.c_void_p),
        ("gid", ctypes.c_uint8 * 16),
        ("more", ctypes.c_uint8 * 128),
    )


class _Allocator(ctypes.Structure):
    """rcutils_allocator_t."""

    _fields_ = (("functions", ctypes.c_void_p * 5),)


class _Buffer(ctypes.Structure):
    """rcl_serialized_message_t."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("allocator", _Allocator),
    )


@cache
def _rcl() -> Any:
    """Return the rcl library loaded in this process, or None."""
    try:
        rcl: Any = ctypes.CDLL("librcl.so")
        rcl.rcutils_get_default_allocator.restype = _Allocator
        rcl.rcutils_uint8_array_init.argtypes = (
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
        )
        rcl.rcutils_uint8_array_fini.argtypes = (ctypes.c_void_p,)
        rcl.rcl_take_serialized_message.argtypes = (ctypes.c_void_p,) * 4
        rcl.rmw_get_implementation_identifier.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return rcl


class RawTake:
    """Takes messages from one subscription; all methods are for one thread."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription
        self._info, self._buffer = _Info(), _Buffer()
        self._library = _rcl()
        if self._library is None:
            return
        allocator = self._library.rcutils_get_default_allocator()
        self._implementation = self._library.rmw_get_implementation_identifier()
        buffer, default = ctypes.byref(self._buffer), ctypes.byref(allocator)
        if self._library.rcutils_uint8_array_init(buffer, SPACE, default) != TAKEN:
            self._library = None

    def __del__(self) -> None:
        if self._library is not None:
            self._library.rcutils_uint8_array_fini(ctypes.byref(self._buffer))

    def take(self) -> Taken | None:
        """Return the oldest waiting message, or None."""
        if self._library is None:
            taken = self._subscription.handle.take_message(self._subscription.msg_type, True)
            if taken is None:
                return None
            data, info = taken
            return Taken(data, info["received_timestamp"] * 1e-9, b"")
        code = self._library.rcl_take_serialized_message(
            self._subscription.handle.pointer,
            ctypes.byref(self._buffer),
            ctypes.byref(self._info),
            None,
        )
        if code != TAKEN:
            if code != NOTHING:
                self._library.rcutils_reset_error()
            return None
        # Another layout of the structure would have a different value here.
        known_layout = self._info.implementation == self._implementation
        return Taken(
            ctypes.string_at(self._buffer.data, self._buffer.length),
            self._info.received_timestamp * 1e-9,
            bytes(self._info.gid) if known_layout else b"",
        )


class _NoExecutor(CallbackGroup):
    """Excludes its subscriptions from execution by an executor."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class Mailbox:
    """Serialized messages of one topic, received by the calling thread."""

    def __init__(self, node: Node, message: type, topic: str, qos: QoSProfile | int) -> None:
        self._subscription = node.create_subscription(
            message, topic, _never, qos, callback_group=_NoExecutor(), raw=True
        )
        self.topic = self._subscription.topic_name
        self._depth = qos if isinstance(qos, int) else qos.depth
        self._take = RawTake(self._subscription)
        self._waiting = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)

    def wait(self, timeout: float) -> bool:
        """Return whether a message is received within ``timeout`` [s]."""
        self._waiting.clear_entities()
        self._waiting.add_subscription(self._subscription.handle)
        self._waiting.wait(int(timeout * 1e9))
        return bool(self._waiting.get_ready_entities("subscription"))

    def take(self) -> Iterator[Taken]:
        """Yield waiting messages, oldest first; at most the depth of the queue."""
        for _ in range(self._depth):
            taken = self._take.take()
            if taken is None:
                return
            yield taken


def _never(_: Any) -> None:
    raise AssertionError("an executor took a message of a mailbox")
