"""Whether every motor is there, once, and the one that it should be: reads only.

Which Dynamixel motors are on a line, and at which rates: looks, never changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import packets as codec
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel, model_name
from arm_dynamics.hardware.dynamixel.transport import MAX_ATTEMPTS, DynamixelTransport
from arm_dynamics.hardware.motor_bus import CORRUPT, DiscoveredMotor
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

_DELAY_UNIT = 2e-6
"""Of the return delay register [s]."""
_CLEAR, _DOUBTED = 8, 32
_LIVE = table.Register(table.REALTIME_TICK.address, 27)
"""Values that differ from motor to motor: two with one id can not say them in one voice."""


def check_motor(
    line: DynamixelTransport, motor: JointMotor, model: DynamixelModel
) -> tuple[str, int | None]:
    """What is wrong with one motor, "" for nothing; and its firmware, where it tells."""
    answer, noise = _ping(line, motor.id)
    if answer is None:
        said = "two motors with this id, or a disturbed line" if noise else "no answer"
    elif answer[0] != model.number:
        number, firmware = answer
        said = f"is {model_name(number)} with firmware {firmware}, {model.name} expected"
    else:
        said = "" if has_unique_id(line, motor.id) else "two motors with this id answer at once"
    problem = f"joint '{motor.joint}' (id {motor.id}): {said}" if said else ""
    return problem, None if answer is None else answer[1]


def firmwares(line: DynamixelTransport, ids: Iterable[int]) -> dict[int, int]:
    """The firmware of every motor that answers, by id."""
    answers = {id: _ping(line, id)[0] for id in ids}
    return {id: answer[1] for id, answer in answers.items() if answer is not None}


def longest_return_delay(line: DynamixelTransport, ids: Iterable[int]) -> float:
    """The longest time that any of the motors keeps before it answers [s]."""
    told = (line.read_register(id, table.RETURN_DELAY) for id in ids)
    return max((value for value in told if value is not None), default=250) * _DELAY_UNIT


def _ping(line: DynamixelTransport, id: int) -> tuple[tuple[int, int] | None, bool]:
    noise = False
    for _ in range(MAX_ATTEMPTS):
        answer = line.ping(id)
        noise = noise or line.had_noise
        if answer is not None:
            return answer, noise
    return None, noise


def has_unique_id(line: DynamixelTransport, id: int) -> bool:
    """Whether nearly all answers are clear; those of two motors with one id are not.

    Some of these are: by chance the CRCs of both fit what they say together.
    """
    request = codec.read(id, _LIVE.address, _LIVE.size)
    garbled = 0
    for asked in range(1, _DOUBTED + 1):
        line.request(request, (id,), _LIVE.size)
        garbled += line.had_noise
        if asked == _CLEAR and not garbled:
            return True
    return garbled < _DOUBTED // 4


BAUDS = (57_600, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 115_200, 9_600)
"""Rates of the Dynamixel X series, those met most often first [bit/s]."""
PING_SLOT = 3e-3
"""Time that every id may take to answer a ping of all [s] (dynamixel-sdk waits as long)."""
LATENCY = 0.02
"""Longest that an adapter is believed to hold back the answer of a single motor [s]."""
_SLOTS = 253


def scan_port(port: Callable[[int], Port], bauds: Iterable[int] = BAUDS) -> list[DiscoveredMotor]:
    """The motors that answer, at every rate of ``bauds`` by id.

    ``port`` makes a port for a rate, as ``partial(SerialPort, "/dev/ttyUSB0")``. Two motors with
    one id are listed twice, or once more as GARBLED; so is a noise that no id can be given to,
    with id -1. Raises DriverFault where the port can not be opened.
    """
    return [found for baud in bauds for found in _at(port(baud), baud)]


def _at(port: Port, baud: int) -> list[DiscoveredMotor]:
    port.open()
    try:
        line = DynamixelTransport(port, baud, LATENCY)
        found, disturbed = _everyone(line, baud)
        heard = [motor.id for motor in found]
        doubled = [id for id in sorted(set(heard)) if not has_unique_id(line, id)]
        if disturbed:
            doubled += _talking_at_once(line, set(heard)) or ([] if doubled else [-1])
        return [*found, *(DiscoveredMotor(id, CORRUPT, "", baud) for id in doubled)]
    finally:
        port.close()


def _everyone(line: DynamixelTransport, baud: int) -> tuple[list[DiscoveredMotor], bool]:
    """Who answers a ping of all, and whether other bytes came too."""
    reply = codec.STATUS_SIZE + 3
    wait = _SLOTS * (PING_SLOT + reply * line.byte_time)
    packets = line.request_all(codec.ping(codec.BROADCAST), line.port.now() + wait)
    heard = [p for p in packets if p.instruction == codec.STATUS and len(p.data) == 3]
    return [DiscoveredMotor(p.id, *_told(p.data), baud) for p in heard], line.had_noise


def _talking_at_once(line: DynamixelTransport, heard: Container[int]) -> list[int]:
    """The ids, of those that were not heard, whose answer to a ping cannot be made out."""
    found = []
    for id in range(_SLOTS):
        if id not in heard and line.ping(id) is None and line.had_noise:
            found.append(id)
    return found


def _told(data: bytes) -> tuple[str, str]:
    number, firmware = codec.model_and_firmware(data)
    return model_name(number), str(firmware)
