"""Discovery of Feetech servos: each must reply once, with the configured model; reads only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from arm_dynamics.hardware.feetech import registers as table
from arm_dynamics.hardware.feetech.packets import Packet
from arm_dynamics.hardware.feetech.transport import FeetechTransport
from arm_dynamics.hardware.motor_bus import CORRUPT, DiscoveredMotor
from arm_dynamics.hardware.register_bus import MAX_ATTEMPTS, scan_rates
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

BAUDS = (1_000_000, 500_000, 115_200, 250_000, 128_000, 76_800, 57_600, 38_400)
"""Rates [bit/s] of the STS series, that of delivery first."""
SCAN_LATENCY = 3e-3
"""Latency [s] of an adapter during a scan."""
REPLY_TIMEOUT, MAX_LATE_REQUESTS = 0.03, 8
"""Longest delay of a late reply [s], and in requests."""
NO_REPLY, NO_SERVO = "does not reply", "no servo replies"
CORRUPT_REPLY = "replies are corrupt: two servos with its id, another baud, or noise"
_SIZE = table.MODEL.address + table.MODEL.size


def identity_faults(transport: FeetechTransport, motors: Collection[JointMotor]) -> list[str]:
    """Return the problems of the configured servos; empty for none."""
    faults = {motor: _identity_fault(transport, motor) for motor in motors}
    if motors and all(fault == NO_REPLY for fault in faults.values()):
        return [NO_SERVO]
    return [f"motor {m.id} ({m.joint}) {fault}" for m, fault in faults.items() if fault]


def _identity_fault(transport: FeetechTransport, motor: JointMotor) -> str:
    corrupt, number = False, table.model_number(motor.motor)
    for extra in range(MAX_ATTEMPTS):  # another size each time: no late reply counts twice
        packets, noise = transport.request_all(motor.id, 0, _SIZE + extra, transport.latency)
        replies = [packet for packet in packets if packet.id == motor.id]
        if len(replies) > 1:
            return f"replies {len(replies)} times: its id is not unique"
        if replies:
            reported = table.MODEL.unpack(replies[0].data, 0)
            name = table.model_name(reported)
            return "" if reported == number else f"model = {name}, expected {motor.motor}"
        corrupt = corrupt or noise
    return CORRUPT_REPLY if corrupt else NO_REPLY


def scan_port(
    port: Callable[[int], Port], bauds: Iterable[int] = BAUDS, ids: Iterable[int] = range(254)
) -> list[DiscoveredMotor]:
    """Return the servos that reply, at every rate of ``bauds`` by id.

    Parameters
    ----------
    port : callable
        Creates a port for a rate, for example ``partial(SerialPort, "/dev/ttyACM0")``.
    bauds : Iterable[int]
        Rates [bit/s].
    ids : Iterable[int]
        Ids to try.

    Returns
    -------
    list of DiscoveredMotor
        Two servos with one id occur as often as they are received, or with the model CORRUPT.

    Raises
    ------
    DriverFault
        The port cannot be opened.

    """
    return scan_rates(port, bauds, partial(_scan_at, ids=tuple(ids)))


def _scan_at(port: Port, baud: int, ids: tuple[int, ...]) -> list[DiscoveredMotor]:
    """Scan at one rate; ids whose reply may have been late are requested again."""
    transport = FeetechTransport(port, baud, SCAN_LATENCY)
    motors: dict[int, list[DiscoveredMotor]] = {}
    late_ids: set[int] = set()
    for index, id in enumerate(ids):
        packets, noise = transport.request_all(id, 0, _SIZE, SCAN_LATENCY)
        motors[id] = _discovered(packets, id, baud)
        late_ids |= {packet.id for packet in packets} - {id}
        if noise and not motors[id]:
            late_ids |= set(ids[max(0, index - MAX_LATE_REQUESTS) : index + 1])
    for id in sorted(late_ids & {id for id in ids if not motors[id]}):
        for extra in range(1, MAX_ATTEMPTS + 1):  # another size: that of no late reply
            packets, noise = transport.request_all(id, 0, _SIZE + extra, REPLY_TIMEOUT)
            corrupt = [DiscoveredMotor(id, CORRUPT, "", baud)] if noise else []
            motors[id] = _discovered(packets, id, baud) or corrupt
            if motors[id]:
                break
    return [motor for id in ids for motor in motors[id]]


def _discovered(packets: Iterable[Packet], id: int, baud: int) -> list[DiscoveredMotor]:
    return [
        DiscoveredMotor(
            id, table.model_name(table.MODEL.unpack(p.data, 0)), f"{p.data[0]}.{p.data[1]}", baud
        )
        for p in packets
        if p.id == id
    ]
