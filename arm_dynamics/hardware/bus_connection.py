"""Connection to a motor bus that may be lost and restored; nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import ParamSpec, TypeVar

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.motor_bus import MotorBus

P = ParamSpec("P")
T = TypeVar("T")

CLOSE_TIMEOUT = 2.0
"""Longest time [s] that a close waits for another thread on the bus."""


class BusConnection:
    """Open a bus completely or not at all.

    The thread that uses the bus holds ``lock``: no command may follow a torque off, and no reply be
    taken for that to another request.

    Attributes
    ----------
    lost_reason : str
        Why the connection is lost; "" while it is not.
    opened : bool
        Whether motors may receive what is sent.

    """

    def __init__(self, bus: MotorBus, interface: str, reconnect_period: float) -> None:
        self.bus = bus
        self.interface = interface
        self.reconnect_period = reconnect_period
        self.lost_reason = ""
        self.opened = False
        self._next_attempt = 0.0
        self.lock = RLock()  # reentrant: a signal handler may interrupt its own thread

    @contextmanager
    def final_lock(self) -> Iterator[None]:
        """Hold ``lock``; after CLOSE_TIMEOUT continue without it, in case a thread hangs."""
        acquired = self.lock.acquire(timeout=CLOSE_TIMEOUT)
        try:
            yield
        finally:
            if acquired:
                self.lock.release()

    def open(self, torque_on_ids: Collection[int] = ()) -> None:
        """Open the bus, check every motor, disable torque.

        Motors of ``torque_on_ids`` had torque when the connection was lost. Their torque is
        disabled before anything is checked, so that a missing motor does not keep the others on.
        Raises DriverFault, with the port closed again.
        """
        try:
            self.bus.open()
            self.opened = True
            if torque_on_ids:
                self.bus.disable(torque_on_ids)
            self.bus.identify()
            self.bus.prepare(self.interface)
        except Exception as error:
            self.close()
            raise as_driver_fault(error) from error
        self.lost_reason = ""

    def call(self, method: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return what the method returns; any error means a lost connection: DriverFault."""
        try:
            return method(*args, **named)
        except Exception as error:
            self.mark_lost(error)
            raise as_driver_fault(error) from error

    def mark_lost(self, error: Exception) -> None:
        """Close the bus; the next attempt is ``reconnect_period`` away."""
        self.lost_reason = str(error) or type(error).__name__
        self._next_attempt = self.bus.now() + self.reconnect_period
        self.close()

    def reconnect(self, torque_on_ids: Collection[int]) -> None:
        """Open once if an attempt is due; raises DriverFault while the connection is lost."""
        if self.bus.now() < self._next_attempt:
            raise DriverFault(f"connection lost: {self.lost_reason}")
        self._next_attempt = self.bus.now() + self.reconnect_period
        self.open(torque_on_ids)

    def close(self) -> None:
        """Release the port; never raises."""
        self.opened = False
        with suppress(Exception):
            self.bus.close()


def as_driver_fault(error: Exception) -> DriverFault:
    """Return the error itself if it is a DriverFault, else one with its name."""
    if isinstance(error, DriverFault):
        return error
    return DriverFault(f"{type(error).__name__}: {error}")
