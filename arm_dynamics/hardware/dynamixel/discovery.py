"""Discovery and setup of Dynamixel motors: model, firmware, duplicate ids, operating mode.

Discovery and scan only read. Setup writes EEPROM only if a value differs, and reads back
every write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import packets
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel, model_name
from arm_dynamics.hardware.dynamixel.feedback_reader import FeedbackReader
from arm_dynamics.hardware.dynamixel.transport import DynamixelTransport
from arm_dynamics.hardware.motor_bus import CORRUPT, DiscoveredMotor
from arm_dynamics.hardware.register_bus import MAX_ATTEMPTS, scan_rates
from arm_dynamics.hardware.register_protocol import BROADCAST, Register
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

BAUDS = (57_600, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 115_200, 9_600)
"""Rates [bit/s] of the Dynamixel X series, the most common first."""
PING_SLOT = 3e-3
"""Time [s] for each id to reply to a broadcast ping (as in dynamixel-sdk)."""
LATENCY = 0.02
"""Longest time [s] that an adapter may delay the reply of a single motor."""
NO_REPLY = "no reply"
_ID_COUNT = 253
_RETURN_DELAY_UNIT = 2e-6  # [s]
_CLEAR_REPLIES, _UNCLEAR_REPLIES = 8, 32
_LIVE_VALUES = Register(table.REALTIME_TICK.address, 27)
"""Values that differ from motor to motor: replies of two motors with one id collide."""
_REVERSED, _SLAVE, _TORQUE_BY_GOAL = 0x01, 0x02, 0x08
"""Bits of the drive mode that this driver does not support."""


def check_motor(
    transport: DynamixelTransport, motor: JointMotor, model: DynamixelModel
) -> tuple[str, int | None]:
    """Return the problem of one motor, "" for none, and its firmware if it replies."""
    reply, noise = _ping(transport, motor.id)
    if reply is None:
        problem = "two motors with this id, or a disturbed bus" if noise else NO_REPLY
    elif reply[0] != model.number:
        number, firmware = reply
        problem = f"model = {model_name(number)} (firmware {firmware}), expected {model.name}"
    else:
        problem = "" if has_unique_id(transport, motor.id) else "two motors reply with this id"
    text = f"joint '{motor.joint}' (id {motor.id}): {problem}" if problem else ""
    return text, None if reply is None else reply[1]


def firmwares(transport: DynamixelTransport, ids: Iterable[int]) -> dict[int, int]:
    """Return the firmware of every motor that replies, by id."""
    replies = {id: _ping(transport, id)[0] for id in ids}
    return {id: reply[1] for id, reply in replies.items() if reply is not None}


def longest_return_delay(transport: DynamixelTransport, ids: Iterable[int]) -> float:
    """Return the longest return delay [s] of the motors."""
    delays = (transport.read_register(id, table.RETURN_DELAY) for id in ids)
    return max((value for value in delays if value is not None), default=250) * _RETURN_DELAY_UNIT


def has_unique_id(transport: DynamixelTransport, id: int) -> bool:
    """Return whether nearly all replies are intact; those of two motors with one id are not.

    Some of these are: by chance the CRCs of both match the collided bytes.
    """
    request = packets.read(id, _LIVE_VALUES.address, _LIVE_VALUES.size)
    corrupt = 0
    for count in range(1, _UNCLEAR_REPLIES + 1):
        transport.request(request, (id,), _LIVE_VALUES.size)
        corrupt += transport.had_noise
        if count == _CLEAR_REPLIES and not corrupt:
            return True
    return corrupt < _UNCLEAR_REPLIES // 4


def _ping(transport: DynamixelTransport, id: int) -> tuple[tuple[int, int] | None, bool]:
    noise = False
    for _ in range(MAX_ATTEMPTS):
        reply = transport.ping(id)
        noise = noise or transport.had_noise
        if reply is not None:
            return reply, noise
    return None, noise


def scan_port(port: Callable[[int], Port], bauds: Iterable[int] = BAUDS) -> list[DiscoveredMotor]:
    """Return the motors that reply, at every rate of ``bauds`` by id.

    Parameters
    ----------
    port : callable
        Creates a port for a rate, for example ``partial(SerialPort, "/dev/ttyUSB0")``.
    bauds : Iterable[int]
        Rates [bit/s].

    Returns
    -------
    list of DiscoveredMotor
        Two motors with one id occur twice, or once with the model CORRUPT. Noise that belongs to no
        id has the id -1.

    Raises
    ------
    DriverFault
        The port cannot be opened.

    """
    return scan_rates(port, bauds, _scan_at)


def _scan_at(port: Port, baud: int) -> list[DiscoveredMotor]:
    """Scan at one rate by a broadcast ping; then search the ids whose replies collide."""
    transport = DynamixelTransport(port, baud, LATENCY)
    slot = PING_SLOT + (packets.STATUS_SIZE + 3) * transport.byte_time
    replies = transport.request_all(packets.ping(BROADCAST), port.now() + _ID_COUNT * slot)
    noise, motors = transport.had_noise, []
    for packet in replies:
        if packet.instruction == packets.STATUS and len(packet.data) == 3:
            number, firmware = packets.model_and_firmware(packet.data)
            motors.append(DiscoveredMotor(packet.id, model_name(number), str(firmware), baud))
    ids = {motor.id for motor in motors}
    duplicates = [id for id in sorted(ids) if not has_unique_id(transport, id)]
    if noise:
        others = [id for id in range(_ID_COUNT) if id not in ids]
        colliding = [id for id in others if transport.ping(id) is None and transport.had_noise]
        duplicates += colliding or ([] if duplicates else [-1])
    return [*motors, *(DiscoveredMotor(id, CORRUPT, "", baud) for id in duplicates)]


class MotorSetup:
    """Set up motors for a command interface, torque disabled.

    What a motor does not confirm raises DriverFault.
    """

    def __init__(
        self, transport: DynamixelTransport, models: Mapping[int, DynamixelModel],
        feedback: FeedbackReader,
    ) -> None:  # fmt: skip
        self._transport, self._models, self._feedback = transport, models, feedback

    def prepare(self, id: int, interface: str) -> tuple[dict[str, int], float]:
        """Return the largest raw commands by interface, and the supply [V]."""
        model = self._models[id]
        if interface not in model.interfaces:
            allowed = " or ".join(map(repr, model.interfaces))
            raise DriverFault(f"interface = '{interface}'; expected {allowed} for {model.name}")
        self.clear_watchdog(id)
        self._check_drive_mode(id)
        self._set(id, table.OPERATING_MODE, table.MODES[interface], "operating mode")
        limits = {
            "position": table.MAX_POSITION,
            "velocity": self._get(id, table.VELOCITY_LIMIT),
            "voltage": self._get(id, table.PWM_LIMIT),
        }
        if model.effort:
            limits["effort"] = self._get(id, table.CURRENT_LIMIT)
        if interface != "voltage":  # in other modes the goal PWM limits the applied PWM
            self._set(id, table.GOAL_PWM, limits["voltage"], "goal PWM")
        if not any(self._feedback.map_block(id) for _ in range(MAX_ATTEMPTS)):
            raise DriverFault("indirect addresses are not accepted")
        return limits, self._get(id, table.INPUT_VOLTAGE) * table.VOLTAGE_UNIT

    def clear_watchdog(self, id: int) -> None:
        """Disable the bus watchdog if the firmware has one (38 or later).

        Goal registers are read-only while it is tripped: nothing else is written before.
        """
        watchdog = table.BUS_WATCHDOG
        tripped = self._transport.read_register(id, watchdog)
        if tripped and not self._transport.write_register(id, watchdog, 0):
            raise DriverFault(f"bus watchdog is not cleared (address {watchdog.address})")

    def _check_drive_mode(self, id: int) -> None:
        mode = self._get(id, table.DRIVE_MODE)
        unsupported = {
            _REVERSED: "reversed (set the joint's sign instead)",
            _SLAVE: "slave of another motor",
            _TORQUE_BY_GOAL: "torque on by goal update",
        }
        active = [name for bit, name in unsupported.items() if mode & bit]
        if active:
            raise DriverFault(f"drive mode = {mode}: {', '.join(active)}; expected off")

    def _get(self, id: int, register: Register) -> int:
        value = self._transport.read_register(id, register)
        if value is None:
            raise DriverFault(f"{NO_REPLY} to a read of address {register.address}")
        return value

    def _set(self, id: int, register: Register, value: int, name: str) -> None:
        if self._get(id, register) != value and not self._transport.write_register(
            id, register, value
        ):
            raise DriverFault(f"{name} = {value} is not accepted (address {register.address})")
