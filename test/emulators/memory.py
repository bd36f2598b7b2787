"""Serial port in memory with virtual time, transmission times and communication faults."""

from __future__ import annotations

from collections import deque

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors
from arm_dynamics.hardware.serial_port import Port

from .faults import Faults


class MemoryPort(Port):
    """Port to emulated motors at ``baud`` [bit/s], ten bits per byte.

    Virtual time advances only while the port transmits or waits, and ``arm`` moves with it.
    ``requests`` and ``answers`` contain the faults of each direction.
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
        self._free = self._last = 0.0  # times: end of transmission, arrival of the last bytes

    def now(self) -> float:
        """Virtual time [s]."""
        return self.time

    def pass_until(self, time: float) -> None:
        """Advance the virtual time to ``time`` [s]."""
        self.time = max(self.time, time)
        if self.arm is not None:
            self.arm.advance(self.time)
        else:
            self.motors.step(self.time)

    def open(self) -> None:
        """Open the port; raise DriverFault if it is open or unplugged."""
        if self.requests.unplugged or self.opened:
            raise DriverFault("memory: " + ("in use" if self.opened else "unplugged"))
        self.opened = True
        self._waiting.clear()

    def write(self, data: bytes) -> None:
        """Send a request; the replies of the motors then arrive with time."""
        self._check()
        self.pass_until(self.time + len(data) * self.byte)
        answer = self.motors.receive(self.requests.distort(data), self.time)
        answer = self.answers.lagging(answer)
        for piece in self.answers.split(answer):
            self._free = max(self.time, self._free) + self.latency + len(piece) * self.byte
            self._last = max(self._last, self._free + self.answers.late())  # one after another
            received = self.answers.distort(piece)
            if received:
                self._waiting.append((self._last, received))

    def read(self, size: int, until: float) -> bytes:
        """Return up to ``size`` bytes that arrive by ``until`` [s]."""
        self._check()
        got = b""
        while self._waiting and len(got) < size and self._waiting[0][0] <= max(until, self.time):
            arrival, piece = self._waiting.popleft()
            self.pass_until(arrival)
            missing = size - len(got)
            got += piece[:missing]
            if piece[missing:]:
                self._waiting.appendleft((arrival, piece[missing:]))
        if len(got) < size:
            self.pass_until(until)
        return got

    def flush(self) -> None:
        """Discard the received bytes."""
        self._check()
        while self._waiting and self._waiting[0][0] <= self.time:
            self._waiting.popleft()

    def close(self) -> None:
        """Close the port."""
        self.opened = False

    def _check(self) -> None:
        if self.requests.unplugged or not self.opened:
            raise DriverFault("memory: " + ("unplugged" if self.opened else "not open"))
