"""Transport of bytes to motors: the ``Port`` interface, and a POSIX serial port by pyserial."""

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

WRITE_TIMEOUT = 0.1
"""Longest time [s] that a write may take."""


class Port(ABC):
    """Bytes out, bytes in, and the clock of both; tests provide ports of emulated motors.

    ``write`` and ``read`` raise DriverFault once the connection is lost.
    """

    name: str = "port"

    def now(self) -> float:
        """Return the monotonic time [s]."""
        return time.monotonic()

    @abstractmethod
    def open(self) -> None:
        """Open for this program exclusively; raises DriverFault with the reason."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send all of ``data``."""

    @abstractmethod
    def read(self, size: int, until: float) -> bytes:
        """Return ``size`` bytes when they have arrived, or those received by ``until`` [s]."""

    @abstractmethod
    def flush(self) -> None:
        """Discard received bytes."""

    @abstractmethod
    def close(self) -> None:
        """Release the port; never raises, may be called twice."""


class SerialPort(Port):
    """Serial port with 8 data bits, no parity, 1 stop bit, opened exclusively.

    While it is open, programs that lock ports find it locked, others find it busy (except those of
    root).

    Parameters
    ----------
    name : str
        Path of the device.
    baud : int
        Rate [bit/s].

    References
    ----------
    Linux, ioctl_tty(2), "Exclusive mode".

    """

    def __init__(self, name: str, baud: int) -> None:
        self.name, self.baud = name, baud
        self._serial: Any = None
        self._lock = Lock()  # held while the descriptor is used, so that it is not closed then

    def open(self) -> None:
        """Open for this program exclusively; raises DriverFault with the reason."""
        self.close()
        try:
            import serial  # noqa: PLC0415
        except ImportError as error:
            raise DriverFault(f"serial ports need pyserial: {to_install('hardware')}") from error
        try:
            opened = serial.Serial(self.name, self.baud, timeout=0, exclusive=True)
        except (OSError, ValueError, termios.error) as error:  # SerialException is an OSError
            raise DriverFault(f"port '{self.name}' at {self.baud} baud: {error}") from error
        with suppress(OSError, ValueError, NotImplementedError, AttributeError):
            opened.set_low_latency_mode(True)  # depends on the adapter; ptys have none
        with suppress(OSError, AttributeError):  # where supported; the port is locked anyway
            ioctl(opened.fileno(), termios.TIOCEXCL)
        self._serial = opened

    def write(self, data: bytes) -> None:
        """Send all of ``data``; raises DriverFault if it takes longer than WRITE_TIMEOUT.

        The port is polled once more after that time, in case this process was not scheduled
        (pyserial's own write raises then, whatever it has sent).
        """
        serial, until = self._opened(), self.now() + WRITE_TIMEOUT
        try:
            while data:
                if not select.select([], [serial.fileno()], [], max(0.0, until - self.now()))[1]:
                    raise OSError("Write timeout")
                with self._lock:
                    data = data[os.write(serial.fileno(), data) :]
        except (OSError, ValueError, TypeError, termios.error) as error:
            raise self._lost(error) from error

    def read(self, size: int, until: float) -> bytes:
        """Return ``size`` bytes when they have arrived, or those received by ``until`` [s]."""
        serial, received = self._opened(), b""
        while len(received) < size:
            remaining = until - self.now()
            try:
                chunk = b""
                if select.select([serial.fileno()], [], [], max(0.0, remaining))[0]:
                    with self._lock:
                        chunk = os.read(serial.fileno(), size - len(received))
                    if not chunk:
                        raise OSError("hung up")
            except (OSError, ValueError, TypeError, termios.error) as error:
                raise self._lost(error) from error
            received += chunk
            if remaining <= 0 and not chunk:
                break
        return received

    def flush(self) -> None:
        """Discard received bytes."""
        serial = self._opened()
        try:
            with self._lock:
                serial.reset_input_buffer()
        except (OSError, ValueError, TypeError, termios.error) as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Release the port; never raises, may be called twice and from another thread."""
        with self._lock:
            serial, self._serial = self._serial, None
            if serial is not None:
                with suppress(Exception):  # otherwise exclusive until every program has closed it
                    ioctl(serial.fileno(), termios.TIOCNXCL)
                with suppress(Exception):
                    serial.close()

    def _opened(self) -> Any:
        serial = self._serial
        if serial is None:
            raise DriverFault(f"port '{self.name}' is not open")
        return serial

    def _lost(self, error: Exception) -> DriverFault:
        self.close()
        return DriverFault(f"port '{self.name}': connection lost: {error}")
