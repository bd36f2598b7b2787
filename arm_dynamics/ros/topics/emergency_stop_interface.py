"""Emergency stop by service, topic or signal; requests from displays."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.signals import emergency_signal
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.mailbox import Mailbox
from arm_dynamics.ros.messages.serialization import decode
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.services import serve
from arm_dynamics.safety.events import Events

TOPIC = "emergency_stop"
# A reliable reader gets lost messages again; only a best-effort one receives every publisher.
READERS = (
    QoSProfile(depth=10),
    QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
)


class EmergencyStopInterface:
    """Calls ``engage(source)`` and ``reset()`` in the loop's thread; both return a message.

    The services ``~/emergency_stop`` and ``~/reset_emergency_stop`` respond with that message, or
    with that of the error that ``reset`` raises. On the topic only true is accepted: false resets
    nothing.
    """

    def __init__(
        self,
        node: Node,
        requests: LoopRequests,
        events: Events,
        engage: Callable[[str], str],
        reset: Callable[[], str],
    ) -> None:
        self._engage = engage
        self._boxes = [Mailbox(node, Bool, TOPIC, reader) for reader in READERS]
        self._events = events
        self._signalled = False

        def note_signal() -> None:
            self._signalled = True

        emergency_signal.connect(note_signal)
        engage_by_service = partial(engage, "service")
        serve(node, Trigger, "~/emergency_stop", lambda _: requests.call(engage_by_service))
        serve(node, Trigger, "~/reset_emergency_stop", lambda _: requests.call(reset))

    def poll(self) -> None:
        """Engage if the topic or the signal requested it since the last call; for the loop."""
        if self._signalled:
            self._signalled = False
            self._engage("signal SIGUSR1")
        pressed = False
        for box in self._boxes:
            for taken in box.take():
                try:
                    pressed |= decode(taken.data, Bool).data
                except InvalidValue as error:
                    self._events.report("emergency_stop_rejected", f"{box.topic}: {error}")
        if pressed:
            self._engage(f"topic {TOPIC}")


REPEAT_TIME = 3.0
"""Time [s] for which a request is repeated: its subscriber may not be discovered yet."""
REPEAT_PERIOD = 0.05
"""Time [s] between two publications of a request by a signal."""


def publish_emergency_signal(node: Node) -> None:
    """Publish ``emergency_stop`` for REPEAT_TIME when the process receives SIGUSR1.

    A timer publishes, because a signal handler must not use ROS.
    """
    until, publishers = 0.0, list[Any]()

    def press() -> None:
        nonlocal until
        until = time.monotonic() + REPEAT_TIME

    def repeat() -> None:
        if time.monotonic() < until:
            if not publishers:
                node.get_logger().warning(f"signal SIGUSR1: publishing {TOPIC}")
                publishers.append(node.create_publisher(Bool, TOPIC, qos.STREAM))
            publishers[0].publish(Bool(data=True))

    wall_timer(node, REPEAT_PERIOD, repeat)
    emergency_signal.connect(press)


class StopRequest:
    """Publishes ``emergency_stop`` after ``press`` until an arm reports it."""

    def __init__(self, node: Node, status: DiagnosticsSummary) -> None:
        self._publisher = node.create_publisher(Bool, TOPIC, qos.STREAM)
        self._status, self._until = status, 0.0

    def press(self) -> None:
        """Publish immediately; from any thread."""
        self._publisher.publish(Bool(data=True))
        self._until = time.monotonic() + REPEAT_TIME

    def repeat(self) -> None:
        """Publish again if no arm has reported the stop; for the display's loop."""
        if self._status.stopped:
            self._until = 0.0  # a later reset must not be undone
        elif time.monotonic() < self._until:
            self._publisher.publish(Bool(data=True))
