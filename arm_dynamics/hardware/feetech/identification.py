"""Whether the servos that should be on a line are there, once each: looks, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.feetech.packets import Packet
from arm_dynamics.hardware.feetech.transport import FeetechTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

BAUDS = (1_000_000, 500_000, 115_200, 250_000, 128_000, 76_800, 57_600, 38_400)
"""Rates of the STS series, as delivered first [bit/s]."""
ATTEMPTS = 3
SCAN_LATENCY = 3e-3
"""Of an adapter, while all ids are tried [s]."""
REPLY_TIMEOUT, LATE = 0.03, 8
"""How long an answer is waited for where one was late [s], and by how many questions it may be."""
SILENT, NONE = "does not answer", "no servo answers"
GARBLED = "answers in pieces: two with its id, another baud, or noise"
_SIZE = table.MODEL.address + table.MODEL.size


def identity_faults(line: FeetechTransport, motors: Collection[JointMotor]) -> list[str]:
    """What is wrong with the servos that should be there; empty for nothing."""
    found = {motor: _fault(line, motor) for motor in motors}
    if motors and all(fault == SILENT for fault in found.values()):
        return [NONE]
    return [f"motor {m.id} ({m.joint}) {fault}" for m, fault in found.items() if fault]


def scan_port(
    port: Callable[[int], Port], bauds: Iterable[int] = BAUDS, ids: Iterable[int] = range(254)
) -> list[DiscoveredMotor]:
    """The servos that answer, at every rate of ``bauds`` by id.

    ``port`` makes a port for a rate, as ``partial(SerialPort, "/dev/ttyACM0")``. Two that
    answer under one id are listed as often as they are heard, or as ``model`` "garbled". Raises
    DriverFault where the port cannot be opened.
    """
    tried = tuple(ids)
    return [found for baud in bauds for found in _at(port(baud), baud, tried)]


def _at(port: Port, baud: int, ids: tuple[int, ...]) -> list[DiscoveredMotor]:
    """Who answers at one rate; where an answer may have been late, ids are asked again."""
    port.open()
    try:
        line = FeetechTransport(port, baud, SCAN_LATENCY)
        heard: dict[int, list[DiscoveredMotor]] = {}
        late: set[int] = set()
        for place, id in enumerate(ids):
            packets, disturbed = line.request_all(id, 0, _SIZE, SCAN_LATENCY)
            heard[id] = _told(packets, id, baud)
            late |= {packet.id for packet in packets} - {id}
            if disturbed and not heard[id]:
                late |= set(ids[max(0, place - LATE) : place + 1])
        for id in sorted(late & {id for id in ids if not heard[id]}):
            heard[id] = _again(line, id, baud)
        return [found for id in ids for found in heard[id]]
    finally:
        port.close()


def _again(line: FeetechTransport, id: int, baud: int) -> list[DiscoveredMotor]:
    """One byte more is asked for: it tells the answer from a late one to the first question."""
    packets, disturbed = line.request_all(id, 0, _SIZE + 1, REPLY_TIMEOUT)
    told = _told(packets, id, baud)
    return told or ([DiscoveredMotor(id, "garbled", "", baud)] if disturbed else [])


def _told(packets: Iterable[Packet], id: int, baud: int) -> list[DiscoveredMotor]:
    return [_found(id, packet.data, baud) for packet in packets if packet.id == id]


def _found(id: int, data: bytes, baud: int) -> DiscoveredMotor:
    return DiscoveredMotor(
        id, table.model_name(table.MODEL.unpack(data)), f"{data[0]}.{data[1]}", baud
    )


def _fault(line: FeetechTransport, motor: JointMotor) -> str:
    garbled, number = False, table.model_number(motor.motor)
    for more in range(ATTEMPTS):  # so that no late answer counts twice
        packets, disturbed = line.request_all(motor.id, 0, _SIZE + more, line.latency)
        answers = [packet for packet in packets if packet.id == motor.id]
        if len(answers) > 1:
            return f"answers {len(answers)} times: its id is there more than once"
        if answers:
            said = table.MODEL.unpack(answers[0].data)
            return "" if said == number else f"is {table.model_name(said)}, not {motor.motor}"
        garbled = garbled or disturbed
    return GARBLED if garbled else SILENT
