"""Finds packets in whatever comes off a line: noise, echoes, halves, several at once."""

from __future__ import annotations

from arm_dynamics.drivers.dynamixel.codec import BROADCAST, HEADER, Packet, decode

LONGEST = 6144
"""Largest length that is believed [bytes]: a fast read of all motors that fit on a line."""
_PREFIX = 7  # header, id and length


class Parser:
    """Bytes in any split in, good packets out; never raises.

    A header that noise made up costs nothing that follows: packets are looked for behind it
    while it waits for the bytes that it claims.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.heard = 0
        """Bytes that came since ``clear``."""

    def clear(self) -> None:
        """Forget what came."""
        self._bytes.clear()
        self.heard = 0

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that ``data`` completes."""
        self.heard += len(data)
        self._bytes += data
        found: list[Packet] = []
        while (packet := self._next()) is not None:
            found.append(packet)
        return found

    def pending(self) -> bytes:
        """What came from the first header on that is no packet yet."""
        return bytes(self._bytes) if self._bytes.startswith(HEADER) else b""

    def _next(self) -> Packet | None:
        """Take the first good packet; drop what can not become one."""
        keep = -1  # the first header that may still become a packet
        at = self._bytes.find(HEADER)
        while at >= 0:
            end = self._end(at)
            if end > len(self._bytes):
                keep = at if keep < 0 else keep
            elif end > 0 and (packet := decode(bytes(self._bytes[at:end]))) is not None:
                del self._bytes[:end]
                return packet
            at = self._bytes.find(HEADER, at + 1)
        del self._bytes[: keep if keep >= 0 else max(0, len(self._bytes) - len(HEADER) + 1)]
        return None

    def _end(self, at: int) -> int:
        """Where the packet whose header is at ``at`` ends; 0 where there can be none."""
        if len(self._bytes) < at + _PREFIX:
            return len(self._bytes) + 1
        length = int.from_bytes(self._bytes[at + 5 : at + _PREFIX], "little")
        good = self._bytes[at + 4] in _IDS and 3 <= length <= LONGEST
        return at + _PREFIX + length if good else 0


_IDS = frozenset((*range(0xFD), BROADCAST))
