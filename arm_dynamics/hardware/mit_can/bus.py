"""MIT-mode CAN motors as a motor bus: the reply to a command is the feedback.

A motor that does not reply is never enabled: requests for feedback cannot enable torque. Damiao
motors are requested by a refresh frame, which changes nothing. The manual of CubeMars has no such
request: it reads the state of an idle motor by the enabling frame itself. A CubeMars motor that
this program has not enabled is therefore requested by the **disabling** frame, which has a reply
too: if another program holds it enabled, it loses its torque. CubeMars motors report neither their
enabled state nor their ranges, and have no watchdog; ``TorqueLossDetector`` detects those without
torque.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from arm_dynamics.core.errors import ConfigError, DriverFault, InvalidValue, UnknownName
from arm_dynamics.hardware.mit_can import can_frames, discovery
from arm_dynamics.hardware.mit_can.can_frames import COMMUNICATION_LOST, CanFrame, mit_command
from arm_dynamics.hardware.mit_can.discovery import (
    CONTROL_MODE,
    MIT_MODE,
    NO_RANGES,
    NO_REPLY,
    TIMEOUT,
    TIMEOUT_UNIT,
    Registers,
)
from arm_dynamics.hardware.mit_can.exchange import Exchange, MotorReply, TorqueSwitch
from arm_dynamics.hardware.mit_can.motors import (
    BAUD,
    BITRATE,
    REPLY_TIMEOUT,
    SETTING_NAMES,
    find_motor,
    gains,
    number,
)
from arm_dynamics.hardware.mit_can.reply_checks import (
    LatencyGuard,
    ReplyFilter,
    TorqueLossDetector,
)
from arm_dynamics.hardware.mit_can.transport import CanTransport, PythonCanTransport, SlcanTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus, MotorCommand, Reading
from arm_dynamics.hardware.serial_port import Port, SerialPort
from arm_dynamics.model.hardware_info import JointMotor

INTERFACES = ("effort", "position", "velocity")
SCANNED_IDS = range(1, 33)


class MitCan(MotorBus):
    """Damiao and CubeMars motors on one CAN bus.

    Parameters
    ----------
    motors : Sequence[JointMotor]
        Motors of the joints.
    settings : Mapping[str, str]
        Those of PythonCanTransport. ``codec``: "python-can" for its slcan instead of the native
        one, which is four times faster. ``reply_timeout`` [s]: longest gap between replies.
        ``reply_id_offset``: reply id minus motor id of Damiao motors until ``discover`` has read
        it. ``kp``, ``kd`` (``kp_3``, ``kd_3`` for motor 3): gains of position and velocity
        commands.
    port : Port or CanTransport, optional
        Port with slcan, or a transport of frames; by default python-can.

    Raises
    ------
    UnknownName
        A model is unknown.
    ConfigError
        A setting is out of range.

    """

    feedback_delay = 1.0
    accepts_feedforward_effort = True
    setting_names = SETTING_NAMES

    def __init__(
        self,
        motors: Sequence[JointMotor],
        settings: Mapping[str, str],
        port: Port | CanTransport | None = None,
    ) -> None:
        super().__init__(motors, settings)
        self._models = {id: find_motor(motor.motor) for id, motor in self.motors.items()}
        self._gains = {id: gains(self.settings, id, model) for id, model in self._models.items()}
        self._bitrate = int(number(self.settings, BITRATE))
        self._transport = _make_transport(self.settings, self._bitrate, port)
        self._exchange = Exchange(self._transport, self._models, self.settings)
        self._registers = Registers(self._transport, self._exchange.reply_timeout)
        self._torque = TorqueSwitch(self._exchange, self._models)
        self._filter = ReplyFilter(self._exchange.ranges)
        self._latency_guard = LatencyGuard(self._registers, self._with_registers(self._models))
        self._torque_loss = TorqueLossDetector(self._models)
        self._replies: dict[int, MotorReply] = {}
        self._commanded: set[int] = set()

    @property
    def remedies(self) -> str:
        """Remedies if motors do not reply, or too late."""
        return (
            f"check power, termination, motor ids and bitrate = {self._bitrate} bit/s; if replies"
            f" come late, raise {REPLY_TIMEOUT.name} = {self._exchange.reply_timeout:g} s"
        )

    def now(self) -> float:
        """Return the time [s] on the bus's clock."""
        return self._transport.now()

    def open(self) -> None:
        """Open the bus; raises DriverFault if that fails."""
        self._replies, self._commanded = {}, set()
        self._filter.reset()
        self._torque.reset()
        self._torque_loss.reset(self.motors)
        self._latency_guard.uncertain = False
        self._transport.open()

    def discover(self) -> None:
        """Check that every motor replies, once, with the ranges of its model; use its ranges.

        Reads only (CubeMars: see above). Raises DriverFault naming all problems.
        """
        with_registers = {id: self._models[id] for id in self._with_registers(self._models)}
        identities, faults = discovery.discover(self._registers, with_registers)
        for id, identity in identities.items():
            self._exchange.set_identity(id, identity.reply_id, identity.ranges)
        others = [id for id in self._models if id not in with_registers]
        missing = set(others) - self._torque.wait_for_all(others).keys()
        faults += [f"motor {id} ({self._models[id].name}) {NO_REPLY}" for id in missing]
        faults += self._exchange.id_conflicts()
        if any(fault.endswith((NO_REPLY, NO_RANGES)) for fault in faults):
            faults.append(self.remedies)
        if faults:
            raise DriverFault("; ".join(faults))

    def prepare(self, interface: str) -> None:
        """Disable torque, set MIT mode, clear watchdogs; DriverFault if one does not confirm."""
        if interface not in INTERFACES:
            raise UnknownName("interface of MIT motors", interface, INTERFACES)
        self._require("that torque is off", self.disable(self.motors))
        with_registers = self._with_registers(self.motors)
        other = {
            id for id in with_registers if not self._registers.write(id, CONTROL_MODE, MIT_MODE)
        }
        self._require(f"MIT mode (register {CONTROL_MODE})", self.motors.keys() - other)
        tripped = self._torque.clear_timeouts(with_registers)
        self._require(f"that '{COMMUNICATION_LOST}' is cleared", self.motors.keys() - tripped)

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Return effort, position and velocity: one equation with different gains."""
        return INTERFACES

    def read(self) -> Mapping[int, Reading]:
        """Return the replies to the commands since the last read; request those of other motors.

        Frames received before a request are not taken for its reply. A reply that is inconsistent
        with the one before is requested again. After a cycle without any reply, replies are
        accepted once ``LatencyGuard`` is resynchronized.
        """
        replies, commanded = self._replies, self._commanded
        self._replies, self._commanded = {}, set()
        if self._latency_guard.uncertain:
            if not self._latency_guard.resynchronize():
                return {}
            replies, commanded = {}, set()
        if commanded:
            replies |= self._exchange.late_replies(commanded)
        replies |= self._torque.request(self.motors.keys() - commanded)
        self._latency_guard.update(replies)
        accepted = self._filter.filter(replies, self._torque.request)
        self._torque_loss.update(accepted)
        return {
            id: reply.to_reading(self._torque_loss.torque_lost(id))
            for id, reply in accepted.items()
        }

    def write(self, goals: Mapping[int, MotorCommand]) -> None:
        """Send commands and receive the replies, which the next ``read`` returns.

        Raises InvalidValue for an unknown motor or interface and for a value that is not finite.
        """
        frames: dict[int, CanFrame] = {}
        for id, goal in goals.items():
            if id not in self.motors or goal.interface not in INTERFACES:
                raise InvalidValue(
                    f"motor {id}: interface = '{goal.interface}'; expected"
                    f" {' or '.join(INTERFACES)} of one of the motors {list(self.motors)}"
                )
            command = mit_command(goal, *self._gains[id])
            if id in self._torque_loss.ids:
                self._torque_loss.command_sent(id, command)
            frames[id] = id, can_frames.encode_command(self._exchange.ranges[id], *command)
        self._commanded |= frames.keys()
        self._replies |= self._torque.command(frames)

    def enable_watchdog(self, timeout: float) -> Collection[int]:
        """Set Damiao's TIMEOUT in steps of 50 µs and read it back; CubeMars motors have none.

        Set until power-off. An enabled motor without commands for so long loses its torque:
        "communication lost".
        """
        ticks = max(round(timeout / TIMEOUT_UNIT), 1)
        with_registers = self._with_registers(self.motors)
        return {id for id in with_registers if self._registers.write(id, TIMEOUT, ticks)}

    def enable(self, ids: Collection[int]) -> Collection[int]:
        """Enable torque of motors that reply and report it then; disable the others.

        A command that was written since a motor was disabled follows immediately: without one it
        has no torque.
        """
        self._torque_loss.reset(ids)
        return self._torque.enable(ids)

    def disable(self, ids: Collection[int]) -> Collection[int]:
        """Disable torque; return the motors that reply and do not report that they are enabled."""
        self._torque_loss.reset(ids)
        return self._torque.disable(ids)

    def clear_faults(self, ids: Collection[int]) -> Collection[int]:
        """Clear faults of Damiao motors and disable; CubeMars motors clear theirs automatically."""
        self._replies, self._commanded = {}, set()  # earlier replies report the old fault
        return self._torque.clear_faults(ids)

    def set_zero(self, ids: Collection[int]) -> Collection[int]:
        """Make the present position 0, torque disabled; return motors that report 0 ± 0.01 rad."""
        return self._torque.set_zero(ids)

    def temperatures(self, id: int) -> tuple[float, float]:
        """Return drive and rotor temperature [°C] of the newest reply; NaN if not reported."""
        return self._exchange.temperatures(id)

    @classmethod
    def scan(
        cls, settings: Mapping[str, str], port: Port | CanTransport | None = None
    ) -> Sequence[DiscoveredMotor]:
        """Return the Damiao motors that reply among SCANNED_IDS; reads only.

        CubeMars motors are omitted: each of their frames changes the motor's state.
        """
        bus = cls((), settings, port)
        try:
            bus.open()
            return discovery.scan_bus(bus._registers, SCANNED_IDS, bus._bitrate)
        finally:
            bus.close()

    def has_watchdog(self, id: int) -> bool:
        """Return whether the motor has a watchdog: Damiao's TIMEOUT; CubeMars motors have none."""
        return self._models[id].vendor.has_registers

    def close(self) -> None:
        """Release the bus; never raises, may be called twice."""
        self._transport.close()

    def _require(self, what: str, confirmed: Collection[int]) -> None:
        unconfirmed = sorted(self.motors.keys() - confirmed)
        if unconfirmed:
            raise DriverFault(f"motors {unconfirmed} do not confirm {what}; {self.remedies}")

    def _with_registers(self, ids: Iterable[int]) -> list[int]:
        return [id for id in ids if self._models[id].vendor.has_registers]


def _make_transport(
    settings: Mapping[str, str], bitrate: int, port: Port | CanTransport | None
) -> CanTransport:
    codec = settings.get("codec", "native")
    if codec not in ("native", "python-can"):
        raise ConfigError(f"CAN: codec = '{codec}'; expected native or python-can")
    if port is None and (settings.get("interface"), codec) == ("slcan", "native"):
        baud = int(number(settings, BAUD))
        port = SerialPort(settings.get("port") or settings.get("channel", ""), baud)
    if port is None:
        return PythonCanTransport(settings)
    return SlcanTransport(port, bitrate) if isinstance(port, Port) else port
