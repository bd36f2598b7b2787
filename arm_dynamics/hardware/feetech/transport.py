"""Requests to several Feetech servos on one serial port.

All writes are sync writes without replies: nothing collides on the one wire, and every write is
confirmed by reading it back. Servos that did not reply last time are read last and waited for
briefly, so that they cost the others little.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.hardware.feetech import packets
from arm_dynamics.hardware.feetech.packets import STATUS_SIZE, Packet, Parser
from arm_dynamics.hardware.register_bus import RETURN_DELAY, RegisterTransport
from arm_dynamics.hardware.register_protocol import Register
from arm_dynamics.hardware.serial_port import Port

GRACE_TIME = 2e-3
"""Time [s] for servos that did not reply last time, once the others have replied."""
FULL_WAIT_CYCLES = 16
"""Every so many requests such servos are waited for as long as the others."""
LENGTHS, MANY_LENGTHS = 4, 16
"""Number of lengths of a request. After a request without all replies, the next ones are longer and
cycle through the lengths: a reply that is late by fewer requests has the wrong length and is
discarded. MANY_LENGTHS is for single registers, whose replies are confirmations."""

TimedPacket = tuple[float, Packet]
"""Arrival [s] of a reply, and the reply."""


class FeetechTransport(RegisterTransport):
    """Requests to the Feetech servos on ``port``; parameters as ``RegisterTransport``.

    Attributes
    ----------
    missing : set of int
        Servos that did not reply to the last request.

    """

    def __init__(self, port: Port, baud: float, latency: float) -> None:
        super().__init__(port, baud, latency, Parser())
        self.missing: set[int] = set()
        self._requests, self._varied = 0, MANY_LENGTHS

    def request(
        self, ids: Collection[int], address: int, size: int, lengths: int = LENGTHS
    ) -> dict[int, TimedPacket]:
        """Request ``size`` bytes from ``address`` on of several servos.

        While replies to earlier requests may arrive, a few more bytes are requested, so that
        successive replies differ in length.

        Returns
        -------
        dict of int to TimedPacket
            Replies and their arrival [s], by id.

        """
        self._requests += 1
        size += 1 + self._requests % (lengths - 1) if self._varied else 0
        varied, self._varied = self._varied, MANY_LENGTHS  # until all have replied
        order = sorted(ids, key=self.missing.__contains__)
        request, reply_size = packets.sync_read(order, address, size), STATUS_SIZE + size
        self._send(request)
        on_wire = (len(request) + len(order) * reply_size) * self.byte_time
        until = self.port.now() + on_wire + len(order) * RETURN_DELAY + self.latency
        replies: dict[int, TimedPacket] = {}
        while waiting := [id for id in order if id not in replies]:
            expected = [id for id in waiting if id not in self.missing]
            if not expected and replies and self._requests % FULL_WAIT_CYCLES:
                grace = GRACE_TIME + len(waiting) * (RETURN_DELAY + reply_size * self.byte_time)
                until = min(until, self.port.now() + grace)
            size_left = len(expected or waiting) * reply_size - self._parser.waiting
            chunk = self.port.read(max(1, size_left), until)
            if not chunk:
                break
            now, received = self.port.now(), self._parser.feed(chunk)
            replies |= {p.id: (now, p) for p in received if p.id in waiting and len(p.data) == size}
        self.missing = (self.missing - set(ids)) | (set(ids) - replies.keys())
        if len(replies) == len(order):
            self._varied = max(0, varied - 1)
        return replies

    def request_all(
        self, id: int, address: int, size: int, latency: float
    ) -> tuple[list[Packet], bool]:
        """Request bytes of one servo; receive until the bus is quiet.

        Returns
        -------
        list of Packet
            All replies of that size, also late ones of other servos.
        bool
            Whether other bytes were received.

        """
        request, self._varied = packets.read(id, address, size), MANY_LENGTHS
        self._send(request)
        wait = (len(request) + 2 * (STATUS_SIZE + size)) * self.byte_time + RETURN_DELAY + latency
        until, received = self.port.now() + wait, []
        while chunk := self.port.read(4096, until):
            received += self._parser.feed(chunk)
        good = [p for p in received if len(p.data) == size]
        return good, len(good) < len(received) or self._parser.had_noise

    def read(self, ids: Collection[int], register: Register) -> dict[int, int]:
        """Return one register of several servos, by id; servos without a reply are omitted."""
        replies = self.request(ids, register.address, 2, MANY_LENGTHS) if ids else {}
        return {id: register.unpack(p.data) for id, (_, p) in replies.items()}

    def holding_ids(self, address: int, data: Mapping[int, bytes]) -> set[int]:
        """Return the servos that reply with these bytes at ``address``."""
        size = max(map(len, data.values()), default=0)
        replies = self.request(data, address, size, MANY_LENGTHS) if data else {}
        return {id for id, (_, p) in replies.items() if p.data.startswith(data[id])}

    def write(self, address: int, data: Mapping[int, bytes]) -> None:
        """Write bytes of one length at ``address`` to each servo; none replies."""
        if data:
            size = len(next(iter(data.values())))
            self.port.write(packets.sync_write(address, size, data))

    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Write a value to each servo; none replies."""
        self.write(register.address, {id: register.pack(value) for id, value in values.items()})
