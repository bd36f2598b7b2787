"""A bus that may be gone and come back: opened again now and then, never waited for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.errors import DriverFault

P = ParamSpec("P")
T = TypeVar("T")


class BusLink:
    """Opens a bus whole or not at all; ``gone`` says why it is lost, "" while it is not."""

    def __init__(self, bus: MotorBus, interface: str, period: float) -> None:
        self.bus = bus
        self.interface = interface
        self.period = period
        self.gone = ""
        self._next = 0.0

    def open(self) -> None:
        """Open, check every motor, torque off; raises DriverFault with the port closed again."""
        try:
            self.bus.open()
            self.bus.identify()
            self.bus.prepare(self.interface)
        except Exception as error:
            self.close()
            raise as_fault(error) from error
        self.gone = ""

    def call(self, method: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """A method's answer; an error, raised on as a DriverFault, means that the bus is lost."""
        try:
            return method(*args, **named)
        except Exception as error:
            self.lose(error)
            raise as_fault(error) from error

    def lose(self, error: Exception) -> None:
        """Close what failed; the next try to open is a period away."""
        self.gone = str(error) or type(error).__name__
        self._next = self.bus.now() + self.period
        self.close()

    def reopen(self) -> None:
        """Try once if it is time to; raises DriverFault while the bus stays lost."""
        if self.bus.now() < self._next:
            raise DriverFault(f"lost: {self.gone}")
        self._next = self.bus.now() + self.period
        self.open()

    def close(self) -> None:
        """Release the port; never raises."""
        with suppress(Exception):
            self.bus.close()


def as_fault(error: Exception) -> DriverFault:
    """The error itself when it is a DriverFault, else one that names it."""
    if isinstance(error, DriverFault):
        return error
    return DriverFault(f"{type(error).__name__}: {error}")
