"""In-memory serial line with emulated Dynamixel motors, on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.dynamixel.bus import Dynamixel
from arm_dynamics.hardware.emulation.dynamixel_motors import EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.serial_port import Port
from arm_dynamics.model.hardware_info import JointMotor

BYTE = 1e-5  # [s] at 1 Mbit/s


class Wire(Port):
    """Port with the transmission time of each byte; the motors step every millisecond.

    ``spoil`` may change the replies; ``hold`` is the latency of the adapter [s]; ``gone`` means
    disconnected.
    """

    name = "wire"

    def __init__(self, motors: EmulatedDynamixels) -> None:
        self.motors, self.time, self.gone = motors, 0.0, False
        self.distort: Callable[[bytes], bytes] = lambda data: data
        self.writes, self.hold, self.closed = 0, 0.0, False
        self._coming: list[tuple[float, int]] = []

    def now(self) -> float:
        return self.time

    def open(self) -> None:
        self._check()

    def write(self, data: bytes) -> None:
        self._check()
        self.writes += 1
        self.advance(len(data) * BYTE)
        back = self.distort(self.motors.receive(data, self.time))
        self._coming += [
            (self.time + self.hold + (k + 1) * BYTE, byte) for k, byte in enumerate(back)
        ]

    def read(self, size: int, until: float) -> bytes:
        self._check()
        due = sorted(when for when, _ in self._coming)
        enough = due[size - 1] if len(due) >= size else until
        self.advance(max(0.0, min(enough, until) - self.time))
        there = [byte for when, byte in self._coming if when <= self.time + 1e-12][:size]
        self._coming = self._coming[len(there) :]
        return bytes(there)

    def flush(self) -> None:
        self._check()
        self._coming = [(when, byte) for when, byte in self._coming if when > self.time]

    def close(self) -> None:
        self.closed = True
        self._coming = []

    def repeat(self, data: bytes) -> None:
        """Append bytes that arrive before the next request."""
        self._coming += [(self.time, byte) for byte in data]

    def advance(self, seconds: float) -> None:
        """Advance the virtual time."""
        end = self.time + seconds
        while self.time < end:
            self.time = min(end, self.time + 1e-3)
            self.motors.step(self.time)

    def _check(self) -> None:
        if self.gone:
            raise DriverFault("port 'wire' is gone")


def wiring(*models: str) -> list[JointMotor]:
    """Return joints a, b, c ... with motors 1, 2, 3 ... ."""
    return [JointMotor("abcdefgh"[k], k + 1, model) for k, model in enumerate(models)]


def bus(
    models: Sequence[str] = ("XM430-W350",) * 3,
    shafts: Sequence[Shaft] | None = None,
    settings: dict[str, str] | None = None,
    **options: object,
) -> tuple[Dynamixel, EmulatedDynamixels, Wire]:
    """Return a bus configured with ``models``, its motors and its wire; ``shafts`` are the actual
    motors.
    """
    if shafts is None:
        shafts = [Shaft(k + 1, model, supply=_supply(model)) for k, model in enumerate(models)]
    motors = EmulatedDynamixels(shafts, **options)  # type: ignore[arg-type]
    wire = Wire(motors)
    given = {"baud": "1000000", **(settings or {})}
    return Dynamixel(wiring(*models), given, wire), motors, wire


def _supply(model: str) -> float:
    return 5.0 if model.startswith("XL330") else 12.0
