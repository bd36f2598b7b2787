"""A subscription read by the loop itself instead of by an executor.

An executor rebuilds its whole wait set around every message; a loop at 1 kHz cannot pay that.
"""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile


class _NoExecutor(CallbackGroup):
    """Keeps an executor's hands off the subscriptions in it."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class Mailbox:
    """Messages of one topic, waited for and taken by the calling thread; bytes if ``raw``.

    ``received`` is when the middleware got the message taken last [s].
    """

    def __init__(
        self, node: Node, message: type, topic: str, qos: QoSProfile | int, *, raw: bool = False
    ) -> None:
        self._raw = raw
        self._subscription = node.create_subscription(
            message, topic, _never, qos, callback_group=_NoExecutor(), raw=raw
        )
        self.received = 0.0
        self._waiting = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)

    def wait(self, timeout: float) -> bool:
        """Whether a message came within ``timeout`` [s]."""
        self._waiting.clear_entities()
        self._waiting.add_subscription(self._subscription.handle)
        self._waiting.wait(int(timeout * 1e9))
        return bool(self._waiting.get_ready_entities("subscription"))

    def take(self) -> Any | None:
        """The message, or None; with a depth of 1 it is the newest."""
        taken = self._subscription.handle.take_message(self._subscription.msg_type, self._raw)
        if taken is None:
            return None
        message, info = taken
        self.received = info["received_timestamp"] * 1e-9
        return message

    @property
    def publishers(self) -> int:
        """How many publishers the topic has."""
        return int(self._subscription.get_publisher_count())


def _never(_: Any) -> None:
    raise AssertionError("an executor took a message of a mailbox")
