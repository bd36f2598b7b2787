"""Motors with the register protocol on one serial port: settings, transport and scan.

Each request ends within a time set by the baud rate: ten bits for each byte sent and received, the
return delay of each motor, and the latency of adapter and system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.hardware.motor_bus import DiscoveredMotor, MotorBus
from arm_dynamics.hardware.register_protocol import PacketParser, Register
from arm_dynamics.hardware.serial_port import Port, SerialPort
from arm_dynamics.model.hardware_info import JointMotor

RETURN_DELAY = 5e-4
"""Return delay [s] of a motor as delivered."""
MAX_ATTEMPTS = 3
"""Attempts to read or write a register outside of the control cycle."""


class RegisterTransport(ABC):
    """Requests to the motors on ``port`` and their replies.

    Parameters
    ----------
    port : Port
        The serial port.
    baud : float
        Rate [bit/s].
    latency : float
        Latency of adapter and system [s].
    parser : PacketParser
        Finds the replies in the received bytes.

    Attributes
    ----------
    byte_time : float
        Time [s] of a byte on the wire.

    """

    def __init__(self, port: Port, baud: float, latency: float, parser: PacketParser[Any]) -> None:
        self.port, self.latency = port, latency
        self.byte_time = 10.0 / baud
        self._parser = parser

    @abstractmethod
    def read(self, ids: Collection[int], register: Register) -> dict[int, int]:
        """Return a register of several motors, by id; motors without a reply are omitted."""

    @abstractmethod
    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Write a value to each motor; none replies."""

    def read_registers(self, register: Register, ids: Collection[int]) -> dict[int, int]:
        """Return a register by id, after MAX_ATTEMPTS at most."""
        values: dict[int, int] = {}
        for _ in range(MAX_ATTEMPTS):
            values |= self.read(set(ids) - values.keys(), register)
        return values

    def write_registers(
        self, register: Register, values: Mapping[int, int], attempts: int = MAX_ATTEMPTS
    ) -> set[int]:
        """Write a register by id; return the motors where it reads back correctly."""
        confirmed: set[int] = set()
        for _ in range(attempts):
            unconfirmed = {id: value for id, value in values.items() if id not in confirmed}
            self.sync_write(register, unconfirmed)
            read = self.read(unconfirmed, register)
            confirmed |= {id for id, value in read.items() if value == unconfirmed[id]}
        return confirmed

    def _send(self, request: bytes) -> None:
        """Discard what was received before and send ``request``."""
        self._parser.clear()
        self.port.flush()
        self.port.write(request)


class RegisterMotorBus(MotorBus):
    """Motors with the register protocol on one serial port.

    Parameters
    ----------
    motors : Sequence[JointMotor]
        Motors of the joints.
    settings : Mapping[str, str]
        ``port``, the path of the serial device, and those of ``parameters``. Others are ignored.
    port : Port, optional
        Replaces the serial port.

    Raises
    ------
    ConfigError
        A setting is not a number or out of its range, or the path is missing.

    Attributes
    ----------
    driver, example_port : str
        Name of the driver and path of a serial device, for messages.
    parameters : tuple of Parameter
        Settings in addition to ``port``, with ``baud`` [bit/s] and ``latency`` [s].

    """

    driver: ClassVar[str]
    example_port: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]

    def __init__(
        self, motors: Sequence[JointMotor], settings: Mapping[str, str], port: Port | None = None
    ) -> None:
        super().__init__(motors, settings)
        self._values = self.read_settings(settings)
        self._port = port or self.serial_port(settings)(round(self._values["baud"]))

    @property
    def remedies(self) -> str:
        """Remedies if motors do not reply, or too late."""
        baud, latency = self._values["baud"], self._values["latency"]
        return (
            f"check power, cable, motor ids and baud = {baud:.0f} bit/s (a scan finds both);"
            f" if replies come late, raise latency = {latency:g} s"
        )

    def now(self) -> float:
        """Return the time [s] on the port's monotonic clock."""
        return self._port.now()

    def close(self) -> None:
        """Release the port; never raises, may be called twice, from another thread too."""
        self._port.close()

    @classmethod
    def read_settings(cls, settings: Mapping[str, str]) -> dict[str, float]:
        """Return the values of ``parameters``; raises ConfigError if one is out of range."""
        names = [parameter.name for parameter in cls.parameters]
        numbers: dict[str, Any] = {name: settings[name] for name in names if name in settings}
        try:
            return with_defaults(f"driver '{cls.driver}'", cls.parameters, numbers)
        except InvalidValue as error:
            raise ConfigError(str(error)) from error

    @classmethod
    def serial_port(cls, settings: Mapping[str, str]) -> Callable[[int], Port]:
        """Return a callable that creates the serial port of ``settings`` for a rate [bit/s].

        Raises ConfigError if the path is missing.
        """
        if not settings.get("port"):
            raise ConfigError(
                f"driver '{cls.driver}': port is missing; expected a path: port:={cls.example_port}"
            )
        return partial(SerialPort, settings["port"])


def scan_rates(
    port: Callable[[int], Port],
    bauds: Iterable[int],
    scan: Callable[[Port, int], Iterable[DiscoveredMotor]],
) -> list[DiscoveredMotor]:
    """Return what ``scan`` finds at each of the rates, with the port open.

    Parameters
    ----------
    port : callable
        Creates a port for a rate, for example ``partial(SerialPort, "/dev/ttyUSB0")``.
    bauds : Iterable[int]
        Rates [bit/s].
    scan : callable
        Returns the motors that reply on an open port at a rate.

    Returns
    -------
    list of DiscoveredMotor
        Motors in the order of the rates.

    Raises
    ------
    DriverFault
        The port cannot be opened.

    """
    motors: list[DiscoveredMotor] = []
    for baud in bauds:
        opened = port(baud)
        opened.open()
        try:
            motors += scan(opened, baud)
        finally:
            opened.close()
    return motors
