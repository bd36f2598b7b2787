"""Questions and answers on a line of Dynamixel motors, each within a time that the rate sets.

The longest wait is  10 bytes / baud + n · return delay + latency : ten bits a byte sent and
answered, n motors, the time that motors keep before they answer, and what an adapter and the
system may hold bytes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from arm_dynamics.hardware.dynamixel import packets as codec
from arm_dynamics.hardware.dynamixel.control_table import Register
from arm_dynamics.hardware.dynamixel.packets import Parser, StatusData
from arm_dynamics.hardware.serial_port import Port

FACTORY_RETURN_DELAY = 5e-4
"""Return delay of a motor as it is delivered [s]."""
MAX_ATTEMPTS = 3
"""How often a register is asked for or written where nothing hurries."""
ERROR_NUMBER = 0x7F
"""Bits of a status packet's error that say that an instruction failed."""


class DynamixelTransport:
    """Motors on ``port`` at ``baud`` [bit/s]; ``latency`` [s] is the adapter's and system's."""

    def __init__(self, port: Port, baud: float, latency: float) -> None:
        self.port, self.latency = port, latency
        self.byte_time = 10.0 / baud
        self.return_delay = FACTORY_RETURN_DELAY
        self.delays: deque[float] = deque(maxlen=64)
        """How long the last answers took beyond their bytes' time on the wire [s]."""
        self.arrived: dict[int, float] = {}
        """When each motor of the last question answered [s], on the port's clock."""
        self._parser = Parser()
        self._good = 0

    @property
    def had_noise(self) -> bool:
        """Whether the last answer had bytes in it that were no packet."""
        return self._parser.heard > self._good

    def request(
        self,
        request: bytes,
        ids: Collection[int],
        size: int,
        fast: bool = False,
        sure: int | None = None,
    ) -> dict[int, StatusData]:
        """Send ``request``; the ``size`` bytes of every motor that answered in time, by id.

        A share with an error number has no data. Echoes, noise and answers to something else
        are left out. Behind the first ``sure`` motors (all) none is waited for longer than one
        answer takes.
        """
        count, missing = len(ids), set(ids)
        status = codec.STATUS_SIZE + size
        found: dict[int, StatusData] = {}
        self._send(request)
        sent = self.port.now() + len(request) * self.byte_time
        until = sent + self._longest(1 if fast else count, count * status)
        sure = count if sure is None else sure
        while missing:
            expected = max(1, sure - len(found))
            whole = codec.fast_length(count, size) if fast else expected * status
            chunk = self.port.read(max(1, whole - len(self._parser.pending())), until)
            if not chunk:
                break
            for packet in self._parser.feed(chunk):
                self._good += len(packet.raw)
                self._take(codec.status_data(packet, size, count), missing, found, size)
            if len(found) >= sure:
                until = min(until, self.port.now() + self._longest(1, status))
        if fast and missing:
            self._take(
                tuple(codec.split_fast_status(self._parser.pending(), size)), missing, found, size
            )
        if found:
            wire = len(found) * status * self.byte_time
            self.delays.append(max(self.arrived.values()) - sent - wire)
        return found

    def ping(self, id: int) -> tuple[int, int] | None:
        """Model number and firmware of a motor; None where it does not answer."""
        share = self.request(codec.ping(id), (id,), 3).get(id)
        return (
            None if share is None or len(share.data) != 3 else codec.model_and_firmware(share.data)
        )

    def read(self, ids: Collection[int], register: Register) -> dict[int, int]:
        """A register of several motors, by id; those that did not answer are left out."""
        if not ids:
            return {}
        request = codec.sync_or_bulk_read(dict.fromkeys(ids, register.address), register.size)
        got = self.request(request, ids, register.size)
        return {id: register.unpack(s.data) for id, s in got.items() if s.data}

    def write(self, id: int, address: int, data: bytes) -> bool:
        """Have a motor take ``data``; whether it said that it did."""
        share = self.request(codec.write(id, address, data), (id,), 0).get(id)
        return share is not None and not share.error & ERROR_NUMBER

    def read_register(self, id: int, register: Register) -> int | None:
        """A register of one motor, asked for TRIES times; None where it does not answer."""
        for _ in range(MAX_ATTEMPTS):
            if (value := self.read((id,), register).get(id)) is not None:
                return value
        return None

    def write_register(self, id: int, register: Register, value: int) -> bool:
        """Write a register until it reads back as ``value``, TRIES times at most."""
        for _ in range(MAX_ATTEMPTS):
            self.write(id, register.address, register.pack(value))
            if self.read((id,), register).get(id) == value:
                return True
        return False

    def write_registers(
        self, register: Register, values: Mapping[int, int], tries: int = 1
    ) -> set[int]:
        """Write a register of several motors; the ids where it reads back as it should."""
        done: set[int] = set()
        for _ in range(tries):
            rest = {id: value for id, value in values.items() if id not in done}
            self.sync_write(register, rest)
            done |= {id for id, value in self.read(rest, register).items() if value == rest[id]}
            if len(done) == len(values):
                break
        return done

    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Have motors take a value each; none answers."""
        if values:
            data = {id: register.pack(value) for id, value in values.items()}
            self._send(codec.sync_write(register.address, register.size, data))

    def request_all(self, request: bytes, until: float) -> list[codec.Packet]:
        """Send ``request``; every packet that came by ``until`` [s]."""
        self._send(request)
        found: list[codec.Packet] = []
        while chunk := self.port.read(4096, until):
            packets = self._parser.feed(chunk)
            self._good += sum(len(packet.raw) for packet in packets)
            found += packets
        return found

    def wait(self, until: float) -> None:
        """Let time pass; what comes meanwhile is not looked at."""
        while self.port.read(4096, until):
            pass

    def _send(self, request: bytes) -> None:
        self._parser.clear()
        self._good = 0
        self.arrived.clear()
        self.port.flush()
        self.port.write(request)

    def _take(
        self,
        answers: Sequence[StatusData],
        missing: set[int],
        found: dict[int, StatusData],
        size: int,
    ) -> None:
        now = self.port.now()
        for share in answers:
            failed = bool(share.error & ERROR_NUMBER) and not share.data
            if share.id in missing and (failed or len(share.data) == size):
                missing.discard(share.id)
                found[share.id] = share
                self.arrived[share.id] = now

    def _longest(self, motors: int, size: int) -> float:
        return size * self.byte_time + motors * self.return_delay + self.latency
