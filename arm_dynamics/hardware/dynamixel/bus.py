"""Dynamixel X motors on a serial line, as a motor bus."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import ceil

from arm_dynamics.core.errors import CommandRejected, ConfigError, DriverFault
from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import identification as scanning
from arm_dynamics.hardware.dynamixel import packets
from arm_dynamics.hardware.dynamixel.control_table import find_model
from arm_dynamics.hardware.dynamixel.conversion import raw_goal, to_reading
from arm_dynamics.hardware.dynamixel.feedback_reader import FeedbackReader
from arm_dynamics.hardware.dynamixel.identification import (
    check_motor,
    firmwares,
    longest_return_delay,
)
from arm_dynamics.hardware.dynamixel.preparation import MotorSetup, TorqueSwitch
from arm_dynamics.hardware.dynamixel.settings import (
    BROADCAST_FREE,
    SETTINGS,
    port_path,
    read_settings,
)
from arm_dynamics.hardware.dynamixel.transport import MAX_ATTEMPTS, DynamixelTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus, MotorCommand, Reading
from arm_dynamics.hardware.serial_port import Port, SerialPort
from arm_dynamics.model.hardware_info import JointMotor

MAX_ADAPTER_LATENCY = 0.04
"""Longest that adapter and system are believed to hold bytes back [s]."""
REBOOT_TIME = 1.0
"""Longest that a motor is waited for after a restart [s]."""
_REBOOT_POLL = 0.05


class Dynamixel(MotorBus):
    """Protocol 2.0; settings: see SETTINGS, and ``port``, the device's path.

    Position 0 is the middle of the motor's turn. Effort is k_t times the motor's current;
    motors which can not tell that current (XL430, XC430, XL330, XC330) take a voltage instead.
    """

    setting_names = tuple(parameter.name for parameter in SETTINGS)
    bauds = scanning.BAUDS

    def __init__(
        self, motors: Sequence[JointMotor], settings: Mapping[str, str], port: Port | None = None
    ) -> None:
        super().__init__(motors, settings)
        for motor in motors:
            if motor.id > BROADCAST_FREE:
                said = f"0 to {BROADCAST_FREE} expected"
                raise ConfigError(f"joint '{motor.joint}': Dynamixel id {motor.id}: {said}")
        self.models = {id: find_model(motor.motor) for id, motor in self.motors.items()}
        baud, self._latency, self._fast = read_settings(settings)
        self._port = SerialPort(port_path(settings), round(baud)) if port is None else port
        self._baud = baud
        self._line = DynamixelTransport(self._port, baud, max(self._latency, MAX_ADAPTER_LATENCY))
        self._feedback = FeedbackReader(self._line, self.models)
        self._preparation = MotorSetup(self._line, self.models, self._feedback)
        self._limits: dict[int, Mapping[str, int]] = {}
        self._supply: dict[int, float] = {}
        self._interface = ""
        self._torque = TorqueSwitch(self._line)
        self._firmware: dict[int, int] = {}

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> list[DiscoveredMotor]:
        """The motors that answer at the rate of ``settings``, by id; reads only."""
        baud = round(read_settings(settings)[0])
        return scanning.scan_port(partial(SerialPort, port_path(settings)), (baud,))

    def has_watchdog(self, id: int) -> bool | None:
        """Whether the motor's firmware stops it when nothing is heard; None: never asked."""
        return None if id not in self._firmware else not self.missing_watchdog_reason(id)

    def missing_watchdog_reason(self, id: int) -> str:
        """What its firmware lacks, and which has it."""
        firmware = self._firmware.get(id)
        return "" if firmware is None else self.models[id].missing_watchdog_reason(firmware)

    @property
    def remedies(self) -> str:
        """What to do where motors do not answer, or too late."""
        said = (
            f"check power, cable, motor ids and baud = {self._baud:.0f} bit/s (a scan finds both)"
        )
        return f"{said}; if replies come late, raise latency = {self._latency:g} s"

    def now(self) -> float:
        """The port's clock [s], monotonic."""
        return self._port.now()

    def open(self) -> None:
        """Open the port for this program alone; motors are taken for unprepared."""
        self._feedback.reset()
        self._torque.reset()
        self._firmware.clear()
        self._port.open()

    def identify(self) -> None:
        """Check that every motor answers, once, as the model that it should be.

        How long answers take is found out as well: adapters differ by a factor of twenty.
        """
        line = self._line
        found = {id: check_motor(line, motor, self.models[id]) for id, motor in self.motors.items()}
        self._firmware = {id: said for id, (_, said) in found.items() if said is not None}
        problems = [problem for problem, _ in found.values() if problem]
        if problems:
            raise self._fault(problems)
        line.return_delay = longest_return_delay(line, self.motors)
        usual = sorted(line.delays)[len(line.delays) * 9 // 10]
        line.latency = max(self._latency, min(MAX_ADAPTER_LATENCY, 2.0 * usual))

    def prepare(self, interface: str) -> None:
        """Torque off, operating mode, limits, the feedback's block; DriverFault if one can not."""
        self._interface, off = interface, self._torque.off(self.motors, MAX_ATTEMPTS)
        problems: list[str] = []
        for id, motor in self.motors.items():
            try:
                if id not in off:
                    raise DriverFault("no answer that torque is off")
                self._limits[id], self._supply[id] = self._preparation.prepare(id, interface)
            except DriverFault as error:
                problems.append(f"joint '{motor.joint}' (id {id}): {error}")
        if problems:
            raise self._fault(problems)
        self._feedback.rebooted.clear()
        self._firmware |= firmwares(self._line, self.motors.keys() - self._firmware.keys())
        fast = {id: model.fast_firmware for id, model in self.models.items()}
        self._feedback.fast = self._fast and all(
            self._firmware.get(id, 0) >= first for id, first in fast.items()
        )

    def interfaces(self, id: int) -> tuple[str, ...]:
        """What the motor takes."""
        return self.models[id].interfaces

    def read(self) -> dict[int, Reading]:
        """The motors that answered now, by id."""
        found: dict[int, Reading] = {}
        for id, (block, time) in self._feedback.read().items():
            lost = "rebooted" if id in self._feedback.rebooted else ""
            found[id] = to_reading(self.models[id], block, time, lost)
            self._supply[id] = found[id].supply
        return found

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send goals, all or none: raises CommandRefused where one is not finite.

        They are of the interface that the motors were prepared for.
        """
        raw = {id: self._raw(id, goal) for id, goal in goals.items()}
        if raw:
            self._torque.send_goals(self._interface, raw)

    def enable_watchdog(self, timeout: float) -> set[int]:
        """Bus watchdog, in steps of 20 ms up to 2.54 s; a trip before is cleared by it.

        Those that took it and whose firmware stops them then.
        """
        steps = ceil(timeout / table.WATCHDOG_UNIT - 1e-9)
        value = max(1, min(table.MAX_WATCHDOG_TICKS, steps))
        self._line.write_registers(table.BUS_WATCHDOG, dict.fromkeys(self.motors, 0), MAX_ATTEMPTS)
        took = self._line.write_registers(
            table.BUS_WATCHDOG, dict.fromkeys(self.motors, value), MAX_ATTEMPTS
        )
        return {id for id in took if not self.missing_watchdog_reason(id)}

    def enable(self, ids: Collection[int]) -> set[int]:
        """Torque on, at rest where ``write`` has not set a goal before; those that confirmed.

        A motor gets no torque before its goal was read back.
        """
        return self._torque.on(ids, self._interface) if self._interface else set()

    def disable(self, ids: Collection[int]) -> set[int]:
        """Torque off; the ids that confirmed it by reading it back."""
        return self._torque.off(ids)

    def clear_faults(self, ids: Collection[int]) -> set[int]:
        """Restart motors with a hardware error, clear watchdogs; torque goes off before."""
        self.disable(ids)
        errors = {id: self._line.read_register(id, table.HARDWARE_ERROR) for id in ids}
        self._restart([id for id, error in errors.items() if error])
        return {id for id in ids if errors[id] is not None and self._clear(id)}

    def close(self) -> None:
        """Release the port; never raises, may be called twice, from another thread too."""
        self._port.close()

    def _fault(self, problems: Sequence[str]) -> DriverFault:
        silent = any("no answer" in problem for problem in problems)
        return DriverFault("; ".join([*problems, *([self.remedies] if silent else [])]))

    def _raw(self, id: int, goal: MotorCommand) -> int:
        if id not in self._limits:
            raise DriverFault(f"joint '{self.motors[id].joint}' (id {id}) is not prepared")
        if goal.interface != self._interface:
            said = f"{goal.interface} goal for motor {id}, which is set to {self._interface}"
            raise CommandRejected(said)
        return raw_goal(self.models[id], goal, self._limits[id][goal.interface], self._supply[id])

    def _restart(self, ids: Sequence[int]) -> None:
        for id in ids:
            any(self._line.request(packets.reboot(id), (id,), 0) for _ in range(MAX_ATTEMPTS))
        until, waiting = self.now() + REBOOT_TIME, list(ids)
        while waiting and self.now() < until:
            self._line.wait(self.now() + _REBOOT_POLL)
            waiting = [id for id in waiting if self._line.ping(id) is None]

    def _clear(self, id: int) -> bool:
        if self._line.read_register(id, table.HARDWARE_ERROR) != 0:
            return False
        try:
            if self._interface:
                self._limits[id], self._supply[id] = self._preparation.prepare(id, self._interface)
            else:
                self._preparation.clear_watchdog(id)
        except DriverFault:
            return False
        self._feedback.rebooted.discard(id)
        return True
