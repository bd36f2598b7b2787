"""Once a second: how a node is doing, as /diagnostics shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from arm_dynamics.ros.parameters import declare_fixed
from arm_dynamics.safety.events import Events

PERIOD = 1.0
RUN = "run"
"""Parameter and key: which run a node belongs to, where one started several nodes."""
OWN = "arm_dynamics"
"""hardware_id of every status of this package."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

Report = tuple["bool | bytes", str, Mapping[str, str]]
"""(all well, or a level, one line, values)."""


def status(
    name: str, level: bytes, message: str, values: Mapping[str, str] | None = None
) -> DiagnosticStatus:
    """One status of this package."""
    pairs = [KeyValue(key=key, value=value) for key, value in (values or {}).items()]
    return DiagnosticStatus(level=level, name=name, message=message, hardware_id=OWN, values=pairs)


def tally(events: Events) -> dict[str, str]:
    """Counter and latest words of every kind of event; safe from any thread."""
    return {
        **{kind: str(count) for kind, count in sorted(dict(events.counts).items())},
        **{f"last {kind}": text for kind, text in sorted(dict(events.latest).items())},
    }


class Diagnostics:
    """Publishes what ``report`` says about a node, once a second of wall time.

    ``more`` gives further statuses, for which it is told the node's name.
    """

    def __init__(
        self,
        node: Node,
        report: Callable[[], Report],
        more: Callable[[str], Sequence[DiagnosticStatus]] = lambda _: (),
    ) -> None:
        self._node = node
        self._report, self._more = report, more
        run = declare_fixed(node, RUN, "", "name of the run that the node belongs to")
        self._run = {RUN: run} if run else {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A timer on simulated time would fall silent when the simulation does.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self.publish, clock=steady)

    def publish(self) -> None:
        """Publish one array."""
        well, summary, values = self._report()
        name = self._node.get_fully_qualified_name().lstrip("/")
        level = well if isinstance(well, bytes) else OK if well else WARN
        own = status(name, level, summary, {**values, **self._run})
        message = DiagnosticArray(status=[own, *self._more(name)])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
