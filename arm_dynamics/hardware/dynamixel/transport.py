"""Requests to Dynamixel motors and their replies, of one motor or of several in one packet.

The longest wait is  10 n_bytes / baud + n_motors · return delay + latency.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.hardware.dynamixel import packets
from arm_dynamics.hardware.dynamixel.packets import Packet, Parser, StatusData
from arm_dynamics.hardware.register_bus import MAX_ATTEMPTS, RETURN_DELAY, RegisterTransport
from arm_dynamics.hardware.register_protocol import Register
from arm_dynamics.hardware.serial_port import Port

ERROR_NUMBER = 0x7F
"""Bits of a status packet's error that mark a failed instruction."""


class DynamixelTransport(RegisterTransport):
    """Requests to the Dynamixel motors on ``port``; parameters as ``RegisterTransport``.

    Attributes
    ----------
    return_delay : float
        Longest return delay of the motors [s].
    delays : deque of float
        Duration [s] of the last replies beyond the time of their bytes on the wire.
    arrived : dict of int to float
        Arrival [s] of each motor's reply to the last request, on the port's clock.

    """

    def __init__(self, port: Port, baud: float, latency: float) -> None:
        self._parser: Parser
        super().__init__(port, baud, latency, Parser())
        self.return_delay = RETURN_DELAY
        self.delays: deque[float] = deque(maxlen=64)
        self.arrived: dict[int, float] = {}

    @property
    def had_noise(self) -> bool:
        """Whether bytes that are no packet came with the last reply."""
        return self._parser.had_noise

    def request(
        self,
        request: bytes,
        ids: Collection[int],
        size: int,
        fast: bool = False,
        expected: int | None = None,
    ) -> dict[int, StatusData]:
        """Send ``request`` and return the status data of every motor that replies in time.

        Parameters
        ----------
        request : bytes
            Packet to send.
        ids : Collection[int]
            Motors, in the order of their replies.
        size : int
            Data bytes of each reply. Echoes, noise and replies of another size are discarded.
        fast : bool
            Whether all motors reply in one packet.
        expected : int, optional
            Number of leading motors that are expected to reply, by default all. The others are
            waited for no longer than one reply takes.

        Returns
        -------
        dict of int to StatusData
            By motor id. Data of a failed instruction is empty.

        """
        count, missing = len(ids), set(ids)
        status = packets.STATUS_SIZE + size
        replies: dict[int, StatusData] = {}
        self._send(request)
        sent = self.port.now() + len(request) * self.byte_time
        until = sent + self._longest(1 if fast else count, count * status)
        expected = count if expected is None else expected
        while missing:
            outstanding = max(1, expected - len(replies))
            whole = packets.fast_length(count, size) if fast else outstanding * status
            chunk = self.port.read(max(1, whole - len(self._parser.pending())), until)
            if not chunk:
                break
            for packet in self._parser.feed(chunk):
                self._take(packets.status_data(packet, size, count), missing, replies, size)
            if len(replies) >= expected:
                until = min(until, self.port.now() + self._longest(1, status))
        if fast and missing:
            pending = tuple(packets.split_fast_status(self._parser.pending(), size))
            self._take(pending, missing, replies, size)
        if replies:
            wire = len(replies) * status * self.byte_time
            self.delays.append(max(self.arrived.values()) - sent - wire)
        return replies

    def ping(self, id: int) -> tuple[int, int] | None:
        """Return model number and firmware of a motor; None without a reply."""
        reply = self.request(packets.ping(id), (id,), 3).get(id)
        if reply is None or len(reply.data) != 3:
            return None
        return packets.model_and_firmware(reply.data)

    def read(self, ids: Collection[int], register: Register) -> dict[int, int]:
        """Return a register of several motors, by id; motors without a reply are omitted."""
        if not ids:
            return {}
        request = packets.sync_or_bulk_read(dict.fromkeys(ids, register.address), register.size)
        replies = self.request(request, ids, register.size)
        return {id: register.unpack(s.data) for id, s in replies.items() if s.data}

    def write(self, id: int, address: int, data: bytes) -> bool:
        """Write ``data`` to a motor; return whether it confirmed."""
        reply = self.request(packets.write(id, address, data), (id,), 0).get(id)
        return reply is not None and not reply.error & ERROR_NUMBER

    def read_register(self, id: int, register: Register) -> int | None:
        """Return a register of one motor, after MAX_ATTEMPTS at most; None without a reply."""
        return self.read_registers(register, (id,)).get(id)

    def write_register(self, id: int, register: Register, value: int) -> bool:
        """Write a register until it reads back as ``value``, MAX_ATTEMPTS at most."""
        for _ in range(MAX_ATTEMPTS):
            self.write(id, register.address, register.pack(value))
            if self.read((id,), register).get(id) == value:
                return True
        return False

    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Write a value to each motor; none replies."""
        if values:
            data = {id: register.pack(value) for id, value in values.items()}
            self._send(packets.sync_write(register.address, register.size, data))

    def request_all(self, request: bytes, until: float) -> list[Packet]:
        """Send ``request`` and return every packet received by ``until`` [s]."""
        self._send(request)
        received: list[Packet] = []
        while chunk := self.port.read(4096, until):
            received += self._parser.feed(chunk)
        return received

    def wait(self, until: float) -> None:
        """Wait until ``until`` [s] and discard what is received."""
        while self.port.read(4096, until):
            pass

    def _send(self, request: bytes) -> None:
        self.arrived.clear()
        super()._send(request)

    def _take(
        self, data: Sequence[StatusData], missing: set[int], replies: dict[int, StatusData],
        size: int,
    ) -> None:  # fmt: skip
        now = self.port.now()
        for status in data:
            failed = bool(status.error & ERROR_NUMBER) and not status.data
            if status.id in missing and (failed or len(status.data) == size):
                missing.discard(status.id)
                replies[status.id] = status
                self.arrived[status.id] = now

    def _longest(self, motors: int, size: int) -> float:
        return size * self.byte_time + motors * self.return_delay + self.latency
