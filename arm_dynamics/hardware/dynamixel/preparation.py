"""Torque on, never over a goal that was not read back, and off.

Sets one motor up for a command interface, torque off; writes EEPROM only where it must.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel
from arm_dynamics.hardware.dynamixel.feedback_reader import FeedbackReader
from arm_dynamics.hardware.dynamixel.transport import MAX_ATTEMPTS, DynamixelTransport


class TorqueSwitch:
    """Goals and torque of the motors on ``line``."""

    def __init__(self, line: DynamixelTransport) -> None:
        self._line = line
        self._sent: dict[int, int] = {}  # raw goals since the torque was off; some may be lost

    def reset(self) -> None:
        """Nothing is known of what motors were sent."""
        self._sent.clear()

    def send_goals(self, interface: str, goals: Mapping[int, int]) -> None:
        """Send raw goals; no motor answers."""
        self._line.sync_write(table.GOALS[interface], goals)
        self._sent.update(goals)

    def on(self, ids: Collection[int], interface: str) -> set[int]:
        """Torque on at the goals that were sent, or at rest; those that confirmed it.

        Goals are read back first: a register may hold one of long ago. Who does not confirm its
        goal gets no torque, who does not confirm its torque is told to have none.
        """
        goals = self._still([id for id in ids if id not in self._sent], interface)
        goals |= {id: self._sent[id] for id in ids if id in self._sent}
        ready = self._line.write_registers(table.GOALS[interface], goals, MAX_ATTEMPTS)
        done = self._line.write_registers(
            table.TORQUE_ENABLE, dict.fromkeys(ready, 1), MAX_ATTEMPTS
        )
        self._line.sync_write(table.TORQUE_ENABLE, dict.fromkeys(set(ids) - done, 0))
        return done

    def off(self, ids: Collection[int], tries: int = 1) -> set[int]:
        """Torque off; those that confirmed it by reading it back."""
        for id in ids:
            self._sent.pop(id, None)
        return self._line.write_registers(table.TORQUE_ENABLE, dict.fromkeys(ids, 0), tries)

    def _still(self, ids: Collection[int], interface: str) -> dict[int, int]:
        """Goals at which motors stay: where they stand, or nothing."""
        if interface != "position":
            return dict.fromkeys(ids, 0)
        return self._line.read(ids, table.PRESENT_POSITION)


REVERSED, SLAVE, TORQUE_BY_GOAL = 0x01, 0x02, 0x08
"""Bits of the drive mode with which nothing here would be true."""


class MotorSetup:
    """Every step is read back; what a motor does not confirm raises DriverFault."""

    def __init__(
        self,
        line: DynamixelTransport,
        models: Mapping[int, DynamixelModel],
        feedback: FeedbackReader,
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
        if not any(self._feedback.map_block(id) for _ in range(MAX_ATTEMPTS)):
            raise DriverFault("indirect addresses are not taken")
        return limits, self._get(id, table.INPUT_VOLTAGE) * table.VOLTAGE_UNIT

    def clear_watchdog(self, id: int) -> None:
        """Switch the bus watchdog off, where the firmware has one (from 38 on).

        Goal registers are read-only while it is tripped: nothing else is written before.
        """
        if self._line.read_register(id, table.BUS_WATCHDOG) and not self._line.write_register(
            id, table.BUS_WATCHDOG, 0
        ):
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
            "position": table.MAX_POSITION,
            "velocity": self._get(id, table.VELOCITY_LIMIT),
            "voltage": self._get(id, table.PWM_LIMIT),
        }
        return {**limits, "effort": self._get(id, table.CURRENT_LIMIT)} if model.effort else limits

    def _get(self, id: int, register: table.Register) -> int:
        value = self._line.read_register(id, register)
        if value is None:
            raise DriverFault(f"no answer to a read of address {register.address}")
        return value

    def _set(self, id: int, register: table.Register, value: int, name: str) -> None:
        if self._get(id, register) != value and not self._line.write_register(id, register, value):
            raise DriverFault(f"{name} {value} is not taken (address {register.address})")
