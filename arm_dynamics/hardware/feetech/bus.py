"""Feetech STS servos behind the seam of every motor bus: position, or voltage by PWM.

What stands in a servo's EEPROM is never changed, with one exception that a loss of power undoes:
where the operating mode is another than is asked for, LOCK is set, so that nothing more is
saved, and the mode is written. Homing, limits and gains are the servo's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.core.errors import DriverFault, InvalidValue, UnknownName
from arm_dynamics.hardware.feetech import conversion, identification
from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.feetech.conversion import TurnCounter
from arm_dynamics.hardware.feetech.settings import SETTINGS, read_settings, serial_port
from arm_dynamics.hardware.feetech.transport import ATTEMPTS, FeetechTransport, RegisterAccess
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus, MotorCommand, Reading
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

MODES = {"position": table.POSITION_MODE, "voltage": table.PWM_MODE}


class Feetech(MotorBus):
    """Servos of Feetech's STS series on one serial line.

    Settings: ``port``, and those of ``settings.SETTINGS``. These servos have no watchdog of
    commands: in position mode one holds its last goal for ever, with a PWM it goes on turning.
    The effort is reckoned from the measured current; LOAD tells but its direction, as it is the
    duty that a servo applies and no torque.
    """

    estimates_effort = True
    setting_names = tuple(parameter.name for parameter in SETTINGS)
    bauds = identification.BAUDS

    def __init__(
        self, motors: Sequence[JointMotor], settings: Mapping[str, str], port: Port | None = None
    ) -> None:
        """Raises UnknownName for a servo that is not known, ConfigError for a bad setting."""
        super().__init__(motors, settings)
        for wired in self.motors.values():
            table.model_number(wired.motor)
        self._told = told = read_settings(self.settings)
        self._kt, self._interface = told["kt"], "position"
        self._port = port or serial_port(self.settings, told["baud"])
        self._line = FeetechTransport(self._port, told["baud"], told["latency"])
        self._memory = RegisterAccess(self._line)
        self._phases: dict[int, int] = {}
        self._blocks: dict[int, bytes] = {}
        self._on: set[int] = set()
        self._forget()

    @classmethod
    def scan(cls, settings: Mapping[str, str]) -> list[DiscoveredMotor]:
        """The servos that answer at the rate of ``settings``, by id; reads only."""
        baud = round(read_settings(settings)["baud"])
        return identification.scan_port(lambda rate: serial_port(settings, rate), (baud,))

    def has_watchdog(self, id: int) -> bool:
        """These servos have none."""
        return False

    @property
    def remedies(self) -> str:
        """What to do where servos do not answer, or too late."""
        baud, latency = self._told["baud"], self._line.latency
        said = f"check power, cable, servo ids and baud = {baud:.0f} bit/s (a scan finds both)"
        return f"{said}; if replies come late, raise latency = {latency:g} s"

    def now(self) -> float:
        """The port's clock [s]."""
        return self._port.now()

    def open(self) -> None:
        """Open the port for this program alone; turns are counted anew."""
        self._forget()
        self._port.open()

    def identify(self) -> None:
        """Check that every servo answers, once, as the model that it should be; reads only.

        Raises DriverFault naming all that are missing, doubled or of another model.
        """
        faults = identification.identity_faults(self._line, self.motors.values())
        if faults:
            unheard = (identification.SILENT, identification.NONE, identification.GARBLED)
            silent = any(fault.endswith(unheard) for fault in faults)
            said = [*faults, *([self.remedies] if silent else [])]
            raise DriverFault(f"port '{self._port.name}': {'; '.join(said)}")

    def prepare(self, interface: str) -> None:
        """Torque off, operating mode as ``interface`` needs it, no PWM; all read back.

        Raises DriverFault naming the servos that do not confirm it.
        """
        if interface not in MODES:
            raise UnknownName("interface of Feetech servos", interface, tuple(MODES))
        self._require("torque off", self.disable(self.motors))
        phases = self._memory.read(table.PHASE, self.motors)
        self._require("their phase", phases)
        self._interface = interface
        self._require(f"{interface} mode", self._take_mode(self.motors))
        self._require("a PWM of 0", self._memory.set(table.GOAL_PWM, dict.fromkeys(self.motors, 0)))
        self._phases = phases

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Position, or voltage: PWM times the supply. No servo of the series takes a torque."""
        return tuple(MODES)

    def read(self) -> Mapping[int, Reading]:
        """The servos that answered now, by id."""
        found = self._line.request(self.motors.keys(), conversion.START, conversion.SIZE)
        readings = {}
        for id, (when, packet) in found.items():
            self._blocks[id], phase = packet.data, self._phases.get(id, table.FAST_UNIT)
            raw = table.POSITION.unpack(packet.data, conversion.START)
            steps = raw if phase & table.MULTI_TURN else self._turns[id].unwrap(raw)
            told = conversion.to_reading(packet.data, packet.error, steps, phase, self._kt, when)
            readings[id] = told
            if not told.enabled:
                self._on.discard(id)  # a goal would switch its torque on again
        return readings

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send goals to servos whose torque is on; those of others are not sent.

        Raises CommandRefused for a goal that is not finite, InvalidValue for one of another
        interface than the prepared one; then none is sent.
        """
        wrong = {goal.interface for goal in goals.values()} - {self._interface}
        if wrong:
            raise InvalidValue(f"goal of {sorted(wrong)}: prepared for '{self._interface}'")
        register = table.GOAL_POSITION if self._interface == "position" else table.GOAL_PWM
        shares = {id: self._share(id, goal) for id, goal in goals.items() if id in self._on}
        self._line.write(register.address, shares)

    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """None: these servos have no watchdog of commands."""
        return ()

    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Torque on where they stand, or without PWM; those that confirmed it.

        Switch and goal go in one packet, made of what the servo said just before, so that no old
        goal is ever driven to, and both are read back; the mode is looked at again, as a loss of
        power undoes it. Torque is switched off again where it is not confirmed.
        """
        able, done = self._take_mode(ids), set[int]()
        for _ in range(ATTEMPTS):
            here = self.read().keys() & (able - done)
            left = {id: self._switch_on(self._blocks[id]) for id in here}
            self._line.write(table.TORQUE.address, left)
            done |= self._line.holding_ids(table.TORQUE.address, left)
        self._on |= done
        self.disable(set(ids) - done)
        return done

    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Torque off; those that confirmed it by reading it back."""
        self._on -= set(ids)
        return self._memory.set(table.TORQUE, dict.fromkeys(ids, 0))

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Torque off, which ends an overload; heat and voltage pass by themselves."""
        off = self.disable(ids)
        return {id for id, status in self._line.read(off, table.STATUS).items() if not status}

    def close(self) -> None:
        """Release the port; never raises, may be called twice, from another thread too."""
        self._port.close()

    def _share(self, id: int, goal: MotorCommand) -> bytes:
        """The bytes of a goal; a position comes with no PWM, should power have undone the mode."""
        if goal.interface == "position":
            phase = self._phases.get(id, 0)
            steps = conversion.raw_position(goal, self._turns[id].count, phase)
            return table.GOAL_POSITION.pack(steps) + table.GOAL_PWM.pack(0)
        supply = table.SUPPLY.unpack(self._blocks[id], conversion.START)
        return table.GOAL_PWM.pack(conversion.raw_pwm(goal, supply * conversion.SUPPLY_UNIT))

    def _switch_on(self, block: bytes) -> bytes:
        """Torque on, its own acceleration, its present position as the goal, no PWM (no time)."""
        acceleration = table.ACCELERATION.unpack(block, conversion.START)
        goal = table.POSITION.unpack(block, conversion.START)
        return bytes((1, acceleration)) + table.GOAL_POSITION.pack(goal) + table.GOAL_PWM.pack(0)

    def _take_mode(self, ids: Collection[int]) -> set[int]:
        """Have servos without torque take the prepared mode, unsaved; those that have it."""
        mode = MODES[self._interface]
        modes = self._memory.read(table.MODE, ids)
        other = [id for id, found in modes.items() if found != mode]
        locked = self._memory.set(table.LOCK, dict.fromkeys(other, 1))
        return {
            *(modes.keys() - set(other)),
            *self._memory.set(table.MODE, dict.fromkeys(locked, mode)),
        }

    def _require(self, what: str, confirmed: Collection[int]) -> None:
        left = [f"{id} ({m.joint})" for id, m in self.motors.items() if id not in confirmed]
        if left:
            raise DriverFault(f"motors {', '.join(left)} do not confirm {what}; {self.remedies}")

    def _forget(self) -> None:
        self._turns = {id: TurnCounter() for id in self.motors}
        for known in (self._phases, self._blocks, self._on, self._line.silent):
            known.clear()
