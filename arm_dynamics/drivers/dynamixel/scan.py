"""Which Dynamixel motors are on a line, and at which rates: looks, never changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from arm_dynamics.drivers.dynamixel import codec
from arm_dynamics.drivers.dynamixel.line import Line
from arm_dynamics.drivers.dynamixel.models import name_of
from arm_dynamics.drivers.motor_bus import Found
from arm_dynamics.drivers.port import Port

BAUDS = (57_600, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 115_200, 9_600)
"""Rates of the Dynamixel X series, those met most often first [bit/s]."""
PING_SLOT = 3e-3
"""Time that every id may take to answer a ping of all [s] (dynamixel-sdk waits as long)."""
_SLOTS = 253


def scan(port: Callable[[int], Port], bauds: Iterable[int] = BAUDS) -> list[Found]:
    """The motors that answer, at every rate of ``bauds`` by id.

    ``port`` makes a port for a rate, as ``partial(SerialPort, "/dev/ttyUSB0")``. Two motors with
    one id that answer differently are listed twice, or show as ``model`` "garbled" with id −1.
    Raises DriverFault where the port can not be opened.
    """
    return [found for baud in bauds for found in _at(port(baud), baud)]


def _at(port: Port, baud: int) -> list[Found]:
    port.open()
    try:
        line = Line(port, baud, latency=0.0)
        reply = codec.STATUS_SIZE + 3
        wait = _SLOTS * (PING_SLOT + reply * line.byte_time)
        packets = line.listen(codec.ping(codec.BROADCAST), port.now() + wait)
        heard = [p for p in packets if p.instruction == codec.STATUS and len(p.data) == 3]
        found = [Found(p.id, *_told(p.data), baud) for p in heard]
        return [*found, *([Found(-1, "garbled", "", baud)] if line.disturbed else [])]
    finally:
        port.close()


def _told(data: bytes) -> tuple[str, str]:
    number, firmware = codec.model_and_firmware(data)
    return name_of(number), str(firmware)
