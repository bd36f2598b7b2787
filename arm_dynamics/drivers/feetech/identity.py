"""Whether the servos that should be on a line are there, once each: looks, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from arm_dynamics.drivers.feetech import registers as table
from arm_dynamics.drivers.feetech.line import Line
from arm_dynamics.drivers.motor_bus import Found
from arm_dynamics.drivers.port import Port
from arm_dynamics.model.wiring import MotorWiring

BAUDS = (1_000_000, 500_000, 115_200, 250_000, 128_000, 76_800, 57_600, 38_400)
"""Rates of the STS series, as delivered first [bit/s]."""
ATTEMPTS = 3
SCAN_LATENCY = 3e-3
"""Of an adapter, while all ids are tried [s]."""
SILENT = "does not answer"
GARBLED = "answers in pieces: two with its id, another baud, or noise"
_SIZE = table.MODEL.address + table.MODEL.size


def faults(line: Line, motors: Collection[MotorWiring]) -> list[str]:
    """What is wrong with the servos that should be there; empty for nothing."""
    found = {motor: _fault(line, motor) for motor in motors}
    if motors and all(fault == SILENT for fault in found.values()):
        return ["no servo answers: power, cable or baud"]
    return [f"motor {m.id} ({m.joint}) {fault}" for m, fault in found.items() if fault]


def scan(
    port: Callable[[int], Port], bauds: Iterable[int] = BAUDS, ids: Iterable[int] = range(254)
) -> list[Found]:
    """The servos that answer, at every rate of ``bauds`` by id.

    ``port`` makes a port for a rate, as ``partial(SerialPort, "/dev/ttyACM0")``. Two that
    answer under one id are listed as often as they are heard, or as ``model`` "garbled". Raises
    DriverFault where the port cannot be opened.
    """
    tried = tuple(ids)
    return [found for baud in bauds for found in _at(port(baud), baud, tried)]


def _at(port: Port, baud: int, ids: tuple[int, ...]) -> list[Found]:
    port.open()
    try:
        line, found = Line(port, baud, SCAN_LATENCY), []
        for id in ids:
            answers, disturbed = line.listen(id, 0, _SIZE, SCAN_LATENCY)
            found += [_found(id, packet.data, baud) for packet in answers]
            found += [Found(id, "garbled", "", baud)] if disturbed and not answers else []
        return found
    finally:
        port.close()


def _found(id: int, data: bytes, baud: int) -> Found:
    return Found(id, table.name_of(table.MODEL.unpack(data)), f"{data[0]}.{data[1]}", baud)


def _fault(line: Line, motor: MotorWiring) -> str:
    garbled, number = False, table.number_of(motor.motor)
    for _ in range(ATTEMPTS):
        answers, disturbed = line.listen(motor.id, 0, _SIZE, line.latency)
        if len(answers) > 1:
            return f"answers {len(answers)} times: its id is there more than once"
        if answers:
            said = table.MODEL.unpack(answers[0].data)
            return "" if said == number else f"is {table.name_of(said)}, not {motor.motor}"
        garbled = garbled or disturbed
    return GARBLED if garbled else SILENT
