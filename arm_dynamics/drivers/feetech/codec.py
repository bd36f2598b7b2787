"""Packets of the FT-SCS protocol as bytes: builders and one decoder, pure.

    FF FF  id  length  instruction | error  parameters ...  checksum,
    length = parameters + 2,   checksum = ~(id + length + instruction + Σ parameters) mod 256

Numbers are little-endian in the STS series. Source: Feetech, FT-SCS communication protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HEADER = b"\xff\xff"
BROADCAST = 0xFE
LARGEST_ID = 0xFD
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
    if len(raw) < STATUS_SIZE or not raw.startswith(HEADER) or raw[2] > LARGEST_ID:
        return None
    if raw[3] != len(raw) - 4 or checksum(raw[2:-1]) != raw[-1]:
        return None
    return Packet(raw[2], raw[4], raw[5:-1])
