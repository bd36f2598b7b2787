"""Sets one motor up for a command interface, torque off; writes EEPROM only where it must."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.drivers.dynamixel import control_table as table
from arm_dynamics.drivers.dynamixel.feedback_reader import FeedbackReader
from arm_dynamics.drivers.dynamixel.line import TRIES, Line
from arm_dynamics.drivers.dynamixel.models import DynamixelModel
from arm_dynamics.errors import DriverFault

REVERSED, SLAVE, TORQUE_BY_GOAL = 0x01, 0x02, 0x08
"""Bits of the drive mode with which nothing here would be true."""


class Preparation:
    """Every step is read back; what a motor does not confirm raises DriverFault."""

    def __init__(
        self, line: Line, models: Mapping[int, DynamixelModel], feedback: FeedbackReader
    ) -> None:
        self._line, self._models, self._feedback = line, models, feedback

    def prepare(self, id: int, interface: str) -> tuple[dict[str, int], float]:
        """The largest goals that the motor takes, raw, by interface; and its supply [V]."""
        model = self._models[id]
        if interface not in model.interfaces:
            allowed = ", ".join(model.interfaces)
            raise DriverFault(f"{model.name} takes no {interface}, but {allowed}")
        self.clear_watchdog(id)
        self._check_drive_mode(id)
        self._set(id, table.OPERATING_MODE, table.MODES[interface], "operating mode")
        limits = self._limits(id, model)
        if interface != "voltage":  # in other modes a goal PWM is the largest that is applied
            self._set(id, table.GOAL_PWM, limits["voltage"], "goal PWM")
        if not any(self._feedback.map(id) for _ in range(TRIES)):
            raise DriverFault("indirect addresses are not taken")
        return limits, self._get(id, table.INPUT_VOLTAGE) * table.VOLTAGE_UNIT

    def clear_watchdog(self, id: int) -> None:
        """Switch the bus watchdog off, where the firmware has one (from 38 on).

        Goal registers are read-only while it is tripped: nothing else is written before.
        """
        if self._line.get(id, table.BUS_WATCHDOG) and not self._line.put(id, table.BUS_WATCHDOG, 0):
            raise DriverFault(f"bus watchdog is not cleared (address {table.BUS_WATCHDOG.address})")

    def _check_drive_mode(self, id: int) -> None:
        mode = self._get(id, table.DRIVE_MODE)
        wrong = {
            REVERSED: "reversed (turn the joint by its sign instead)",
            SLAVE: "slave of another motor",
            TORQUE_BY_GOAL: "torque on by goal update",
        }
        said = [words for bit, words in wrong.items() if mode & bit]
        if said:
            raise DriverFault(f"drive mode {mode}: {', '.join(said)}: must be off")

    def _limits(self, id: int, model: DynamixelModel) -> dict[str, int]:
        limits = {
            "position": table.LARGEST_POSITION,
            "velocity": self._get(id, table.VELOCITY_LIMIT),
            "voltage": self._get(id, table.PWM_LIMIT),
        }
        return {**limits, "effort": self._get(id, table.CURRENT_LIMIT)} if model.effort else limits

    def _get(self, id: int, register: table.Register) -> int:
        value = self._line.get(id, register)
        if value is None:
            raise DriverFault(f"no answer to a read of address {register.address}")
        return value

    def _set(self, id: int, register: table.Register, value: int, name: str) -> None:
        if self._get(id, register) != value and not self._line.put(id, register, value):
            raise DriverFault(f"{name} {value} is not taken (address {register.address})")
