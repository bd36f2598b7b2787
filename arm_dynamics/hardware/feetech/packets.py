"""Packets of the FT-SCS protocol as bytes: builders and one decoder, pure.

    FF FF  id  length  instruction | error  parameters ...  checksum,
    length = parameters + 2,   checksum = ~(id + length + instruction + Σ parameters) mod 256

Numbers are little-endian in the STS series. Source: Feetech, FT-SCS communication protocol.

Finds answers in whatever comes off a line: noise, halves, several at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HEADER = b"\xff\xff"
BROADCAST = 0xFE
MAX_ID = 0xFD
STATUS_SIZE = 6
"""Bytes of an answer without parameters."""
PING, READ, WRITE, REBOOT, SYNC_READ, SYNC_WRITE = 0x01, 0x02, 0x03, 0x08, 0x82, 0x83


@dataclass(frozen=True, slots=True)
class Packet:
    """What a motor answered: its id, its error bits and the bytes that it was asked for."""

    id: int
    error: int
    data: bytes


def checksum(body: bytes) -> int:
    """Of everything between header and checksum."""
    return ~sum(body) & 0xFF


def packet(id: int, instruction: int, parameters: bytes = b"") -> bytes:
    """An instruction to ``id``; an answer has its error bits where the instruction is."""
    body = bytes((id, len(parameters) + 2, instruction)) + parameters
    return HEADER + body + bytes((checksum(body),))


def ping(id: int) -> bytes:
    """Ask a motor whether it is there."""
    return packet(id, PING)


def read(id: int, address: int, size: int) -> bytes:
    """Ask one motor for ``size`` bytes from ``address`` on."""
    return packet(id, READ, bytes((address, size)))


def write(id: int, address: int, data: bytes) -> bytes:
    """Have one motor take ``data`` from ``address`` on; it answers where it is set to."""
    return packet(id, WRITE, bytes((address,)) + data)


def sync_read(ids: Iterable[int], address: int, size: int) -> bytes:
    """Ask several motors for the same bytes; they answer one after the other, as listed."""
    return packet(BROADCAST, SYNC_READ, bytes((address, size, *ids)))


def sync_write(address: int, size: int, shares: Mapping[int, bytes]) -> bytes:
    """Have several motors take ``size`` bytes each at ``address``; none answers."""
    body = b"".join(bytes((id,)) + share for id, share in shares.items())
    return packet(BROADCAST, SYNC_WRITE, bytes((address, size)) + body)


def decode(raw: bytes) -> Packet | None:
    """The answer that ``raw`` is from its first byte to its last, None where it is none."""
    if len(raw) < STATUS_SIZE or not raw.startswith(HEADER) or raw[2] > MAX_ID:
        return None
    if raw[3] != len(raw) - 4 or checksum(raw[2:-1]) != raw[-1]:
        return None
    return Packet(raw[2], raw[4], raw[5:-1])


class Parser:
    """Bytes in any split in, good packets out; never raises.

    A header that noise made up does not hold up what follows: packets are looked for behind it
    while it waits for the bytes that it claims.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.lost = 0
        """Bytes since ``clear`` that were part of no packet."""

    def clear(self) -> None:
        """Forget what came."""
        self._bytes.clear()
        self.lost = 0

    @property
    def waiting(self) -> int:
        """Bytes that came and may still become a packet."""
        return len(self._bytes)

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that ``data`` completes."""
        self._bytes += data
        found: list[Packet] = []
        while (packet := self._next()) is not None:
            found.append(packet)
        return found

    def _next(self) -> Packet | None:
        """Take the first good packet; drop what cannot become one."""
        keep = -1  # the first header that may still become a packet
        at = self._bytes.find(HEADER)
        while at >= 0:
            end = self._end(at)
            if end > len(self._bytes):
                keep = at if keep < 0 else keep
            elif end and (packet := decode(bytes(self._bytes[at:end]))) is not None:
                self._drop(at)
                del self._bytes[: end - at]
                return packet
            at = self._bytes.find(HEADER, at + 1)
        if keep < 0:
            keep = len(self._bytes) - int(self._bytes.endswith(HEADER[:1]))
        self._drop(keep)
        return None

    def _end(self, at: int) -> int:
        """Where the packet whose header is at ``at`` ends; 0 where there can be none."""
        head = self._bytes[at + 2 : at + 4]
        if head and head[0] > MAX_ID:
            return 0
        if len(head) < 2:
            return len(self._bytes) + 1
        return at + 4 + head[1] if head[1] >= 2 else 0

    def _drop(self, count: int) -> None:
        self.lost += count
        del self._bytes[:count]
