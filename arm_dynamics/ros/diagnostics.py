"""Once a second: how a node is doing, as /diagnostics shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

PERIOD = 1.0

Report = tuple[bool, str, Mapping[str, str]]
"""(all well, one line, values)."""


class Diagnostics:
    """Publishes what ``report`` says about a node, once a second of wall time."""

    def __init__(self, node: Node, report: Callable[[], Report]) -> None:
        self._node = node
        self._report = report
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A timer on simulated time would fall silent when the simulation does.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self.publish, clock=steady)

    def publish(self) -> None:
        """Publish one array with one status."""
        well, summary, values = self._report()
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK if well else DiagnosticStatus.WARN,
            name=self._node.get_fully_qualified_name().lstrip("/"),
            message=summary,
            hardware_id="arm_dynamics",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
