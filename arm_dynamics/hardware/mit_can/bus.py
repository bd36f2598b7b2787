"""MIT-mode CAN motors behind the seam of every motor bus: a command's answer is the feedback.

A silent motor is never enabled: what asks for an answer cannot switch torque on. A Damiao motor is
asked by a refresh, which changes nothing. The manual of CubeMars knows no such request: reading
"when there is no state" is done there by the enabling frame itself. A motor that was not enabled
from here is therefore asked by the **disabling** frame, which is answered too: whoever else holds
it enabled loses it. CubeMars motors tell neither whether they are enabled nor their ranges, and
have no watchdog; one that gives nothing of what it is asked for (``TorqueLossDetector``) is taken for disabled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from arm_dynamics.core.errors import ConfigError, DriverFault, InvalidValue, UnknownName
from arm_dynamics.hardware.mit_can import can_frames, identification
from arm_dynamics.hardware.mit_can.can_frames import COMMUNICATION_LOST
from arm_dynamics.hardware.mit_can.exchange import Exchange, LatencyGuard, MotorReply, ReplyFilter
from arm_dynamics.hardware.mit_can.mit_command import mit_command
from arm_dynamics.hardware.mit_can.motors import (
    BAUD,
    BITRATE,
    NAMES,
    QUIET,
    find_motor,
    gains,
    number,
)
from arm_dynamics.hardware.mit_can.registers import CONTROL_MODE, MIT_MODE, TICK, TIMEOUT, Registers
from arm_dynamics.hardware.mit_can.torque import MAX_ATTEMPTS, TorqueLossDetector, TorqueSwitch
from arm_dynamics.hardware.mit_can.transport import CanLine, PythonCanLine, SlcanLine
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus, MotorCommand, Reading
from arm_dynamics.hardware.serial_port import Port, SerialPort
from arm_dynamics.model.hardware_info import JointMotor

INTERFACES = ("effort", "position", "velocity")
SCANNED = range(1, 33)


class MitCan(MotorBus):
    """Damiao and CubeMars motors on one CAN line.

    Settings: those of PythonCanLine; ``codec``: python-can for its slcan instead of the one here,
    which is four times faster; ``reply_timeout`` [s], the longest silence that is waited
    for in a cycle; ``reply_offset`` from a Damiao motor's id to the identifier of its answers
    until ``identify`` has asked; ``kp``, ``kd`` (or ``kp_3``, ``kd_3`` for motor 3) of position
    and velocity goals, else those of the table.
    """

    feedback_delay = 1.0
    accepts_feedforward_effort = True
    setting_names = NAMES

    def __init__(
        self,
        motors: Sequence[JointMotor],
        settings: Mapping[str, str],
        port: Port | CanLine | None = None,
    ) -> None:
        """Raises UnknownName for a motor that is not in the table, ConfigError for a bad setting.

        ``port`` is a port that speaks slcan, or a line of frames; None for python-can.
        """
        super().__init__(motors, settings)
        self._models = {id: find_motor(wired.motor) for id, wired in self.motors.items()}
        self._gains = {id: gains(self.settings, id, model) for id, model in self._models.items()}
        self._bitrate = int(number(self.settings, BITRATE))
        self._line = _line(self.settings, self._bitrate, port)
        self._exchange = Exchange(self._line, self._models, self.settings)
        self._registers = Registers(self._line, self._exchange.quiet)
        self._doubt = ReplyFilter(self._exchange.ranges)
        self._power = TorqueSwitch(self._exchange, self._models)
        known = [id for id, model in self._models.items() if model.maker.registers]
        self._fence = LatencyGuard(self._registers, known)
        self._given = TorqueLossDetector(self._models)
        self._heard: dict[int, MotorReply] = {}
        self._told: set[int] = set()

    @property
    def remedies(self) -> str:
        """What to do where motors do not answer, or too late."""
        return (
            f"check power, termination, motor ids and bitrate = {self._bitrate} bit/s; if replies"
            f" come late, raise {QUIET.name} = {self._exchange.quiet:g} s"
        )

    def now(self) -> float:
        """The line's clock [s]."""
        return self._line.now()

    def open(self) -> None:
        """Open the line; raises DriverFault where that fails."""
        self._heard, self._told = {}, set()
        self._doubt.reset()
        self._power.reset()
        self._given.reset(self.motors)
        self._fence.doubtful = False
        self._line.open()

    def identify(self) -> None:
        """Check that every motor answers, once, with the ranges of its model; adopt its ranges.

        Reads only (CubeMars: see above). Raises DriverFault naming all that are wrong.
        """
        known = {id: m for id, m in self._models.items() if m.maker.registers}
        found, faults = identification.identify(self._registers, known)
        for id, said in found.items():
            self._exchange.set_identity(id, said.reply_id, said.ranges)
        others = [id for id in self._models if id not in known]
        silent = set(others) - self._power.wait_for_all(others).keys()
        faults += [f"motor {id} ({self._models[id].name}) {identification.SILENT}" for id in silent]
        faults += self._exchange.id_conflicts()
        if any(fault.endswith((identification.SILENT, identification.HALF)) for fault in faults):
            faults.append(self.remedies)
        if faults:
            raise DriverFault("; ".join(faults))

    def prepare(self, interface: str) -> None:
        """Torque off, MIT mode on, watchdogs cleared; DriverFault if one does not confirm it."""
        if interface not in INTERFACES:
            raise UnknownName("interface of MIT motors", interface, INTERFACES)
        self._require("that torque is off", self.disable(self.motors))
        known = self._with_registers(self.motors)
        other = {
            id for id in known if not self._registers.set(id, CONTROL_MODE, MIT_MODE, MAX_ATTEMPTS)
        }
        self._require(f"MIT mode (register {CONTROL_MODE})", self.motors.keys() - other)
        tripped = self._power.clear_timeouts(known)
        self._require(f"that '{COMMUNICATION_LOST}' is cleared", self.motors.keys() - tripped)

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Effort, position and velocity: the three are one law with other gains."""
        return INTERFACES

    def read(self) -> Mapping[int, Reading]:
        """Answers to the commands since the last read; the other motors are asked now.

        What lay in the line before a motor was asked is not taken for its answer; what cannot
        follow from the answer before is asked once more. After a cycle without any answer
        nothing is believed before a ``LatencyGuard`` has been passed.
        """
        answers, told = self._heard, self._told
        self._heard, self._told = {}, set()
        if self._fence.doubtful:
            if not self._fence.resynchronize():
                return {}
            answers, told = {}, set()
        if told:
            answers |= self._exchange.late_replies(told)
        answers |= self._power.ask(self.motors.keys() - told)
        self._fence.update(answers)
        believed = self._doubt.filter(answers, self._power.ask)
        self._given.update(believed)
        return {
            id: _reading(answer, self._given.torque_lost(id)) for id, answer in believed.items()
        }

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send goals and take the answers, which the next ``read`` returns.

        Each by its ``mit_command``. Raises InvalidValue for an unknown motor or interface or for no finite
        value.
        """
        told = {id: (id, self._command(id, goal)) for id, goal in goals.items()}
        self._told |= told.keys()
        self._heard |= self._power.command(told)

    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """Damiao's TIMEOUT in steps of 50 µs, read back; CubeMars motors have none.

        Armed until it is powered off, an enabled motor that hears nothing for so long goes limp:
        "communication lost".
        """
        ticks = max(round(timeout / TICK), 1)
        known = self._with_registers(self.motors)
        return {id for id in known if self._registers.set(id, TIMEOUT, ticks, MAX_ATTEMPTS)}

    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Torque on where a motor answers and then says that it is on; off again elsewhere.

        A goal that was written since it was disabled follows at once: without one, it is limp.
        """
        self._given.reset(ids)
        return self._power.enable(ids)

    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Torque off; those that answer, and do not say that they are enabled."""
        self._given.reset(ids)
        return self._power.disable(ids)

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Damiao: clear the fault and disable; CubeMars motors clear theirs when it has passed."""
        self._heard, self._told = {}, set()  # what was answered before tells the old fault
        return self._power.clear_faults(ids)

    def set_zero(self, ids: Collection[int]) -> Collection[int]:
        """Call the present position 0, torque off; those that read 0 ± 0.01 rad then."""
        return self._power.set_zero(ids)

    def temperatures(self, id: int) -> tuple[float, float]:
        """Of drive and rotor [°C] in the newest answer; NaN where the motor does not tell."""
        return self._exchange.temperatures(id)

    @classmethod
    def scan(
        cls, settings: Mapping[str, str], port: Port | CanLine | None = None
    ) -> Sequence[DiscoveredMotor]:
        """Damiao motors that answer among SCANNED; each is only read from.

        CubeMars motors are left out: none of their frames is a mere question.
        """
        bus = cls((), settings, port)
        try:
            bus.open()
            return identification.scan_bus(bus._registers, SCANNED, bus._bitrate)
        finally:
            bus.close()

    def has_watchdog(self, id: int) -> bool:
        """Damiao motors have a TIMEOUT, CubeMars motors none."""
        return self._models[id].maker.registers

    def close(self) -> None:
        """Release the line; never raises, may be called twice."""
        self._line.close()

    def _require(self, what: str, confirmed: Collection[int]) -> None:
        left = sorted(self.motors.keys() - confirmed)
        if left:
            raise DriverFault(f"motors {left} do not confirm {what}; {self.remedies}")

    def _with_registers(self, ids: Iterable[int]) -> list[int]:
        return [id for id in ids if self._models[id].maker.registers]

    def _command(self, id: int, goal: MotorCommand) -> bytes:
        if id not in self.motors or goal.interface not in INTERFACES:
            raise InvalidValue(f"motor {id}: {goal.interface} goal: {list(self.motors)} are wired")
        told = mit_command(goal, *self._gains[id])
        if id in self._given.ids:
            self._given.command_sent(id, told)
        return can_frames.encode_command(self._exchange.ranges[id], *told)


def _reading(answer: MotorReply, lost: bool) -> Reading:
    said = answer.feedback
    return Reading(
        answer.time,
        said.position,
        said.velocity,
        said.torque,
        max(said.rotor_temperature, said.drive_temperature),  # the rotor's beside a NaN
        fault=said.fault,
        enabled=False if lost else said.enabled,
    )


def _line(settings: Mapping[str, str], bitrate: int, port: Port | CanLine | None) -> CanLine:
    codec = settings.get("codec", "own")
    if codec not in ("own", "python-can"):
        raise ConfigError(f"CAN: codec = '{codec}': own or python-can")
    if port is None and (settings.get("interface"), codec) == ("slcan", "own"):
        baud = int(number(settings, BAUD))
        port = SerialPort(settings.get("port") or settings.get("channel", ""), baud)
    if port is None:
        return PythonCanLine(settings)
    return SlcanLine(port, bitrate) if isinstance(port, Port) else port
