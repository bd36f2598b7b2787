"""Feetech STS servos on a serial port, as a motor bus: position, or voltage by PWM.

Each cycle reads the positions, and with voltages all measured values. The velocities are read every
VELOCITY_PERIOD, and the block of all registers with the torque switch every BLOCK_PERIOD: both are
each cycle of slower loops. Error bits are in every reply.

The EEPROM of a servo is never changed, with one exception that a loss of power undoes: if the
operating mode differs from the required one, LOCK is set, so that nothing more is saved, and the
mode is written. Homing, limits and gains remain those of the servo.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.core.errors import DriverFault, InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.hardware.feetech import discovery
from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.feetech.registers import (
    BLOCK_SIZE,
    BLOCK_START,
    MEASURED_SIZE,
    POSITION,
    TurnCounter,
)
from arm_dynamics.hardware.feetech.transport import FeetechTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorCommand, Reading, StoredRange
from arm_dynamics.hardware.register_bus import MAX_ATTEMPTS, RegisterMotorBus
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

VELOCITY_PERIOD, BLOCK_PERIOD = 4e-3, 0.05
"""Times [s] after which velocities, and all registers, are read again."""
MODES = {"position": table.POSITION_MODE, "voltage": table.PWM_MODE}

SETTINGS = (
    Parameter("baud", 1e6, "bit/s", "rate of the serial port", above=0),
    Parameter("latency", 8e-3, "s", "of adapter and system, before a reply counts as lost", 0.0),
    Parameter("kt", 1.08, "N·m/A", "torque constant at the shaft; default: 12 V servo", above=0),
    Parameter(
        "ke", 2.4, "V·s/rad", "back-EMF constant; set it with kt; default: 12 V servo", above=0
    ),
)


class Feetech(RegisterMotorBus):
    """Servos of Feetech's STS series on one serial port.

    The servos have no command watchdog: in position mode a servo holds its last goal indefinitely,
    with a PWM it continues to turn. The effort is computed from the measured current; its
    direction follows from LOAD, the applied duty, and the back-EMF.

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
    UnknownName
        A model is unknown.
    ConfigError
        A setting is out of range.

    """

    estimates_effort = True
    driver, example_port, parameters = "feetech", "/dev/ttyACM0", SETTINGS
    setting_names = tuple(parameter.name for parameter in SETTINGS)
    bauds = discovery.BAUDS

    def __init__(
        self, motors: Sequence[JointMotor], settings: Mapping[str, str], port: Port | None = None
    ) -> None:
        for motor in motors:
            table.model_number(motor.motor)
        super().__init__(motors, settings, port)
        self._interface = "position"
        baud, latency = self._values["baud"], self._values["latency"]
        self._transport = FeetechTransport(self._port, baud, latency)
        self._reset()

    def _reset(self) -> None:
        self._turns = {id: TurnCounter() for id in self.motors}
        self._phases: dict[int, int] = {}
        self._blocks: dict[int, bytes] = {}
        self._enabled: set[int] = set()
        self._is_known: set[int] = set()  # servos that have replied since their last block
        self._next_block, self._next_velocity, self._was_block = 0.0, 0.0, False
        self._transport.missing.clear()

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> list[DiscoveredMotor]:
        """Return the servos that reply at the rate of ``settings``, by id; reads only."""
        baud = round(cls.read_settings(settings)["baud"])
        return discovery.scan_port(cls.serial_port(settings), (baud,))

    def has_watchdog(self, id: int) -> bool:
        """Return False: the servos have no command watchdog."""
        return False

    def open(self) -> None:
        """Open the port exclusively; the count of turns restarts."""
        self._reset()
        self._port.open()

    def discover(self) -> None:
        """Check that every servo replies, once, with the configured model; reads only.

        Raises DriverFault naming all that are missing, duplicated or of another model.
        """
        faults = discovery.identity_faults(self._transport, self.motors.values())
        if faults:
            no_reply = (
                discovery.NO_REPLY, discovery.NO_SERVO, discovery.CORRUPT_REPLY
            )  # fmt: skip
            missing = any(fault.endswith(no_reply) for fault in faults)
            text = "; ".join([*faults, *([self.remedies] if missing else [])])
            raise DriverFault(f"port '{self._port.name}': {text}")

    def prepare(self, interface: str) -> None:
        """Disable torque and set the operating mode of ``interface``; all read back.

        Raises DriverFault naming the servos that do not confirm it.
        """
        if interface not in MODES:
            raise UnknownName("interface of Feetech servos", interface, tuple(MODES))
        self._require("torque off", self.disable(self.motors))
        phases = self._transport.read_registers(table.PHASE, self.motors)
        self._require("their phase", phases)
        self._interface, self._next_block = interface, 0.0
        self._require(f"{interface} mode", self._set_mode(self.motors))
        zero = dict.fromkeys(self.motors, 0)
        self._require("a PWM of 0", self._transport.write_registers(table.GOAL_PWM, zero))
        self._phases = phases

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Return position and voltage (PWM times the supply); the servos accept no torque."""
        return tuple(MODES)

    def stored_ranges(self) -> Mapping[int, StoredRange]:
        """Return the position limits of the servos, except of those that count turns."""
        self._next_block = 0.0  # as after ``disable``
        registers = (table.PHASE, table.MIN_POSITION, table.MAX_POSITION, table.HOMING_OFFSET)
        phases, lower, upper, offsets = (
            self._transport.read_registers(register, self.motors) for register in registers
        )
        return {
            id: StoredRange(
                (lower[id] - table.CENTER) * table.STEP,
                (upper[id] - table.CENTER) * table.STEP,
                offset * table.STEP,
            )
            for id, offset in offsets.items()
            if lower.get(id, 0) < upper.get(id, 0)  # 0 and 0: the servo turns without limits
            and not phases.get(id, table.MULTI_TURN) & table.MULTI_TURN
        }

    def read(self) -> Mapping[int, Reading]:
        """Return the readings of the servos that replied now, by id.

        Between two blocks a reading has the last values of what was not requested. A servo that
        missed a request may have restarted: blocks are read until it replies again.
        """
        now, start, size = self._port.now(), POSITION.address, POSITION.size
        is_block = now >= self._next_block or self._is_known != self.motors.keys()
        if is_block:
            start, size, self._next_block = BLOCK_START, BLOCK_SIZE, now + BLOCK_PERIOD
        elif self._interface == "voltage":
            size = MEASURED_SIZE
        elif now >= self._next_velocity:
            size += table.SPEED.size
        if is_block or size > POSITION.size:
            self._next_velocity = now + VELOCITY_PERIOD
        replies = self._transport.request(self.motors.keys(), start, size)
        self._is_known = set(replies) if is_block else self._is_known & replies.keys()
        self._was_block = is_block
        readings, constants = {}, (self._values["kt"], self._values["ke"])
        for id, (time, packet) in replies.items():
            if is_block:
                self._blocks[id] = packet.data
            else:
                block, at = self._blocks[id], start - BLOCK_START
                self._blocks[id] = block[:at] + packet.data + block[at + len(packet.data) :]
            block, phase = self._blocks[id], self._phases.get(id, table.FAST_UNIT)
            raw = POSITION.unpack(block, BLOCK_START)
            steps = raw if phase & table.MULTI_TURN else self._turns[id].unwrap(raw)
            reading = table.to_reading(block, packet.error, steps, phase, *constants, time)
            readings[id] = reading
            if not reading.enabled:
                self._enabled.discard(id)  # a goal would enable its torque again
        return readings

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send commands to servos whose torque is enabled; those of others are not sent.

        Raises CommandRejected for a command that is not finite and InvalidValue for one of another
        interface than the prepared one; in both cases no command is sent.
        """
        other = {goal.interface for goal in goals.values()} - {self._interface}
        if other:
            raise InvalidValue(f"command: interface = '{min(other)}'; expected '{self._interface}'")
        by_position = self._interface == "position"
        # with a PWM of 0, in case a loss of power reset the mode; not needed between two replies
        pwm = table.GOAL_PWM.pack(0) if self._was_block or goals.keys() - self._is_known else b""
        data: dict[int, bytes] = {}
        for id in [id for id in goals if id in self._enabled]:
            if by_position:
                phase, turns = self._phases.get(id, 0), self._turns[id].count
                steps = table.raw_position(goals[id], turns, phase)
                data[id] = table.GOAL_POSITION.pack(steps) + pwm
            else:
                supply = table.SUPPLY.unpack(self._blocks[id], BLOCK_START) * table.SUPPLY_UNIT
                data[id] = table.GOAL_PWM.pack(table.raw_pwm(goals[id], supply))
        register = table.GOAL_POSITION if by_position else table.GOAL_PWM
        self._transport.write(register.address, data)

    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """Return no id: the servos have no command watchdog."""
        return ()

    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Enable torque at the present position, or without PWM; return the ids that confirmed.

        Torque and goal are in one packet, made of the reply just before, so that no servo moves to
        an old goal; both are read back. The mode is checked again, because a loss of power resets
        it. Servos that do not confirm are disabled.
        """
        ready, confirmed = self._set_mode(ids), set[int]()
        for _ in range(MAX_ATTEMPTS):
            self._next_block = 0.0
            present = self.read().keys() & (ready - confirmed)
            data: dict[int, bytes] = {}
            for id in present:  # torque, the servo's acceleration, its present position, no PWM
                block = self._blocks[id]
                acceleration = table.ACCELERATION.unpack(block, BLOCK_START)
                goal = table.GOAL_POSITION.pack(table.POSITION.unpack(block, BLOCK_START))
                data[id] = bytes((1, acceleration)) + goal + table.GOAL_PWM.pack(0)
            self._transport.write(table.TORQUE.address, data)
            confirmed |= self._transport.holding_ids(table.TORQUE.address, data)
        self._enabled |= confirmed
        self.disable(set(ids) - confirmed)  # also: the next reading is a block
        return confirmed

    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Disable torque; return the ids that confirmed it when read back."""
        self._enabled -= set(ids)
        self._next_block = 0.0  # late replies about registers are no positions: other lengths
        return self._transport.write_registers(table.TORQUE, dict.fromkeys(ids, 0))

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Disable torque, which ends an overload; temperature and voltage faults clear alone."""
        off = self.disable(ids)
        return {id for id, status in self._transport.read(off, table.STATUS).items() if not status}

    def _set_mode(self, ids: Collection[int]) -> set[int]:
        """Set the prepared mode of servos without torque, unsaved; return those that have it."""
        mode = MODES[self._interface]
        modes = self._transport.read_registers(table.MODE, ids)
        other = [id for id, value in modes.items() if value != mode]
        locked = self._transport.write_registers(table.LOCK, dict.fromkeys(other, 1))
        return {
            *(modes.keys() - set(other)),
            *self._transport.write_registers(table.MODE, dict.fromkeys(locked, mode)),
        }

    def _require(self, what: str, confirmed: Collection[int]) -> None:
        unconfirmed = [f"{id} ({m.joint})" for id, m in self.motors.items() if id not in confirmed]
        if unconfirmed:
            raise DriverFault(
                f"motors {', '.join(unconfirmed)} do not confirm {what}; {self.remedies}"
            )
