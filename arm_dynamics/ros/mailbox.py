"""A subscription read by the loop itself instead of by an executor.

An executor rebuilds its whole wait set around every message; a loop at 1 kHz cannot pay that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile

from arm_dynamics.ros.raw_take import RawTake, Taken


class _NoExecutor(CallbackGroup):
    """Keeps an executor's hands off the subscriptions in it."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class Mailbox:
    """Serialized messages of one topic, waited for and taken by the calling thread."""

    def __init__(self, node: Node, message: type, topic: str, qos: QoSProfile | int) -> None:
        self._subscription = node.create_subscription(
            message, topic, _never, qos, callback_group=_NoExecutor(), raw=True
        )
        self.topic = self._subscription.topic_name
        self._most = qos if isinstance(qos, int) else qos.depth
        self._take = RawTake(self._subscription)
        self._waiting = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)

    def wait(self, timeout: float) -> bool:
        """Whether a message came within ``timeout`` [s]."""
        self._waiting.clear_entities()
        self._waiting.add_subscription(self._subscription.handle)
        self._waiting.wait(int(timeout * 1e9))
        return bool(self._waiting.get_ready_entities("subscription"))

    def take(self) -> Iterator[Taken]:
        """Those that wait, oldest first; at most as many as the queue holds."""
        for _ in range(self._most):
            taken = self._take.take()
            if taken is None:
                return
            yield taken


def _never(_: Any) -> None:
    raise AssertionError("an executor took a message of a mailbox")
