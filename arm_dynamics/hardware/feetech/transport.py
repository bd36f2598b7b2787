"""Questions to several servos on one line, each within a time that the rate sets.

All writing is by sync writes, which no servo answers: nothing collides on the one wire, and what
was written is confirmed by reading it. Servos that were silent last time are asked last and
waited for briefly, so that they cost the others little.

Registers of several servos, asked for until they answer and written until they are read back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.hardware.feetech import packets as codec
from arm_dynamics.hardware.feetech.packets import STATUS_SIZE, Packet, Parser
from arm_dynamics.hardware.feetech.registers import Register
from arm_dynamics.hardware.serial_port import Port

RETURN_DELAY = 5e-4
"""What a servo keeps before it answers, as it is delivered [s]."""
GRACE = 2e-3
"""How long a servo that was silent last time is waited for once the others have answered [s]."""
PATIENT = 16
"""Every so many questions it is waited for as long as the others."""
LENGTHS, MANY_LENGTHS = 4, 16
"""Questions ask for so many lengths in turn: an answer that is late by less than so many has the
wrong length, and is not taken for a fresh one. Those of single registers are confirmations."""


Heard = tuple[float, Packet]
"""When an answer was there [s], and what it was."""


class FeetechTransport:
    """Servos on ``port`` at ``baud`` [bit/s]; ``latency`` [s] is the adapter's and system's."""

    def __init__(self, port: Port, baud: float, latency: float) -> None:
        self.port, self.latency = port, latency
        self.byte_time = 10.0 / baud
        self.silent: set[int] = set()
        self._asked = 0
        self._parser = Parser()

    def request(
        self, ids: Collection[int], address: int, size: int, lengths: int = LENGTHS
    ) -> dict[int, Heard]:
        """``size`` bytes from ``address`` on of every servo that answers, and when, by id.

        A few more come with them, so that successive answers differ in length.
        """
        self._asked += 1
        size += self._asked % lengths
        order = sorted(ids, key=self.silent.__contains__)
        request, reply = codec.sync_read(order, address, size), STATUS_SIZE + size
        self._send(request)
        until = self._patience(len(request), len(order) * reply, len(order))
        found: dict[int, Heard] = {}
        while left := [id for id in order if id not in found]:
            hoped = [id for id in left if id not in self.silent]
            if not hoped and found and self._asked % PATIENT:
                until = min(until, self.port.now() + self._grace(len(left), reply))
            wanted = len(hoped or left) * reply - self._parser.waiting
            chunk = self.port.read(max(1, wanted), until)
            if not chunk:
                break
            now, packets = self.port.now(), self._parser.feed(chunk)
            found |= {p.id: (now, p) for p in packets if p.id in left and len(p.data) == size}
        self.silent = (self.silent - set(ids)) | (set(ids) - found.keys())
        return found

    def request_all(
        self, id: int, address: int, size: int, latency: float
    ) -> tuple[list[Packet], bool]:
        """All answers of that size until it is quiet, late ones of other servos too.

        And whether bytes came that are none of them.
        """
        request = codec.read(id, address, size)
        self._send(request)
        wait = (len(request) + 2 * (STATUS_SIZE + size)) * self.byte_time + RETURN_DELAY + latency
        until, packets = self.port.now() + wait, []
        while chunk := self.port.read(4096, until):
            packets += self._parser.feed(chunk)
        good = [p for p in packets if len(p.data) == size]
        return good, len(good) < len(packets) or self._parser.lost + self._parser.waiting > 0

    def read(self, ids: Collection[int], register: Register) -> dict[int, int]:
        """One register of several servos, by id; those that did not answer are left out."""
        found = self.request(ids, register.address, 2, MANY_LENGTHS) if ids else {}
        return {id: register.unpack(p.data, register.address) for id, (_, p) in found.items()}

    def holding_ids(self, address: int, shares: Mapping[int, bytes]) -> set[int]:
        """The servos that hold these bytes at ``address``, as they answer."""
        size = max(map(len, shares.values()), default=0)
        found = self.request(shares, address, size, MANY_LENGTHS) if shares else {}
        return {id for id, (_, p) in found.items() if p.data.startswith(shares[id])}

    def write(self, address: int, shares: Mapping[int, bytes]) -> None:
        """Have servos take bytes of one length at ``address``; none answers."""
        if shares:
            size = len(next(iter(shares.values())))
            self.port.write(codec.sync_write(address, size, shares))

    def _send(self, request: bytes) -> None:
        self._parser.clear()
        self.port.flush()
        self.port.write(request)

    def _grace(self, count: int, reply: int) -> float:
        return GRACE + count * (RETURN_DELAY + reply * self.byte_time)

    def _patience(self, sent: int, answered: int, count: int) -> float:
        on_wire = (sent + answered) * self.byte_time
        return self.port.now() + on_wire + count * RETURN_DELAY + self.latency


ATTEMPTS = 3
"""How often a servo is asked before it counts as silent."""


class RegisterAccess:
    """What stands in the servos on ``line``."""

    def __init__(self, line: FeetechTransport) -> None:
        self._line = line

    def read(self, register: Register, ids: Collection[int]) -> dict[int, int]:
        """A register's value by id; servos that never answered are left out."""
        found: dict[int, int] = {}
        for _ in range(ATTEMPTS):
            found |= self._line.read(set(ids) - found.keys(), register)
        return found

    def set(self, register: Register, wanted: Mapping[int, int]) -> set[int]:
        """Write values; the servos that were read to have them."""
        done: set[int] = set()
        for _ in range(ATTEMPTS):
            left = {id: value for id, value in wanted.items() if id not in done}
            self._line.write(register.address, {id: register.pack(v) for id, v in left.items()})
            found = self._line.read(left, register)
            done |= {id for id, value in found.items() if value == left[id]}
        return done
