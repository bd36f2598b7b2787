"""Which Dynamixel motors are on a line, and at which rates: looks, never changes anything."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from arm_dynamics.drivers.dynamixel import codec
from arm_dynamics.drivers.dynamixel.identification import one_voice
from arm_dynamics.drivers.dynamixel.line import Line
from arm_dynamics.drivers.dynamixel.models import name_of
from arm_dynamics.drivers.motor_bus import GARBLED, Found
from arm_dynamics.drivers.port import Port

BAUDS = (57_600, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 115_200, 9_600)
"""Rates of the Dynamixel X series, those met most often first [bit/s]."""
PING_SLOT = 3e-3
"""Time that every id may take to answer a ping of all [s] (dynamixel-sdk waits as long)."""
LATENCY = 0.02
"""Longest that an adapter is believed to hold back the answer of a single motor [s]."""
_SLOTS = 253


def scan(port: Callable[[int], Port], bauds: Iterable[int] = BAUDS) -> list[Found]:
    """The motors that answer, at every rate of ``bauds`` by id.

    ``port`` makes a port for a rate, as ``partial(SerialPort, "/dev/ttyUSB0")``. Two motors with
    one id are listed twice, or once more as GARBLED; so is a noise that no id can be given to,
    with id -1. Raises DriverFault where the port can not be opened.
    """
    return [found for baud in bauds for found in _at(port(baud), baud)]


def _at(port: Port, baud: int) -> list[Found]:
    port.open()
    try:
        line = Line(port, baud, LATENCY)
        found, disturbed = _everyone(line, baud)
        heard = [motor.id for motor in found]
        doubled = [id for id in sorted(set(heard)) if not one_voice(line, id)]
        if disturbed:
            doubled += _talking_at_once(line, set(heard)) or ([] if doubled else [-1])
        return [*found, *(Found(id, GARBLED, "", baud) for id in doubled)]
    finally:
        port.close()


def _everyone(line: Line, baud: int) -> tuple[list[Found], bool]:
    """Who answers a ping of all, and whether other bytes came too."""
    reply = codec.STATUS_SIZE + 3
    wait = _SLOTS * (PING_SLOT + reply * line.byte_time)
    packets = line.listen(codec.ping(codec.BROADCAST), line.port.now() + wait)
    heard = [p for p in packets if p.instruction == codec.STATUS and len(p.data) == 3]
    return [Found(p.id, *_told(p.data), baud) for p in heard], line.disturbed


def _talking_at_once(line: Line, heard: Container[int]) -> list[int]:
    """The ids, of those that were not heard, whose answer to a ping cannot be made out."""
    found = []
    for id in range(_SLOTS):
        if id not in heard and line.ping(id) is None and line.disturbed:
            found.append(id)
    return found


def _told(data: bytes) -> tuple[str, str]:
    number, firmware = codec.model_and_firmware(data)
    return name_of(number), str(firmware)
