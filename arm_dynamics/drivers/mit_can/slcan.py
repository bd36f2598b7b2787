"""CAN frames as lines of ASCII on a Port: the slcan dialect of USB adapters.

``t``, three digits of identifier, the number of bytes, two digits a byte, carriage return.
Source: LAWICEL, CAN232 manual V3, "t" command. There is no checksum on this stretch.
"""

from __future__ import annotations

from contextlib import suppress

from arm_dynamics.drivers.mit_can.frames import Frame
from arm_dynamics.drivers.mit_can.line import CanLine
from arm_dynamics.drivers.port import Port
from arm_dynamics.errors import ConfigError, DriverFault

LENGTH = 22
"""Characters of a frame of eight bytes."""
SPEEDS = (10_000, 20_000, 50_000, 100_000, 125_000, 250_000, 500_000, 800_000, 1_000_000)
"""Rates of the CAN line [bit/s] that S0 to S8 set."""


class SlcanLine(CanLine):
    """Speaks slcan over ``port``, on that port's clock; ``bitrate`` is the CAN line's [bit/s].

    Raises ConfigError for a rate that the dialect has no word for.
    """

    def __init__(self, port: Port, bitrate: int = SPEEDS[-1]) -> None:
        if bitrate not in SPEEDS:
            allowed = ", ".join(str(speed) for speed in SPEEDS)
            raise ConfigError(f"CAN: bitrate = {bitrate} bit/s: slcan has {allowed}")
        self._port = port
        self._opening = b"C\rS%d\rO\r" % SPEEDS.index(bitrate)
        self._buffer = bytearray()

    def now(self) -> float:
        """The port's time [s]."""
        return self._port.now()

    def open(self) -> None:
        """Open the port and the adapter's channel."""
        self._buffer.clear()
        self._port.open()
        self._port.flush()
        self._port.write(self._opening)

    def send(self, frame: Frame) -> None:
        """Send one frame."""
        self._port.write(written(frame))

    def receive(self, until: float) -> Frame | None:
        """The next frame, None when none came by ``until`` [s]; what is no frame is lost."""
        while True:
            text = self._line(until)
            if text is None:
                return None
            frame = parsed(text)
            if frame is not None:
                return frame

    def close(self) -> None:
        """Close the adapter's channel and release the port; never raises."""
        with suppress(DriverFault):
            self._port.write(b"C\r")
        self._port.close()

    def _line(self, until: float) -> bytes | None:
        while (end := self._buffer.find(b"\r")) < 0:
            got = self._port.read(max(LENGTH - len(self._buffer), 1), until)
            if not got:
                return None
            self._buffer += got
            del self._buffer[: -2 * LENGTH]
        text = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return text


def written(frame: Frame) -> bytes:
    """A frame as text."""
    return b"t%03X8%s\r" % (frame[0], frame[1].hex().upper().encode())


def parsed(text: bytes) -> Frame | None:
    """The frame that a line tells of, without its carriage return; None for any other line."""
    text = text.rpartition(b"\x07")[2]  # the answer to a command that failed is one such byte
    if len(text) != LENGTH - 1 or text[:1] != b"t" or text[4:5] != b"8" or not text.isalnum():
        return None
    try:
        return int(text[1:4], 16), bytes.fromhex(text[5:].decode("ascii"))
    except ValueError:
        return None
