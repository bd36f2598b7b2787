"""Whether the servos that should be on a line are there, once each: looks, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from arm_dynamics.drivers.feetech import registers as table
from arm_dynamics.drivers.feetech.line import Line
from arm_dynamics.drivers.motor_bus import Found
from arm_dynamics.drivers.port import Port

BAUDS = (1_000_000, 500_000, 115_200, 250_000, 128_000, 76_800, 57_600, 38_400)
"""Rates of the STS series, as delivered first [bit/s]."""
ATTEMPTS = 3
SCAN_LATENCY = 3e-3
"""Of an adapter, while all ids are tried [s]."""
_SIZE = table.MODEL.address + table.MODEL.size


def faults(line: Line, numbers: Mapping[int, int]) -> list[str]:
    """What is wrong with the servos that should say ``numbers`` by id; empty for nothing."""
    found = [_fault(line, id, number) for id, number in numbers.items()]
    said = [fault for fault in found if fault]
    if len(said) == len(numbers) and all(fault.endswith(_SILENT) for fault in said):
        return ["no servo answers: power, cable or baud"]
    return said


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


_SILENT = "does not answer"


def _fault(line: Line, id: int, number: int) -> str:
    garbled = False
    for _ in range(ATTEMPTS):
        answers, disturbed = line.listen(id, 0, _SIZE, line.latency)
        if len(answers) > 1:
            return f"motor {id} answers {len(answers)} times: the id is there more than once"
        if answers:
            said = table.MODEL.unpack(answers[0].data)
            expected = f"motor {id} is {table.name_of(said)}, {table.name_of(number)} is expected"
            return "" if said == number else expected
        garbled = garbled or disturbed
    if garbled:
        return f"motor {id} answers in pieces: two with that id, another baud, or noise"
    return f"motor {id} {_SILENT}"
