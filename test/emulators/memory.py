"""A serial line in memory, on virtual time: bytes take their time, and may go astray."""

from __future__ import annotations

from collections import deque

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.serial_port import Port

from .arm import EmulatedArm
from .base import EmulatedMotors
from .faults import Faults


class MemoryPort(Port):
    """Emulated motors behind ``baud`` [bit/s], ten bits a byte; time passes by waiting alone.

    ``arm`` moves as time passes. ``requests`` and ``answers`` are the faults of each way.
    """

    name = "memory"

    def __init__(
        self,
        motors: EmulatedMotors,
        arm: EmulatedArm | None = None,
        *,
        baud: float = 1e6,
        latency: float = 1e-4,
        requests: Faults | None = None,
        answers: Faults | None = None,
    ) -> None:
        self.motors, self.arm = motors, arm
        self.byte, self.latency = 10 / baud, latency
        self.requests, self.answers = requests or Faults(), answers or Faults()
        self.time = 0.0
        self.opened = False
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._free = self._last = 0.0  # when the wire is free, and the last bytes have come

    def now(self) -> float:
        """Virtual time [s]."""
        return self.time

    def pass_until(self, time: float) -> None:
        """Let virtual time pass."""
        self.time = max(self.time, time)
        if self.arm is not None:
            self.arm.advance(self.time)
        else:
            self.motors.step(self.time)

    def open(self) -> None:
        """Open; not while it is open or unplugged."""
        if self.requests.unplugged or self.opened:
            raise DriverFault("memory: " + ("in use" if self.opened else "unplugged"))
        self.opened = True
        self._waiting.clear()

    def write(self, data: bytes) -> None:
        """Send; what the motors answer is on its way then."""
        self._check()
        self.pass_until(self.time + len(data) * self.byte)
        answer = self.motors.receive(self.requests.spoil(data), self.time)
        answer = self.answers.lagging(answer)
        for piece in self.answers.split(answer):
            self._free = max(self.time, self._free) + self.latency + len(piece) * self.byte
            self._last = max(self._last, self._free + self.answers.late())  # one after another
            spoilt = self.answers.spoil(piece)
            if spoilt:
                self._waiting.append((self._last, spoilt))

    def read(self, size: int, until: float) -> bytes:
        """Up to ``size`` bytes that come by ``until``."""
        self._check()
        got = b""
        while self._waiting and len(got) < size and self._waiting[0][0] <= max(until, self.time):
            arrival, piece = self._waiting.popleft()
            self.pass_until(arrival)
            room = size - len(got)
            got += piece[:room]
            if piece[room:]:
                self._waiting.appendleft((arrival, piece[room:]))
        if len(got) < size:
            self.pass_until(until)
        return got

    def flush(self) -> None:
        """Forget what has come."""
        self._check()
        while self._waiting and self._waiting[0][0] <= self.time:
            self._waiting.popleft()

    def close(self) -> None:
        """Release."""
        self.opened = False

    def _check(self) -> None:
        if self.requests.unplugged or not self.opened:
            raise DriverFault("memory: " + ("unplugged" if self.opened else "not open"))
