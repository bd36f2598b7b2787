"""Dynamixel X motors on a serial port, as a motor bus."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil

from arm_dynamics.core.errors import CommandRejected, ConfigError, DriverFault
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import discovery, packets
from arm_dynamics.hardware.dynamixel.discovery import NO_REPLY, MotorSetup
from arm_dynamics.hardware.dynamixel.feedback_reader import FeedbackReader, to_reading
from arm_dynamics.hardware.dynamixel.transport import DynamixelTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorCommand, Reading
from arm_dynamics.hardware.register_bus import MAX_ATTEMPTS, RegisterMotorBus
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

MAX_ID = 252
"""Largest id of a motor."""
MAX_ADAPTER_LATENCY = 0.04
"""Longest time [s] that adapter and system may delay bytes."""
REBOOT_TIMEOUT = 1.0
"""Longest time [s] that a motor needs for a restart."""
_REBOOT_POLL_PERIOD = 0.05

SETTINGS = (
    Parameter("baud", 57_600, "bit/s", "rate of the serial port; 57600 as delivered", 9600, 4.5e6),
    Parameter("latency", 4e-3, "s", "shortest time to wait for replies", 0, 0.1),
    Parameter("fast_sync_read", 1, "1", "0: never, 1: if every motor supports it", 0, 1),
)


class Dynamixel(RegisterMotorBus):
    """Dynamixel X motors, protocol 2.0.

    Position 0 is the center of the motor's turn. The effort is k_t times the motor current; models
    that cannot measure it (XL430, XC430, XL330, XC330) accept voltages instead.

    Parameters
    ----------
    motors : Sequence[JointMotor]
        Motors of the joints.
    settings : Mapping[str, str]
        ``port``, the path of the serial device, and those of SETTINGS.
    port : Port, optional
        Replaces the serial port.

    Raises
    ------
    ConfigError
        A setting or an id is out of range.
    UnknownName
        A model is unknown.

    """

    driver, example_port, parameters = "dynamixel", "/dev/ttyUSB0", SETTINGS
    setting_names = tuple(parameter.name for parameter in SETTINGS)
    bauds = discovery.BAUDS

    def __init__(
        self, motors: Sequence[JointMotor], settings: Mapping[str, str], port: Port | None = None
    ) -> None:
        for motor in motors:
            if motor.id > MAX_ID:
                raise ConfigError(
                    f"joint '{motor.joint}': Dynamixel id = {motor.id}; expected 0 to {MAX_ID}"
                )
        self.models = {motor.id: table.find_model(motor.motor) for motor in motors}
        super().__init__(motors, settings, port)
        latency = max(self._values["latency"], MAX_ADAPTER_LATENCY)
        self._transport = DynamixelTransport(self._port, self._values["baud"], latency)
        self._feedback = FeedbackReader(self._transport, self.models)
        self._setup = MotorSetup(self._transport, self.models, self._feedback)
        self._torque = TorqueSwitch(self._transport)
        self._limits: dict[int, Mapping[str, int]] = {}
        self._supply: dict[int, float] = {}
        self._interface = ""
        self._firmware: dict[int, int] = {}

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> list[DiscoveredMotor]:
        """Return the motors that reply at the rate of ``settings``, by id; reads only."""
        baud = round(cls.read_settings(settings)["baud"])
        return discovery.scan_port(cls.serial_port(settings), (baud,))

    def has_watchdog(self, id: int) -> bool | None:
        """Return whether the firmware stops the motor without commands; None before a reply."""
        return None if id not in self._firmware else not self.missing_watchdog_reason(id)

    def missing_watchdog_reason(self, id: int) -> str:
        """Return what the firmware lacks, and which version has it."""
        firmware = self._firmware.get(id)
        return "" if firmware is None else self.models[id].missing_watchdog_reason(firmware)

    def open(self) -> None:
        """Open the port exclusively; motors count as not set up."""
        self._feedback.reset()
        self._torque.reset()
        self._firmware.clear()
        self._port.open()

    def discover(self) -> None:
        """Check that every motor replies, once, with the configured model.

        Measures the duration of replies as well: adapters differ by a factor of twenty.
        """
        transport = self._transport
        checks = {
            id: discovery.check_motor(transport, motor, self.models[id])
            for id, motor in self.motors.items()
        }
        self._firmware = {
            id: firmware for id, (_, firmware) in checks.items() if firmware is not None
        }
        problems = [problem for problem, _ in checks.values() if problem]
        if problems:
            raise self._fault(problems)
        transport.return_delay = discovery.longest_return_delay(transport, self.motors)
        typical = sorted(transport.delays)[len(transport.delays) * 9 // 10]
        transport.latency = max(self._values["latency"], min(MAX_ADAPTER_LATENCY, 2.0 * typical))

    def prepare(self, interface: str) -> None:
        """Disable torque, set operating mode and limits, map the feedback's block."""
        self._interface, off = interface, self._torque.off(self.motors, MAX_ATTEMPTS)
        problems: list[str] = []
        for id, motor in self.motors.items():
            try:
                if id not in off:
                    raise DriverFault(f"{NO_REPLY} that torque is off")
                self._limits[id], self._supply[id] = self._setup.prepare(id, interface)
            except DriverFault as error:
                problems.append(f"joint '{motor.joint}' (id {id}): {error}")
        if problems:
            raise self._fault(problems)
        self._feedback.rebooted.clear()
        unknown = self.motors.keys() - self._firmware.keys()
        self._firmware |= discovery.firmwares(self._transport, unknown)
        self._feedback.fast = bool(self._values["fast_sync_read"]) and all(
            self._firmware.get(id, 0) >= model.fast_firmware for id, model in self.models.items()
        )

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Return the motor's command interfaces."""
        return self.models[id].interfaces

    def read(self) -> dict[int, Reading]:
        """Return the readings of the motors that replied now, by id."""
        readings: dict[int, Reading] = {}
        for id, (block, time) in self._feedback.read().items():
            fault = "rebooted" if id in self._feedback.rebooted else ""
            readings[id] = to_reading(self.models[id], block, time, fault)
            self._supply[id] = readings[id].supply
        return readings

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send all commands or none; raises CommandRejected if one is not finite.

        Their interface is the prepared one.
        """
        raw: dict[int, int] = {}
        for id, goal in goals.items():
            if id not in self._limits:
                raise DriverFault(f"joint '{self.motors[id].joint}' (id {id}) is not set up")
            if goal.interface != self._interface:
                raise CommandRejected(
                    f"motor {id}: interface = '{goal.interface}'; expected '{self._interface}'"
                )
            limit = self._limits[id][goal.interface]
            raw[id] = table.raw_goal(self.models[id], goal, limit, self._supply[id])
        if raw:
            self._torque.send_goals(self._interface, raw)

    def enable_watchdog(self, timeout: float) -> set[int]:
        """Set the bus watchdog in steps of 20 ms up to 2.54 s, which clears an earlier trip.

        Returns the ids of motors that confirmed it and whose firmware stops them then.
        """
        ticks = max(1, min(table.MAX_WATCHDOG_TICKS, ceil(timeout / table.WATCHDOG_UNIT - 1e-9)))
        transport, register = self._transport, table.BUS_WATCHDOG
        transport.write_registers(register, dict.fromkeys(self.motors, 0))
        confirmed = transport.write_registers(register, dict.fromkeys(self.motors, ticks))
        return {id for id in confirmed if not self.missing_watchdog_reason(id)}

    def enable(self, ids: Collection[int]) -> set[int]:
        """Enable torque at the goals of ``write``, else at rest; return the ids that confirmed.

        No motor gets torque before its goal was read back.
        """
        return self._torque.on(ids, self._interface) if self._interface else set()

    def disable(self, ids: Collection[int]) -> set[int]:
        """Disable torque; return the ids that confirmed it when read back."""
        return self._torque.off(ids)

    def clear_faults(self, ids: Collection[int]) -> set[int]:
        """Disable torque, restart motors with a hardware error and clear watchdogs."""
        self.disable(ids)
        errors = {id: self._transport.read_register(id, table.HARDWARE_ERROR) for id in ids}
        waiting = [id for id, error in errors.items() if error]
        for id in waiting:
            any(self._transport.request(packets.reboot(id), (id,), 0) for _ in range(MAX_ATTEMPTS))
        until = self.now() + REBOOT_TIMEOUT
        while waiting and self.now() < until:
            self._transport.wait(self.now() + _REBOOT_POLL_PERIOD)
            waiting = [id for id in waiting if self._transport.ping(id) is None]
        return {id for id in ids if errors[id] is not None and self._clear(id)}

    def _fault(self, problems: Sequence[str]) -> DriverFault:
        missing = any(NO_REPLY in problem for problem in problems)
        return DriverFault("; ".join([*problems, *([self.remedies] if missing else [])]))

    def _clear(self, id: int) -> bool:
        if self._transport.read_register(id, table.HARDWARE_ERROR) != 0:
            return False
        try:
            if self._interface:
                self._limits[id], self._supply[id] = self._setup.prepare(id, self._interface)
            else:
                self._setup.clear_watchdog(id)
        except DriverFault:
            return False
        self._feedback.rebooted.discard(id)
        return True


class TorqueSwitch:
    """Goals and torque of the motors; no torque at a goal that was not read back."""

    def __init__(self, transport: DynamixelTransport) -> None:
        self._transport = transport
        self._sent: dict[int, int] = {}  # raw goals since torque was disabled; some may be lost

    def reset(self) -> None:
        """Discard the goals that were sent."""
        self._sent.clear()

    def send_goals(self, interface: str, goals: Mapping[int, int]) -> None:
        """Send raw goals; no motor replies."""
        self._transport.sync_write(table.GOALS[interface], goals)
        self._sent.update(goals)

    def on(self, ids: Collection[int], interface: str) -> set[int]:
        """Enable torque at the goals that were sent, else at rest; return confirmed ids.

        Goals are read back first: a register may hold an old one. Motors that do not confirm their
        goal get no torque; those that do not confirm their torque are disabled.
        """
        unset = [id for id in ids if id not in self._sent]
        goals = dict.fromkeys(unset, 0)
        if interface == "position":
            goals = self._transport.read(unset, table.PRESENT_POSITION)
        goals |= {id: self._sent[id] for id in ids if id in self._sent}
        ready = self._transport.write_registers(table.GOALS[interface], goals)
        confirmed = self._transport.write_registers(table.TORQUE_ENABLE, dict.fromkeys(ready, 1))
        self._transport.sync_write(table.TORQUE_ENABLE, dict.fromkeys(set(ids) - confirmed, 0))
        return confirmed

    def off(self, ids: Collection[int], attempts: int = 1) -> set[int]:
        """Disable torque; return the ids that confirmed it when read back."""
        for id in ids:
            self._sent.pop(id, None)
        return self._transport.write_registers(table.TORQUE_ENABLE, dict.fromkeys(ids, 0), attempts)
