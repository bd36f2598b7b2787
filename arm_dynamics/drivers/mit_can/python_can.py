"""CAN by python-can: socketcan, slcan, virtual, udp_multicast; their traps stay in here."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from arm_dynamics.drivers.mit_can.frames import Frame
from arm_dynamics.drivers.mit_can.line import CanLine
from arm_dynamics.errors import DriverFault
from arm_dynamics.requirements import to_install

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
        self._sent: deque[Frame] = deque(maxlen=64)

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

    def send(self, frame: Frame) -> None:
        """Send one frame."""
        bus, (id, data) = self._opened(), frame
        try:
            message = self._can.Message(arbitration_id=id, data=data, is_extended_id=False)
            bus.send(message, timeout=0.1)
        except (self._can.CanError, OSError, ValueError, TypeError) as error:
            raise DriverFault(f"{self._name} is gone: {error}") from error
        if self._settings["interface"] == "udp_multicast":
            self._sent.append(frame)

    def receive(self, until: float) -> Frame | None:
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

    def _own(self, frame: Frame) -> bool:
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
