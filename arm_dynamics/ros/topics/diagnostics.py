"""Status of nodes on /diagnostics: publisher, summary of received messages, throttled log."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from arm_dynamics.core.parameters import Parameter
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.safety import events
from arm_dynamics.safety.events import Events


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


def event_values(events: Events) -> dict[str, str]:
    """Return counter and latest message of every kind of event; safe from any thread."""
    return {
        **{kind: str(count) for kind, count in sorted(dict(events.counts).items())},
        **{f"last {kind}": text for kind, text in sorted(dict(events.latest).items())},
    }


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


KEYS = (
    "state",
    "simulated time [s]",
    "real-time factor",
    "max joint error [rad]",
    "commands per second",
    "deadlines missed",
)

VOLTAGE, SUPPLY, TEMPERATURE = "voltage [V]", "supply [V]", "temperature [°C]"
"""Keys of a joint's status: voltage at its motor, or of its supply if only that is known."""

ARMS = ("simulator", "hardware")
"""Nodes that count received commands."""

STOPPED = "emergency stop by"
"""Start of an arm's message while its emergency stop is engaged."""


class DiagnosticsSummary:
    """Newest diagnostics of the nodes of one namespace.

    With a ``run``, only of the nodes with this value of the parameter.
    """

    def __init__(self, namespace: str = "/", run: str = "") -> None:
        self._namespace, self._run = namespace.strip("/"), run
        self.values: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.ok: dict[str, bool] = {}
        self.updates = 0
        self._joints: dict[str, dict[str, str]] = {}

    def read(self, message: DiagnosticArray) -> None:
        """Store the statuses of this package's nodes in the namespace; ignore others."""
        for status in message.status:
            namespace, _, name = status.name.rpartition("/")
            of_package = status.hardware_id == HARDWARE_ID and namespace == self._namespace
            run = not self._run or KeyValue(key=RUN, value=self._run) in status.values
            if not (of_package and run):
                continue
            self.messages[name] = status.message
            self.ok[name] = status.level == DiagnosticStatus.OK
            values = {pair.key: pair.value for pair in status.values}
            node, _, joint = name.partition(": ")
            if joint:
                self._joints[joint] = values
                continue
            if node not in ARMS:
                values.pop("commands per second", None)
            self.values |= values
            self.updates += node == "simulator"

    def motors(self, names: Sequence[str], *keys: str) -> list[float]:
        """Return for each joint the number of the first known of ``keys``, else NaN."""
        numbers = []
        for name in names:
            values = self._joints.get(name, {})
            try:
                numbers.append(float(next((values[key] for key in keys if key in values), "nan")))
            except ValueError:
                numbers.append(nan)
        return numbers

    @property
    def emergency(self) -> str:
        """Message of an arm whose emergency stop is engaged, else ""."""
        texts = list(self.messages.values())
        return next((text for text in texts if text.startswith(STOPPED)), "")

    @property
    def stopped(self) -> bool:
        """Whether an arm reports an emergency stop."""
        return bool(self.emergency)

    def number(self, key: str) -> float | None:
        """Return one value as a number, or None before it is received."""
        try:
            return float(self.values[key])
        except (KeyError, ValueError):
            return None

    def status_values(self) -> dict[str, str]:
        """Return the values of a status line, and the messages of nodes that are not OK."""
        line = {key: self.values[key] for key in KEYS if key in self.values}
        if self.values.get("lockstep") == "true":  # simulated time waits: nothing is late
            line.pop("deadlines missed", None)
        for name, message in self.messages.items():
            if not self.ok[name]:
                line[name] = message
        return line
