"""A line of bytes to motors: a serial port, or whatever a test puts in its place.

A serial port on a POSIX system, by pyserial: opened for this program alone.
"""

from __future__ import annotations

import os
import select
import termios
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from fcntl import ioctl
from threading import Lock
from typing import Any

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.requirements import to_install


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


WRITE_TIMEOUT = 0.1
"""Longest that a write may take [s]."""


class SerialPort(Port):
    """``name`` is the device's path, ``baud`` its rate [bit/s]: 8 data bits, no parity, 1 stop.

    While it is open nobody else can open it: programs that lock ports find it locked, others find
    it busy (but for those of root). Source: Linux, ioctl_tty(2), "Exclusive mode".
    """

    def __init__(self, name: str, baud: int) -> None:
        self.name, self.baud = name, baud
        self._serial: Any = None
        self._lock = Lock()  # held where the descriptor is used, so that none is closed under it

    def open(self) -> None:
        """Open for this program alone; raises DriverFault saying why not."""
        self.close()
        serial = _pyserial()
        try:
            opened = serial.Serial(self.name, self.baud, timeout=0, exclusive=True)
        except (OSError, ValueError, termios.error) as error:  # SerialException is an OSError
            raise DriverFault(f"port '{self.name}' at {self.baud} baud: {error}") from error
        with suppress(OSError, ValueError, NotImplementedError, AttributeError):
            opened.set_low_latency_mode(True)  # an adapter's own doing; ptys have none
        with suppress(OSError, AttributeError):  # where the system knows it; it is locked anyway
            ioctl(opened.fileno(), termios.TIOCEXCL)
        self._serial = opened

    def write(self, data: bytes) -> None:
        """Send all of ``data``; raises DriverFault where the line takes nothing for WRITE_TIMEOUT.

        A process that was not scheduled meanwhile is no fault of the line, so the line is looked at
        once more after that time (pyserial's own write raises then, whatever it has sent).
        """
        serial, until = self._opened(), self.now() + WRITE_TIMEOUT
        try:
            while data:
                if not select.select([], [serial.fileno()], [], max(0.0, until - self.now()))[1]:
                    raise OSError("Write timeout")
                with self._lock:
                    data = data[os.write(serial.fileno(), data) :]
        except (OSError, ValueError, TypeError, termios.error) as error:
            raise self._gone(error) from error

    def read(self, size: int, until: float) -> bytes:
        """Up to ``size`` bytes: as soon as that many are there, or what came by ``until`` [s]."""
        serial, got = self._opened(), b""
        while len(got) < size:
            left = until - self.now()
            try:
                ready = select.select([serial.fileno()], [], [], max(0.0, left))[0]
                chunk = self._take(serial, size - len(got)) if ready else b""
            except (OSError, ValueError, TypeError, termios.error) as error:
                raise self._gone(error) from error
            got += chunk
            if left <= 0 and not chunk:
                break
        return got

    def flush(self) -> None:
        """Forget what came and was not read."""
        serial = self._opened()
        try:
            with self._lock:
                serial.reset_input_buffer()
        except (OSError, ValueError, TypeError, termios.error) as error:
            raise self._gone(error) from error

    def close(self) -> None:
        """Release the line; never raises, may be called twice and from another thread."""
        with self._lock:
            serial, self._serial = self._serial, None
            if serial is not None:
                with suppress(Exception):  # else it lasts as long as anybody has it open
                    ioctl(serial.fileno(), termios.TIOCNXCL)
                with suppress(Exception):
                    serial.close()

    def _opened(self) -> Any:
        serial = self._serial
        if serial is None:
            raise DriverFault(f"port '{self.name}' is not open")
        return serial

    def _take(self, serial: Any, size: int) -> bytes:
        with self._lock:
            chunk = os.read(serial.fileno(), size)
        if not chunk:
            raise OSError("hung up")
        return chunk

    def _gone(self, error: Exception) -> DriverFault:
        self.close()
        return DriverFault(f"port '{self.name}' is gone: {error}")


def _pyserial() -> Any:
    try:
        import serial  # noqa: PLC0415
    except ImportError as error:
        raise DriverFault(f"serial ports need pyserial: {to_install('hardware')}") from (error)
    return serial
