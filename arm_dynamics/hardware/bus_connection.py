"""A bus that may be gone and come back: opened again now and then, never waited for."""

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
"""Longest that a close waits for what another thread does on the bus [s]."""


class BusConnection:
    """Opens a bus whole or not at all; ``lost_reason`` says why it is lost, "" while it is not.

    ``lock`` is held by the one thread that talks on the bus: no goal may follow a torque off, no
    answer be taken for that to another question.
    """

    def __init__(self, bus: MotorBus, interface: str, period: float) -> None:
        self.bus = bus
        self.interface = interface
        self.period = period
        self.lost_reason = ""
        self.opened = False
        """Whether motors may hear what is sent."""
        self._next = 0.0
        self.lock = RLock()  # a signal's handler may interrupt its own thread

    @contextmanager
    def final_lock(self) -> Iterator[None]:
        """As ``lock``; after PATIENCE without regard to a thread that hangs."""
        mine = self.lock.acquire(timeout=CLOSE_TIMEOUT)
        try:
            yield
        finally:
            if mine:
                self.lock.release()

    def open(self, torque_on_ids: Collection[int] = ()) -> None:
        """Open, check every motor, torque off; raises DriverFault with the port closed again.

        Motors that are ``torque_on_ids`` had torque when they were heard last: they are told to switch it
        off before anything is checked, so that one that is missing does not keep the others on.
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
        """A method's answer; an error, raised on as a DriverFault, means that the bus is lost."""
        try:
            return method(*args, **named)
        except Exception as error:
            self.mark_lost(error)
            raise as_driver_fault(error) from error

    def mark_lost(self, error: Exception) -> None:
        """Close what failed; the next try to open is a period away."""
        self.lost_reason = str(error) or type(error).__name__
        self._next = self.bus.now() + self.period
        self.close()

    def reconnect(self, loose: Collection[int]) -> None:
        """Try once if it is time to; raises DriverFault while the bus stays lost."""
        if self.bus.now() < self._next:
            raise DriverFault(f"lost: {self.lost_reason}")
        self._next = self.bus.now() + self.period
        self.open(loose)

    def close(self) -> None:
        """Release the port; never raises."""
        self.opened = False
        with suppress(Exception):
            self.bus.close()


def as_driver_fault(error: Exception) -> DriverFault:
    """The error itself when it is a DriverFault, else one that names it."""
    if isinstance(error, DriverFault):
        return error
    return DriverFault(f"{type(error).__name__}: {error}")
