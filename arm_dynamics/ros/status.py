"""The state of a run in a few words, gathered from /diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from arm_dynamics.ros.diagnostics import OWN, RUN

KEYS = (
    "state",
    "simulated time [s]",
    "real-time factor",
    "worst joint error [rad]",
    "commands per second",
    "deadlines missed",
)

VOLTAGE, SUPPLY, TEMPERATURE = "voltage [V]", "supply [V]", "temperature [°C]"
"""Values of the status of a joint: at its motor, or of its supply where that alone is known."""

ARMS = ("simulator", "hardware")
"""Nodes whose count of commands is that of commands that arrived."""

STOPPED = "emergency stop by"
"""How the message of an arm begins while its emergency stop is engaged."""


class Status:
    """The newest diagnostics of the simulator and the controller of one namespace.

    With a ``run``, only of the nodes that were started with this value of the parameter.
    """

    def __init__(self, namespace: str = "/", run: str = "") -> None:
        self._namespace, self._run = namespace.strip("/"), run
        self.values: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.well: dict[str, bool] = {}
        self.updates = 0
        self._joints: dict[str, dict[str, str]] = {}

    def read(self, message: DiagnosticArray) -> None:
        """Note what a DiagnosticArray says of our nodes here; others are left alone."""
        for status in message.status:
            namespace, _, name = status.name.rpartition("/")
            own = status.hardware_id == OWN and namespace == self._namespace
            if own and (not self._run or KeyValue(key=RUN, value=self._run) in status.values):
                self._note(name, status)

    def motors(self, names: Sequence[str], *keys: str) -> list[float]:
        """For each joint the number under the first of ``keys`` that is known, else NaN."""
        return [self._motor(name, keys) for name in names]

    def _motor(self, joint: str, keys: Sequence[str]) -> float:
        values = self._joints.get(joint, {})
        text = next((values[key] for key in keys if key in values), "nan")
        try:
            return float(text)
        except ValueError:
            return nan

    def _note(self, name: str, status: DiagnosticStatus) -> None:
        node, _, joint = name.partition(": ")
        if joint:
            self._joints[joint] = {pair.key: pair.value for pair in status.values}
            self._note_words(name, status)
            return
        self._note_words(node, status)
        for pair in status.values:
            if not (pair.key == "commands per second" and node not in ARMS):
                self.values[pair.key] = pair.value
        self.updates += node == "simulator"

    def _note_words(self, name: str, status: DiagnosticStatus) -> None:
        self.messages[name] = status.message
        self.well[name] = status.level == DiagnosticStatus.OK

    @property
    def emergency(self) -> str:
        """The words of an arm whose emergency stop is engaged, "" while it is released."""
        texts = list(self.messages.values())
        return next((text for text in texts if text.startswith(STOPPED)), "")

    @property
    def stopped(self) -> bool:
        """Whether an arm reports its emergency stop."""
        return bool(self.emergency)

    def number(self, key: str) -> float | None:
        """One value as a number, or None when none has come yet."""
        try:
            return float(self.values[key])
        except (KeyError, ValueError):
            return None

    def shown(self) -> dict[str, str]:
        """The values that a status line shows, with what is not running well."""
        line = {key: self.values[key] for key in KEYS if key in self.values}
        if self.values.get("lockstep") == "true":  # time waits: nothing is late
            line.pop("deadlines missed", None)
        for name, message in self.messages.items():
            if not self.well[name]:
                line[name] = message
        return line
