"""Finds answers in whatever comes off a line: noise, halves, several at once."""

from __future__ import annotations

from arm_dynamics.drivers.feetech.codec import HEADER, LARGEST_ID, Packet, decode


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
        if head and head[0] > LARGEST_ID:
            return 0
        if len(head) < 2:
            return len(self._bytes) + 1
        return at + 4 + head[1] if head[1] >= 2 else 0

    def _drop(self, count: int) -> None:
        self.lost += count
        del self._bytes[:count]
