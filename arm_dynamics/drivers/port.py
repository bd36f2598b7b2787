"""A line of bytes to motors: a serial port, or whatever a test puts in its place."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod


class Port(ABC):
    """Bytes out, bytes in, and the clock that both are timed by.

    ``write`` and ``read`` raise DriverFault once the line is gone.
    """

    name: str = "port"

    def now(self) -> float:
        """Monotonic time [s]."""
        return time.monotonic()

    @abstractmethod
    def open(self) -> None:
        """Open for this program alone; raises DriverFault saying why not."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send all of ``data``."""

    @abstractmethod
    def read(self, size: int, until: float) -> bytes:
        """Up to ``size`` bytes: as soon as that many are there, or what came by ``until`` [s]."""

    @abstractmethod
    def flush(self) -> None:
        """Forget what came and was not read."""

    @abstractmethod
    def close(self) -> None:
        """Release the line; never raises, may be called twice."""
