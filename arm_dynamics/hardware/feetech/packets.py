"""Packets of the FT-SCS protocol: encoding, decoding and a parser; no port.

    FF FF  id  length  instruction | error  parameters ...  checksum,
    length = parameters + 2,   checksum = ~(id + length + instruction + Σ parameters) mod 256

Numbers are little-endian in the STS series.

References
----------
Feetech, FT-SCS communication protocol.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HEADER = b"\xff\xff"
BROADCAST = 0xFE
MAX_ID = 0xFD
STATUS_SIZE = 6
"""Bytes of a reply without parameters."""
PING, READ, WRITE, REBOOT, SYNC_READ, SYNC_WRITE = 0x01, 0x02, 0x03, 0x08, 0x82, 0x83


@dataclass(frozen=True, slots=True)
class Packet:
    """Reply of a servo: id, error bits and requested bytes."""

    id: int
    error: int
    data: bytes


def checksum(body: bytes) -> int:
    """Return the checksum of the bytes between header and checksum."""
    return ~sum(body) & 0xFF


def packet(id: int, instruction: int, parameters: bytes = b"") -> bytes:
    """Return an instruction to ``id``; a reply has its error bits in place of the instruction."""
    body = bytes((id, len(parameters) + 2, instruction)) + parameters
    return HEADER + body + bytes((checksum(body),))


def ping(id: int) -> bytes:
    """Request a reply without data."""
    return packet(id, PING)


def read(id: int, address: int, size: int) -> bytes:
    """Request ``size`` bytes from ``address`` on of one servo."""
    return packet(id, READ, bytes((address, size)))


def write(id: int, address: int, data: bytes) -> bytes:
    """Write ``data`` from ``address`` on to one servo; it replies if configured so."""
    return packet(id, WRITE, bytes((address,)) + data)


def sync_read(ids: Iterable[int], address: int, size: int) -> bytes:
    """Request the same bytes of several servos; they reply one after another, in this order."""
    return packet(BROADCAST, SYNC_READ, bytes((address, size, *ids)))


def sync_write(address: int, size: int, data: Mapping[int, bytes]) -> bytes:
    """Write ``size`` bytes at ``address`` to each servo; none replies."""
    body = b"".join(bytes((id,)) + values for id, values in data.items())
    return packet(BROADCAST, SYNC_WRITE, bytes((address, size)) + body)


def decode(raw: bytes) -> Packet | None:
    """Return the reply in ``raw``, from its first byte to its last; None if it is not valid."""
    if len(raw) < STATUS_SIZE or not raw.startswith(HEADER) or raw[2] > MAX_ID:
        return None
    if raw[3] != len(raw) - 4 or checksum(raw[2:-1]) != raw[-1]:
        return None
    return Packet(raw[2], raw[4], raw[5:-1])


class Parser:
    """Find valid packets in received bytes, in any split; never raises.

    Noise that looks like a header does not delay later packets: the search continues behind it
    while the bytes that it announces are missing.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.lost = 0
        """Bytes since ``clear`` that were part of no packet."""

    def clear(self) -> None:
        """Discard received bytes."""
        self._bytes.clear()
        self.lost = 0

    @property
    def waiting(self) -> int:
        """Number of received bytes that may still become a packet."""
        return len(self._bytes)

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that ``data`` completes."""
        self._bytes += data
        complete: list[Packet] = []
        while (packet := self._next()) is not None:
            complete.append(packet)
        return complete

    def _next(self) -> Packet | None:
        """Remove the first valid packet; drop bytes that cannot become one."""
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
        """Return the end of the packet whose header is at ``at``; 0 if it is not valid."""
        head = self._bytes[at + 2 : at + 4]
        if head and head[0] > MAX_ID:
            return 0
        if len(head) < 2:
            return len(self._bytes) + 1
        return at + 4 + head[1] if head[1] >= 2 else 0

    def _drop(self, count: int) -> None:
        self.lost += count
        del self._bytes[:count]
