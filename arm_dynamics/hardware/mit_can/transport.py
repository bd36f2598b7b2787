"""A line of CAN frames to motors: python-can, slcan on a port, or what a test puts in its place.

CAN frames as lines of ASCII on a Port: the slcan dialect of USB adapters.

``t``, three digits of identifier, the number of bytes, two digits a byte, carriage return.
Source: LAWICEL, CAN232 manual V3, "t" command. There is no checksum on this stretch.

CAN by python-can: socketcan, slcan, virtual, udp_multicast; their traps stay in here.
"""

from __future__ import annotations

import fcntl
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.requirements import to_install
from arm_dynamics.hardware.mit_can.can_frames import CanFrame
from arm_dynamics.hardware.serial_port import Port


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
    def send(self, frame: CanFrame) -> None:
        """Send one frame."""

    @abstractmethod
    def receive(self, until: float) -> CanFrame | None:
        """The next frame, None when none came by ``until`` [s]; others than of 8 bytes are lost."""

    @abstractmethod
    def close(self) -> None:
        """Release the line; never raises, may be called twice."""


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

    def send(self, frame: CanFrame) -> None:
        """Send one frame."""
        self._port.write(encode_line(frame))

    def receive(self, until: float) -> CanFrame | None:
        """The next frame, None when none came by ``until`` [s]; what is no frame is lost."""
        while True:
            text = self._line(until)
            if text is None:
                return None
            frame = decode_line(text)
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


def encode_line(frame: CanFrame) -> bytes:
    """A frame as text."""
    return b"t%03X8%s\r" % (frame[0], frame[1].hex().upper().encode())


def decode_line(text: bytes) -> CanFrame | None:
    """The frame that a line tells of, without its carriage return; None for any other line."""
    text = text.rpartition(b"\x07")[2]  # the answer to a command that failed is one such byte
    if len(text) != LENGTH - 1 or text[:1] != b"t" or text[4:5] != b"8" or not text.isalnum():
        return None
    try:
        return int(text[1:4], 16), bytes.fromhex(text[5:].decode("ascii"))
    except ValueError:
        return None


INTERFACES = ("socketcan", "slcan", "virtual", "udp_multicast")
DEFAULTS = {"interface": "socketcan", "channel": "can0", "bitrate": "1000000"}
SLICE = 2e-4
"""Least wait [s] for a frame: slcan reads its acknowledgements one call each."""


class PythonCanLine(CanLine):
    """A bus of python-can, by ``settings``: interface, channel (or port), bitrate.

    slcan also takes ``sleep_after_open`` [s] and ``baud`` of its serial port, which is this
    program's alone; udp_multicast takes ``udp_port`` and stays on this machine. A socketcan
    network is shared by design: the system lets several programs send on it.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {**DEFAULTS, **settings}
        self._can: Any = None
        self._claim: Any = None
        self._bus: Any = None
        self._least = SLICE if self._settings["interface"] == "slcan" else 0.0
        self._sent: deque[CanFrame] = deque(maxlen=64)

    def open(self) -> None:
        """Open anew; raises DriverFault saying why not."""
        self.close()
        try:
            import can  # noqa: PLC0415  # needed for this driver alone

            self._can = can
            options = _options(self._settings)
            self._claim = _claimed(options)
            self._bus = can.Bus(**options)
        except ModuleNotFoundError as error:
            raise DriverFault(f"{error}: {to_install('hardware')}") from error
        except Exception as error:  # whatever a driver of python-can raises where it cannot open
            self.close()
            raise DriverFault(f"{self._name} cannot be opened: {error}{self._advice}") from error

    def send(self, frame: CanFrame) -> None:
        """Send one frame."""
        bus, (id, data) = self._opened(), frame
        try:
            message = self._can.Message(arbitration_id=id, data=data, is_extended_id=False)
            bus.send(message, timeout=0.1)
        except (self._can.CanError, OSError, ValueError, TypeError) as error:
            raise DriverFault(f"{self._name} is gone: {error}") from error
        if self._settings["interface"] == "udp_multicast":
            self._sent.append(frame)

    def receive(self, until: float) -> CanFrame | None:
        """The next frame, None when none came by ``until`` [s]; others than of 8 bytes are lost."""
        while True:
            message = self._message(max(until - self.now(), self._least))
            if message is not None and _usual(message):
                frame = (message.arbitration_id, bytes(message.data))
                if not self._own(frame):
                    return frame
            if message is None and self.now() >= until:
                return None

    def close(self) -> None:
        """Release the line; never raises, may be called twice."""
        bus, self._bus = self._bus, None
        self._sent.clear()
        serial = getattr(bus, "serialPortOrig", None)  # an unplugged slcan leaves it open
        for held, end in ((bus, "shutdown"), (serial, "close"), (self._claim, "close")):
            if held is not None:
                with suppress(Exception):
                    getattr(held, end)()
        self._claim = None

    def _message(self, wait: float) -> Any:
        bus = self._opened()
        try:
            return bus.recv(wait)
        except (self._can.CanError, OSError, TypeError, ValueError) as error:
            noise = isinstance(error, ValueError) or isinstance(error.__cause__, ValueError)
            if not (noise and hasattr(bus, "serialPortOrig")):
                raise DriverFault(f"{self._name} is gone: {error}") from error
        self._forget_noise(bus)
        return None

    def _forget_noise(self, bus: Any) -> None:
        """python-can's slcan keeps bytes that it could not decode, and would stumble for ever."""
        try:
            bus.flush()
        except Exception as error:
            raise DriverFault(f"{self._name} is gone: {error}") from error

    def _opened(self) -> Any:
        if self._bus is None:
            raise DriverFault(f"{self._name} is not open")
        return self._bus

    def _own(self, frame: CanFrame) -> bool:
        """Whether this is the echo of a frame sent from here, which udp_multicast always gives."""
        if frame not in self._sent:
            return False
        self._sent.remove(frame)
        return True

    @property
    def _name(self) -> str:
        return f"CAN {self._settings['interface']} {_channel(self._settings)}"

    @property
    def _advice(self) -> str:
        told, channel = self._settings, _channel(self._settings)
        if told["interface"] != "socketcan":
            return ""
        up = f"sudo ip link set {channel} up type can bitrate {told['bitrate']}"
        return f"; bring it up ({up}), or set interface=slcan and the port of a serial adapter"


def _usual(message: Any) -> bool:
    odd = message.is_extended_id or message.is_error_frame or message.is_remote_frame
    return len(message.data) == 8 and not odd


def _channel(settings: Mapping[str, str]) -> str:
    return settings.get("port") or settings["channel"]


def _options(settings: Mapping[str, str]) -> dict[str, Any]:
    interface = settings["interface"]
    if interface not in INTERFACES:
        raise DriverFault(f"interface '{interface}': known: {', '.join(INTERFACES)}")
    options: dict[str, Any] = {"interface": interface, "channel": _channel(settings)}
    if interface == "slcan":
        options |= {"bitrate": int(settings["bitrate"]), "timeout": SLICE}
        options["tty_baudrate"] = int(settings.get("baud", "1000000"))
        options["sleep_after_open"] = float(settings.get("sleep_after_open", "0"))
    if interface == "udp_multicast":
        options |= {"hop_limit": 0, "fd": False, "port": int(settings.get("udp_port", "43113"))}
    return options


def _claimed(options: Mapping[str, Any]) -> Any:
    """The serial port of slcan, locked before a byte is sent: opening talks to the adapter."""
    path = str(options["channel"]).split("@")[0]
    if options["interface"] != "slcan" or not os.path.exists(path):
        return None
    port = open(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK), "rb", buffering=0)  # noqa: SIM115
    try:
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        port.close()
        raise DriverFault(f"{path} is in use by another program") from error
    return port
