"""Requests of an emergency stop by a button of a display."""

from __future__ import annotations

import time

from rclpy.node import Node
from std_msgs.msg import Bool

from arm_dynamics.ros import qos
from arm_dynamics.ros.emergency_stop import TOPIC
from arm_dynamics.ros.status import Status

PRESSED = 3.0
"""Time [s] for which a pressed button is repeated: its subscriber may not be discovered yet."""


class StopRequest:
    """Publishes ``emergency_stop`` after ``press`` until an arm reports that it is engaged."""

    def __init__(self, node: Node, status: Status) -> None:
        self._publisher = node.create_publisher(Bool, TOPIC, qos.STREAM)
        self._status, self._until = status, 0.0

    def press(self) -> None:
        """Publish at once; from any thread."""
        self._publisher.publish(Bool(data=True))
        self._until = time.monotonic() + PRESSED

    def look(self) -> None:
        """Publish again where no arm has reported the stop; from the display's loop."""
        if self._status.stopped:
            self._until = 0.0  # a reset that follows must not be undone
        elif time.monotonic() < self._until:
            self._publisher.publish(Bool(data=True))
