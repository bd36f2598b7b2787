"""Transport of CAN frames to motors: slcan on a serial port, python-can, or a test's transport."""

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

MAX_ATTEMPTS = 3
"""Attempts of a request outside of the control cycle."""


class CanTransport(ABC):
    """Frames of eight bytes with 11-bit identifiers out and in, and the clock of both.

    ``send`` and ``receive`` raise DriverFault once the connection is lost.
    """

    def now(self) -> float:
        """Return the monotonic time [s]."""
        return time.monotonic()

    @abstractmethod
    def open(self) -> None:
        """Open again; raises DriverFault with the reason."""

    @abstractmethod
    def send(self, frame: CanFrame) -> None:
        """Send one frame."""

    @abstractmethod
    def receive(self, until: float) -> CanFrame | None:
        """Return the next frame of 8 bytes; None after ``until`` [s]."""

    @abstractmethod
    def close(self) -> None:
        """Release the bus; never raises, may be called twice."""


LENGTH = 22
"""Characters of a frame of eight bytes."""
SPEEDS = (10_000, 20_000, 50_000, 100_000, 125_000, 250_000, 500_000, 800_000, 1_000_000)
"""Rates of the CAN bus [bit/s] of the commands S0 to S8."""


class SlcanTransport(CanTransport):
    """slcan over a serial ``port``, on that port's clock: CAN frames as lines of ASCII.

    ``t``, three digits of identifier, the number of bytes, two digits for each byte, carriage
    return. No checksum protects it. ``bitrate`` [bit/s] is that of the CAN bus. Raises ConfigError
    for a rate that slcan does not have.

    References
    ----------
    LAWICEL, CAN232 manual V3, "t" command.

    """

    def __init__(self, port: Port, bitrate: int = SPEEDS[-1]) -> None:
        if bitrate not in SPEEDS:
            allowed = ", ".join(str(speed) for speed in SPEEDS)
            raise ConfigError(f"CAN: bitrate = {bitrate} bit/s; expected one of {allowed}")
        self._port = port
        self._opening = b"C\rS%d\rO\r" % SPEEDS.index(bitrate)
        self._buffer = bytearray()

    def now(self) -> float:
        """Return the port's time [s]."""
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
        """Return the next frame; None after ``until`` [s]."""
        while True:
            end = self._buffer.find(b"\r")
            if end < 0:
                received = self._port.read(max(LENGTH - len(self._buffer), 1), until)
                if not received:
                    return None
                self._buffer += received
                del self._buffer[: -2 * LENGTH]
                continue
            frame = decode_line(bytes(self._buffer[:end]))
            del self._buffer[: end + 1]
            if frame is not None:
                return frame

    def close(self) -> None:
        """Close the adapter's channel and release the port; never raises."""
        with suppress(DriverFault):
            self._port.write(b"C\r")
        self._port.close()


def encode_line(frame: CanFrame) -> bytes:
    """Return a frame as a line."""
    return b"t%03X8%s\r" % (frame[0], frame[1].hex().upper().encode())


def decode_line(text: bytes) -> CanFrame | None:
    """Return the frame of a line without its carriage return; None for any other line."""
    text = text.rpartition(b"\x07")[2]  # the reply to a failed command is one such byte
    if len(text) != LENGTH - 1 or text[:1] != b"t" or text[4:5] != b"8" or not text.isalnum():
        return None
    try:
        return int(text[1:4], 16), bytes.fromhex(text[5:].decode("ascii"))
    except ValueError:
        return None


INTERFACES = ("socketcan", "slcan", "virtual", "udp_multicast")
DEFAULTS = {"interface": "socketcan", "channel": "can0", "bitrate": "1000000"}
MIN_WAIT = 2e-4
"""Shortest wait [s] for a frame: slcan reads one acknowledgement per call."""


class PythonCanTransport(CanTransport):
    """CAN by python-can: socketcan, slcan, virtual, udp_multicast.

    ``settings``: interface, channel (or port), bitrate. slcan also has ``sleep_after_open`` [s] and
    ``baud`` of its serial port, which is opened exclusively. udp_multicast has ``udp_port`` and
    does not leave this machine. A socketcan network is shared by design: the system lets several
    programs send on it.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {**DEFAULTS, **settings}
        self._can: Any = None
        self._port_lock: Any = None
        self._bus: Any = None
        self._least = MIN_WAIT if self._settings["interface"] == "slcan" else 0.0
        self._sent: deque[CanFrame] = deque(maxlen=64)

    def open(self) -> None:
        """Open again; raises DriverFault with the reason."""
        self.close()
        try:
            import can  # noqa: PLC0415  # needed for this driver only

            self._can = can
            options = _options(self._settings)
            self._port_lock = _exclusive_port(options)
            self._bus = can.Bus(**options)
        except ModuleNotFoundError as error:
            self.close()
            raise DriverFault(f"{error}: {to_install('hardware')}") from error
        except Exception as error:  # any error of a python-can driver
            self.close()
            raise DriverFault(f"{self._name} cannot be opened: {error}{self._remedy}") from error

    def send(self, frame: CanFrame) -> None:
        """Send one frame."""
        bus, (id, data) = self._opened(), frame
        try:
            message = self._can.Message(arbitration_id=id, data=data, is_extended_id=False)
            bus.send(message, timeout=0.1)
        except (self._can.CanError, OSError, ValueError, TypeError) as error:
            raise DriverFault(f"{self._name}: connection lost: {error}") from error
        if self._settings["interface"] == "udp_multicast":
            self._sent.append(frame)

    def receive(self, until: float) -> CanFrame | None:
        """Return the next frame of 8 bytes; None after ``until`` [s]."""
        while True:
            message = self._message(max(until - self.now(), self._least))
            if message is None:
                if self.now() >= until:
                    return None
                continue
            other = message.is_extended_id or message.is_error_frame or message.is_remote_frame
            frame = (message.arbitration_id, bytes(message.data))
            if len(message.data) != 8 or other:
                continue
            if frame not in self._sent:
                return frame
            self._sent.remove(frame)  # udp_multicast returns an echo of every frame

    def close(self) -> None:
        """Release the bus; never raises, may be called twice."""
        bus, self._bus = self._bus, None
        self._sent.clear()
        serial = getattr(bus, "serialPortOrig", None)  # an unplugged slcan leaves it open
        for held, end in ((bus, "shutdown"), (serial, "close"), (self._port_lock, "close")):
            if held is not None:
                with suppress(Exception):
                    getattr(held, end)()
        self._port_lock = None

    def _message(self, wait: float) -> Any:
        bus = self._opened()
        try:
            return bus.recv(wait)
        except (self._can.CanError, OSError, TypeError, ValueError) as error:
            noise = isinstance(error, ValueError) or isinstance(error.__cause__, ValueError)
            if not (noise and hasattr(bus, "serialPortOrig")):
                raise DriverFault(f"{self._name}: connection lost: {error}") from error
        try:
            bus.flush()  # bytes that python-can's slcan cannot decode: it would fail repeatedly
            return None
        except Exception as error:
            raise DriverFault(f"{self._name}: connection lost: {error}") from error

    def _opened(self) -> Any:
        if self._bus is None:
            raise DriverFault(f"{self._name} is not open")
        return self._bus

    @property
    def _name(self) -> str:
        return f"CAN {self._settings['interface']} {_channel(self._settings)}"

    @property
    def _remedy(self) -> str:
        settings, channel = self._settings, _channel(self._settings)
        if settings["interface"] != "socketcan":
            return ""
        up = f"sudo ip link set {channel} up type can bitrate {settings['bitrate']}"
        return f"; bring it up ({up}), or set interface=slcan and the port of a serial adapter"


def _channel(settings: Mapping[str, str]) -> str:
    return settings.get("port") or settings["channel"]


def _options(settings: Mapping[str, str]) -> dict[str, Any]:
    interface = settings["interface"]
    if interface not in INTERFACES:
        raise DriverFault(
            f"CAN: interface = '{interface}'; expected one of {', '.join(INTERFACES)}"
        )
    options: dict[str, Any] = {"interface": interface, "channel": _channel(settings)}
    if interface == "slcan":
        options |= {"bitrate": int(settings["bitrate"]), "timeout": MIN_WAIT}
        options["tty_baudrate"] = int(settings.get("baud", "1000000"))
        options["sleep_after_open"] = float(settings.get("sleep_after_open", "0"))
    if interface == "udp_multicast":
        options |= {"hop_limit": 0, "fd": False, "port": int(settings.get("udp_port", "43113"))}
    return options


def _exclusive_port(options: Mapping[str, Any]) -> Any:
    """Lock the serial port of slcan before a byte is sent: opening sends bytes to the adapter."""
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
