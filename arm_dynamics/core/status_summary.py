"""Newest status of the parts of a run, as status lines and pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

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

TORQUE = "torque"
"""Key of a joint's status: whether the torque of its motor is enabled."""

ARMS = ("simulator", "hardware")
"""Parts that count received commands."""

STOPPED = "emergency stop by"
"""Start of an arm's message while its emergency stop is engaged."""


class StatusSummary:
    """Newest statuses of the parts of a run: simulator or hardware, controller, joints."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.ok: dict[str, bool] = {}
        self.updates = 0
        self._joints: dict[str, dict[str, str]] = {}
        self._joint_parts: dict[str, str] = {}

    def take(self, name: str, ok: bool, message: str, values: Mapping[str, str]) -> None:
        """Store the status of the part ``name``, or of a joint: ``<part>: <joint>``."""
        self.messages[name], self.ok[name] = message, ok
        part, _, joint = name.partition(": ")
        values = dict(values)
        if joint:
            self._joints[joint], self._joint_parts[joint] = values, name
            return
        if part not in ARMS:
            values.pop("commands per second", None)
        self.values |= values
        self.updates += part == "simulator"

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

    def motor_states(self, names: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Return the state of each reported motor, such as its fault or torque, and whether OK."""
        states = {}
        for name in names:
            part = self._joint_parts.get(name)
            if part is not None:
                ok, torque = self.ok[part], self._joints[name].get(TORQUE)
                text = f"torque {torque}" if torque else ""
                states[name] = (text if ok else self.messages[part], ok)
        return states

    @property
    def emergency(self) -> str:
        """Message of an arm whose emergency stop is engaged, else ""."""
        texts = list(self.messages.values())
        return next((text for text in texts if text.startswith(STOPPED)), "")

    @property
    def stopped(self) -> bool:
        """Whether an arm reports an emergency stop."""
        return bool(self.emergency)

    @property
    def is_time_stopped(self) -> bool:
        """Whether a user has stopped simulated time: not a failure of the arm."""
        return self.stopped or self.values.get("paused") == "true"

    def number(self, key: str) -> float | None:
        """Return one value as a number, or None before it is received."""
        try:
            return float(self.values[key])
        except (KeyError, ValueError):
            return None

    def status_values(self) -> dict[str, str]:
        """Return the values of a status line, and the messages of parts that are not OK."""
        line = {key: self.values[key] for key in KEYS if key in self.values}
        if self.values.get("lockstep") == "true":  # simulated time waits: nothing is late
            line.pop("deadlines missed", None)
        for name, message in self.messages.items():
            if not self.ok[name]:
                line[name] = message
        return line
