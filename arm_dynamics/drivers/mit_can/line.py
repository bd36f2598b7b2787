"""A line of CAN frames to motors: python-can, slcan on a port, or what a test puts in its place."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from arm_dynamics.drivers.mit_can.frames import Frame


class CanLine(ABC):
    """Frames of eight bytes with 11-bit identifiers out and in, and the clock that times them.

    ``send`` and ``receive`` raise DriverFault once the line is gone.
    """

    def now(self) -> float:
        """Monotonic time [s]."""
        return time.monotonic()

    @abstractmethod
    def open(self) -> None:
        """Open anew; raises DriverFault saying why not."""

    @abstractmethod
    def send(self, frame: Frame) -> None:
        """Send one frame."""

    @abstractmethod
    def receive(self, until: float) -> Frame | None:
        """The next frame, None when none came by ``until`` [s]; others than of 8 bytes are lost."""

    @abstractmethod
    def close(self) -> None:
        """Release the line; never raises, may be called twice."""
