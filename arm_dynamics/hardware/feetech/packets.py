"""Packets of the FT-SCS protocol: encoding, decoding and a parser; no port.

    FF FF  id  length  instruction | error  parameters ...  checksum,
    length = parameters + 2,   checksum = ~(id + length + instruction + Σ parameters) mod 256

Numbers are little-endian in the STS series.

References
----------
Feetech, FT-SCS communication protocol.

"""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.hardware.register_protocol import Instructions, PacketParser

HEADER = b"\xff\xff"
MAX_ID = 0xFD
STATUS_SIZE = 6
"""Bytes of a reply without parameters."""


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


_INSTRUCTIONS = Instructions(packet, word_size=1)
ping, read, write, reboot, sync_read, sync_write = (
    _INSTRUCTIONS.ping, _INSTRUCTIONS.read, _INSTRUCTIONS.write, _INSTRUCTIONS.reboot,
    _INSTRUCTIONS.sync_read, _INSTRUCTIONS.sync_write,
)  # fmt: skip


def decode(raw: bytes) -> Packet | None:
    """Return the reply in ``raw``, from its first byte to its last; None if it is not valid."""
    if len(raw) < STATUS_SIZE or not raw.startswith(HEADER) or raw[2] > MAX_ID:
        return None
    if raw[3] != len(raw) - 4 or checksum(raw[2:-1]) != raw[-1]:
        return None
    return Packet(raw[2], raw[4], raw[5:-1])


class Parser(PacketParser[Packet]):
    """Find the replies of FT-SCS servos in received bytes."""

    header = HEADER
    decode = staticmethod(decode)

    def end(self, at: int) -> int:
        """Return the end of the packet at ``at``; its id and length must be valid."""
        head = self._bytes[at + 2 : at + 4]
        if head and head[0] > MAX_ID:
            return 0
        if len(head) < 2:
            return len(self._bytes) + 1
        return at + 4 + head[1] if head[1] >= 2 else 0
