"""Status of nodes on /diagnostics: publisher, summary of received messages, throttled log."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.safety import events


class Throttle(events.Throttle):
    """Throttled listener of ``Events`` for rclpy's loggers, fast from its first warning on."""

    def __init__(self, logger: Any) -> None:
        super().__init__(logger)
        # rclpy looks its caller up, for 50 ms the first time: do that now, not at the first
        # warning, which the loop of an arm with torque may report.
        inspect.getframeinfo(inspect.stack()[0].frame)


PERIOD = Parameter(
    "diagnostic_updater.period",
    1.0,
    "s",
    "time between two messages on /diagnostics",
    lower=0.01,
    upper=100,
)
RUN = "run"
"""Parameter and key: name of the run that a node belongs to, if one run started several."""
HARDWARE_ID = "arm_dynamics"
"""hardware_id of every status of this package."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

StatusReport = tuple["bool | bytes", str, Mapping[str, str]]
"""(True if OK, or a level; one line; values)."""


def status(
    name: str, level: bytes, message: str, values: Mapping[str, str] | None = None
) -> DiagnosticStatus:
    """Return a DiagnosticStatus of this package."""
    pairs = [KeyValue(key=key, value=value) for key, value in (values or {}).items()]
    return DiagnosticStatus(
        level=level, name=name, message=message, hardware_id=HARDWARE_ID, values=pairs
    )


class Diagnostics:
    """Publishes the ``report`` of a node, by default once a second of wall-clock time.

    ``more`` returns further statuses from the node's name.
    """

    def __init__(
        self,
        node: Node,
        report: Callable[[], StatusReport],
        more: Callable[[str], Sequence[DiagnosticStatus]] = lambda _: (),
    ) -> None:
        self._node = node
        self._report, self._more = report, more
        run = declare_fixed(node, RUN, "", "name of the run that the node belongs to")
        self._run = {RUN: run} if run else {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        period = declare_fixed(node, PERIOD.name, PERIOD.default, f"{PERIOD.description} [s]")
        period = PERIOD.check(node.get_name(), period)
        self._timer = wall_timer(node, period, self.publish)

    def publish(self) -> None:
        """Publish one array."""
        ok, summary, values = self._report()
        name = self._node.get_fully_qualified_name().lstrip("/")
        level = ok if isinstance(ok, bytes) else OK if ok else WARN
        node_status = status(name, level, summary, {**values, **self._run})
        message = DiagnosticArray(status=[node_status, *self._more(name)])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


class DiagnosticsSummary(StatusSummary):
    """Newest diagnostics of the nodes of one namespace.

    With a ``run``, only of the nodes with this value of the parameter.
    """

    def __init__(self, namespace: str = "/", run: str = "") -> None:
        super().__init__()
        self._namespace, self._run = namespace.strip("/"), run

    def read(self, message: DiagnosticArray) -> None:
        """Store the statuses of this package's nodes in the namespace; ignore others."""
        for status in message.status:
            namespace, _, name = status.name.rpartition("/")
            of_package = status.hardware_id == HARDWARE_ID and namespace == self._namespace
            run = not self._run or KeyValue(key=RUN, value=self._run) in status.values
            if of_package and run:
                values = {pair.key: pair.value for pair in status.values}
                self.take(name, status.level == DiagnosticStatus.OK, status.message, values)
