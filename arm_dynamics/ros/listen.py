"""Subscriptions that an executor serves: no bytes and no content raise in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.ros.decode import decode


def listen(
    node: Node,
    kind: type,
    topic: str,
    take: Callable[[Any], None],
    profile: QoSProfile | int,
    refuse: Callable[[str], object],
) -> Subscription:
    """Hand messages to ``take``.

    ``refuse`` gets the text of each error of this package: of bytes that cannot be read, and of
    content that ``take`` raises for.
    """

    def heard(data: bytes) -> None:
        try:
            take(decode(data, kind))
        except ArmDynamicsError as error:
            refuse(str(error))

    return node.create_subscription(kind, topic, heard, profile, raw=True)
