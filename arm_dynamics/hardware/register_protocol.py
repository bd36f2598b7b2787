"""Register protocol of serial servos: instruction packets, registers, packets in received bytes.

The protocols of Dynamixel and Feetech descend from one of ROBOTIS and have the same structure:

    header | id | length | instruction | parameters | checksum

They differ in header, checksum and the size of an address. No port is used here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

BROADCAST = 0xFE
"""Id of all motors."""
PING, READ, WRITE, REBOOT, SYNC_READ, SYNC_WRITE = 0x01, 0x02, 0x03, 0x08, 0x82, 0x83

PacketT = TypeVar("PacketT")


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instruction packets of one protocol.

    Attributes
    ----------
    encode : callable
        Returns the packet of an id, an instruction and its parameters.
    word_size : int
        Size of an address and of a number of bytes [bytes].

    """

    encode: Callable[[int, int, bytes], bytes]
    word_size: int

    def word(self, value: int) -> bytes:
        """Return an address or a number of bytes, little-endian."""
        return value.to_bytes(self.word_size, "little")

    def ping(self, id: int) -> bytes:
        """Request a status packet; for BROADCAST all motors reply one after another."""
        return self.encode(id, PING, b"")

    def read(self, id: int, address: int, size: int) -> bytes:
        """Request ``size`` bytes from ``address`` on of one motor."""
        return self.encode(id, READ, self.word(address) + self.word(size))

    def write(self, id: int, address: int, data: bytes) -> bytes:
        """Write ``data`` from ``address`` on to one motor; it replies if configured so."""
        return self.encode(id, WRITE, self.word(address) + data)

    def reboot(self, id: int) -> bytes:
        """Restart one motor."""
        return self.encode(id, REBOOT, b"")

    def sync_read(self, ids: Iterable[int], address: int, size: int) -> bytes:
        """Request the same bytes of several motors; they reply one after another, in this order."""
        block = self.word(address) + self.word(size)
        return self.encode(BROADCAST, SYNC_READ, block + bytes(ids))

    def sync_write(self, address: int, size: int, data: Mapping[int, bytes]) -> bytes:
        """Write ``size`` bytes at ``address`` to each motor; none replies."""
        each = b"".join(bytes((id,)) + values for id, values in data.items())
        return self.encode(BROADCAST, SYNC_WRITE, self.word(address) + self.word(size) + each)


@dataclass(frozen=True, slots=True)
class Register:
    """Entry of a motor's register table, little-endian; negative values in two's complement."""

    address: int
    size: int
    signed: bool = False

    def pack(self, value: int) -> bytes:
        """Return ``value`` as bytes."""
        return value.to_bytes(self.size, "little", signed=self.signed)

    def unpack(self, data: bytes, start: int | None = None) -> int:
        """Return the value in ``data``, which begins at address ``start``, by default its own."""
        at = 0 if start is None else self.address - start
        return int.from_bytes(data[at : at + self.size], "little", signed=self.signed)


class PacketParser(ABC, Generic[PacketT]):
    """Find valid packets in received bytes, in any split; never raises.

    Noise that looks like a header does not delay later packets: the search continues behind it
    while the bytes that it announces are missing.

    Attributes
    ----------
    header : bytes
        First bytes of every packet.
    lost : int
        Bytes since ``clear`` that were part of no packet.

    """

    header: ClassVar[bytes]

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.lost = 0

    @abstractmethod
    def decode(self, raw: bytes) -> PacketT | None:
        """Return the packet in ``raw``, from header to checksum; None if it is not valid."""

    @abstractmethod
    def end(self, at: int) -> int:
        """Return the end of the packet whose header is at ``at``.

        0 if it is not valid, more than the number of received bytes if its length is not known yet.
        """

    def clear(self) -> None:
        """Discard received bytes."""
        self._bytes.clear()
        self.lost = 0

    @property
    def waiting(self) -> int:
        """Number of received bytes that may still become a packet."""
        return len(self._bytes)

    @property
    def had_noise(self) -> bool:
        """Whether bytes since ``clear`` are part of no complete packet."""
        return self.lost + self.waiting > 0

    def feed(self, data: bytes) -> list[PacketT]:
        """Return the packets that ``data`` completes."""
        self._bytes += data
        complete: list[PacketT] = []
        while (packet := self._next_packet()) is not None:
            complete.append(packet)
        return complete

    def _next_packet(self) -> PacketT | None:
        """Remove the first valid packet; drop bytes that cannot become one."""
        keep = -1  # the first header that may still become a packet
        at = self._bytes.find(self.header)
        while at >= 0:
            end = self.end(at)
            if end > len(self._bytes):
                keep = at if keep < 0 else keep
            elif end and (packet := self.decode(bytes(self._bytes[at:end]))) is not None:
                self._drop(at)
                del self._bytes[: end - at]
                return packet
            at = self._bytes.find(self.header, at + 1)
        if keep < 0:  # the last bytes may begin a header
            sizes = range(len(self.header) - 1, 0, -1)
            begun = (n for n in sizes if self._bytes.endswith(self.header[:n]))
            keep = len(self._bytes) - next(begun, 0)
        self._drop(keep)
        return None

    def _drop(self, count: int) -> None:
        self.lost += count
        del self._bytes[:count]
