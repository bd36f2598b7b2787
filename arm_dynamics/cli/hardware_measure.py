"""Positions of motors while somebody leads the arm by hand, torque off."""

from __future__ import annotations

from collections import deque

from arm_dynamics.cli.keyboard import GONE, Keyboard
from arm_dynamics.cli.live_line import LiveLine
from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.errors import ConfigError

TAKE, QUIT, ENTER = "m", "q", ("\n", "\r")
COUNT = 10
"""Readings that a position is the mean of."""
SHAKE = 0.02
"""Largest difference between them [rad]."""
PERIOD = 0.02
"""Between two readings [s]."""


class Measure:
    """Asks for a place and takes the shaft's position there when the key is pressed."""

    def __init__(self, bus: MotorBus, keys: Keyboard) -> None:
        self._bus, self._keys = bus, keys
        self._seen: deque[float] = deque(maxlen=COUNT)

    def at(self, id: int, question: str) -> float | None:
        """The shaft of motor ``id`` [rad] where TAKE is pressed; None for Enter.

        Raises ConfigError for QUIT, DriverFault where the port is lost.
        """
        print(f"{question}  [m] measure   [Enter] leave out   [q] quit")
        self._seen.clear()
        with LiveLine() as line:
            while True:
                key = self._keys.newest(PERIOD)
                if key in ENTER:
                    line.end("  left out")
                    return None
                if key in (QUIT, GONE):
                    raise ConfigError("calibration was left: nothing is written")
                line.show(self._read(id))
                if key == TAKE and self._still:
                    found = sum(self._seen) / len(self._seen)
                    line.end(f"  measured: {found:.4f} rad at the motor")
                    return found
                if key == TAKE:
                    line.end("  not yet: hold it still, then press m again")

    @property
    def _still(self) -> bool:
        seen = self._seen
        return len(seen) == COUNT and max(seen) - min(seen) < SHAKE

    def _read(self, id: int) -> str:
        """One cycle of all motors, which keeps count of their turns."""
        told = self._bus.read().get(id)
        if told is None:
            self._seen.clear()
            return f"  motor {id} does not answer"
        self._seen.append(told.q)
        return f"  motor at {told.q:.4f} rad"
