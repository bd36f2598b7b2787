"""Packets of Dynamixel protocol 2.0: CRC, encoding, decoding and a parser; no port.

    FF FF FD 00 | id | length (2) | instruction | parameters | CRC (2)

``length`` counts from the instruction on. Within instruction and parameters FF FF FD is sent as
FF FF FD FD, so that no header can occur there; only status packets of fast reads are not stuffed.

References
----------
ROBOTIS e-manual, "DYNAMIXEL Protocol 2.0", "CRC Calculation".

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from arm_dynamics.hardware.register_protocol import BROADCAST, Instructions, PacketParser

POLYNOMIAL = 0x8005


def _remainder(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = (value << 1) ^ (POLYNOMIAL if value & 0x8000 else 0)
    return value & 0xFFFF


_TABLE = tuple(_remainder(byte) for byte in range(256))


def crc16(data: bytes, start: int = 0) -> int:
    """Return the CRC-16 of ``data``, continued from the CRC ``start`` of the bytes before it.

    x¹⁶ + x¹⁵ + x² + 1, initial value 0, highest bit first.
    """
    crc = start
    for byte in data:
        crc = ((crc << 8) & 0xFF00) ^ _TABLE[(crc >> 8) ^ byte]
    return crc


HEADER = b"\xff\xff\xfd\x00"
STATUS, FAST_SYNC_READ, BULK_READ, FAST_BULK_READ = 0x55, 0x8A, 0x92, 0x9A
ALERT = 0x80
"""Bit of a status packet's error: the motor's hardware error status is not 0."""

_MARK, _STUFFED = b"\xff\xff\xfd", b"\xff\xff\xfd\xfd"
STATUS_SIZE = 11
"""Bytes of a status packet without parameters."""
FAST_SIZE = 8
"""Bytes of a fast status packet before the first motor's part."""
STATUS_DATA_SIZE = 4
"""Bytes of a motor's part of a fast status packet in addition to its data: error, id, CRC."""


class Packet(NamedTuple):
    """One packet: ``error`` is 0 except in a status packet; ``raw`` are its bytes on the wire."""

    id: int
    instruction: int
    error: int
    data: bytes
    raw: bytes


class StatusData(NamedTuple):
    """Reply of one motor."""

    id: int
    error: int
    data: bytes


def stuff(body: bytes) -> bytes:
    """Return ``body`` with FD after every FF FF FD."""
    return body.replace(_MARK, _STUFFED)


def unstuff(body: bytes) -> bytes:
    """Return the original of a ``stuff``-ed body."""
    return body.replace(_STUFFED, _MARK)


def encode(id: int, instruction: int, parameters: bytes = b"") -> bytes:
    """Return one packet."""
    body = stuff(bytes((instruction,)) + parameters)
    head = HEADER + bytes((id,)) + (len(body) + 2).to_bytes(2, "little") + body
    return head + crc16(head).to_bytes(2, "little")


_INSTRUCTIONS = Instructions(encode, word_size=2)
ping, read, write, reboot, sync_read, sync_write = (
    _INSTRUCTIONS.ping, _INSTRUCTIONS.read, _INSTRUCTIONS.write, _INSTRUCTIONS.reboot,
    _INSTRUCTIONS.sync_read, _INSTRUCTIONS.sync_write,
)  # fmt: skip


def sync_or_bulk_read(addresses: Mapping[int, int], size: int, fast: bool = False) -> bytes:
    """Request ``size`` bytes of motors, by id and address; they reply in this order."""
    word = _INSTRUCTIONS.word
    if len(set(addresses.values())) > 1:
        blocks = (bytes((id,)) + word(at) + word(size) for id, at in addresses.items())
        return encode(BROADCAST, FAST_BULK_READ if fast else BULK_READ, b"".join(blocks))
    at = next(iter(addresses.values()))
    if fast:
        return encode(BROADCAST, FAST_SYNC_READ, word(at) + word(size) + bytes(addresses))
    return sync_read(addresses, at, size)


def decode(raw: bytes) -> Packet | None:
    """Return the packet in ``raw``, from header to CRC; None if the CRC does not match."""
    if crc16(raw[:-2]) != int.from_bytes(raw[-2:], "little"):
        return None
    id, body = raw[4], raw[7:-2]
    if id == BROADCAST and body[0] == STATUS:
        return Packet(id, STATUS, body[1] if len(body) > 1 else 0, body[2:], raw)
    body = unstuff(body)
    if body[0] == STATUS and len(body) > 1:
        return Packet(id, STATUS, body[1], body[2:], raw)
    return Packet(id, body[0], 0, body[1:], raw)


def split_fast_status(raw: bytes, size: int) -> Iterator[StatusData]:
    """Return the motors' parts of a fast status packet, also of a truncated one.

    Each part ends with the CRC of all bytes before it, so that the parts before a missing motor or
    a disturbance are valid.
    """
    crc, begin = crc16(raw[:FAST_SIZE]), FAST_SIZE
    while len(raw) >= (end := begin + STATUS_DATA_SIZE + size):
        crc = crc16(raw[begin : end - 2], crc)
        if crc != int.from_bytes(raw[end - 2 : end], "little"):
            return
        yield StatusData(raw[begin + 1], raw[begin], raw[begin + 2 : end - 2])
        crc, begin = crc16(raw[end - 2 : end], crc), end


def fast_length(count: int, size: int) -> int:
    """Return the length of the fast status packet of ``count`` motors [bytes]."""
    return FAST_SIZE + count * (STATUS_DATA_SIZE + size)


def status_data(packet: Packet, size: int, count: int) -> Sequence[StatusData]:
    """Return the replies in ``packet``; none if it does not reply to a read of ``size``."""
    if packet.instruction != STATUS:
        return ()
    if packet.id != BROADCAST:
        return (StatusData(packet.id, packet.error, packet.data),)
    end = fast_length(count, size)
    if len(packet.raw) != end:
        return ()
    raw, step = packet.raw, STATUS_DATA_SIZE + size
    starts = range(FAST_SIZE, end, step)
    return [StatusData(raw[k + 1], raw[k], raw[k + 2 : k + 2 + size]) for k in starts]


def model_and_firmware(data: bytes) -> tuple[int, int]:
    """Return model number and firmware from the reply to a ping."""
    return int.from_bytes(data[:2], "little"), data[2]


MAX_LENGTH = 6144
"""Largest valid length [bytes]: a fast read of all motors that fit on a bus."""
_PREFIX = 7  # header, id and length
_IDS = frozenset((*range(0xFD), BROADCAST))


class Parser(PacketParser[Packet]):
    """Find the packets of protocol 2.0 in received bytes."""

    header = HEADER
    decode = staticmethod(decode)

    def pending(self) -> bytes:
        """Return the bytes from the first header on that are no complete packet yet."""
        return bytes(self._bytes) if self._bytes.startswith(HEADER) else b""

    def end(self, at: int) -> int:
        """Return the end of the packet at ``at``; its id and length must be valid."""
        if len(self._bytes) < at + _PREFIX:
            return len(self._bytes) + 1
        length = int.from_bytes(self._bytes[at + 5 : at + _PREFIX], "little")
        good = self._bytes[at + 4] in _IDS and 3 <= length <= MAX_LENGTH
        return at + _PREFIX + length if good else 0
