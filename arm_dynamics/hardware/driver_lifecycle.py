"""Lifecycle of a physical arm: its state, its bus connection and the torque of its motors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import ParamSpec, TypeVar

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.timing import PeriodMeter
from arm_dynamics.hardware.activation import MAX_ATTEMPTS, Activation
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.feedback_buffer import FeedbackBuffer
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.emergency_stop import (
    EmergencyStopLatch,
    TorqueOffRequest,
    motors_with_torque,
)
from arm_dynamics.safety.events import Events, Trip, Trips

P = ParamSpec("P")
T = TypeVar("T")
MAX_TORQUE_OFF_ATTEMPTS = 10
"""Requests to disable torque before the port is released; then watchdogs must do it."""
CLOSE_TIMEOUT = 2.0
"""Longest time [s] that a close waits for another thread on the bus."""
CLOSED = (DriverState.UNCONFIGURED, DriverState.ERROR)


class DriverLifecycle:
    """State transitions of the motors on one bus.

    ==============  =====================================  =================================
    transition      from -> to                             method
    ==============  =====================================  =================================
    configure       UNCONFIGURED -> INACTIVE               ``open``
    activate        INACTIVE -> ACTIVE                     ``enable_torque``
    trip            ACTIVE -> STOPPED                      ``stop``
    recovery        STOPPED -> ACTIVE                      ``execute_commands``
    deactivate      ACTIVE, STOPPED -> INACTIVE            ``confirm_torque_off``
    loss            any but UNCONFIGURED -> ERROR          ``call``
    reconnection    ERROR -> INACTIVE                      ``require_open``
    close           any -> UNCONFIGURED                    ``close``
    ==============  =====================================  =================================

    Attributes
    ----------
    state : DriverState
        The present state.
    emergency_stop : EmergencyStopLatch
        Latched from any thread.
    torque_off : TorqueOffRequest
        Motors that have not confirmed yet that torque is disabled.
    closing : bool
        Whether ``close`` was called, perhaps by another thread.

    """

    def __init__(
        self, transmission: Transmission, bus: MotorBus, reconnect_period: float,
        feedback: FeedbackBuffer, period: PeriodMeter, trips: Trips, events: Events,
    ) -> None:  # fmt: skip
        self.bus = bus
        self.connection = BusConnection(bus, transmission.interface, reconnect_period)
        self._transmission, self._ids = transmission, transmission.ids
        self._feedback, self._period = feedback, period
        self._trips, self._events = trips, events
        self.state = DriverState.UNCONFIGURED
        self.emergency_stop, self.torque_off = EmergencyStopLatch(), TorqueOffRequest()
        self.closing = False

    @property
    def lock(self) -> RLock:
        """Lock of the bus, held for each control cycle and each transition."""
        return self.connection.lock

    def call(self, method: Callable[..., T], *args: object) -> T:
        """Return what a method of the bus returns; on an error the state becomes ERROR.

        Raises
        ------
        DriverFault
            The connection is lost.

        """
        try:
            return self.connection.call(method, *args)
        except DriverFault as error:
            if self.closing:  # closed by another thread: no fault
                self.state = DriverState.UNCONFIGURED
                raise
            self.state = DriverState.ERROR
            self._discard_measurements()
            self._trips.add(Trip("connection_lost", "", 0, 0, "", self.bus.now(), str(error)))
            raise

    def open(self) -> None:
        """Open the port, check every motor and disable torque; raises DriverFault."""
        # after an emergency stop torque is disabled first: a motor may be missing
        self.connection.open(self._ids if self.emergency_stop.engaged else ())
        self._start_reading()

    def require_open(self) -> None:
        """Reconnect if that is due; raises DriverFault while nothing is open."""
        if self.state is DriverState.UNCONFIGURED:
            raise DriverFault("driver: state = unconfigured; expected configured; call configure")
        if self.state is DriverState.ERROR:
            self.connection.reconnect(self._ids)
            self._start_reading()
            self._events.report(
                "reconnected", "connection restored; torque is disabled until the next activation"
            )

    def require_inactive(self) -> None:
        """Raise DriverFault with the reason why the arm cannot be activated."""
        if self.state is not DriverState.INACTIVE:
            raise DriverFault(f"not activated: the arm is {self._description}")
        latched = "; ".join(str(trip) for trip in self._trips.latched)
        if latched or self.emergency_stop.engaged:
            source = self.emergency_stop.source
            raise DriverFault(f"not activated before a reset: {latched or source}")
        if self.torque_off.pending:
            raise DriverFault(f"not activated: {self._unconfirmed}")

    def enable_torque(
        self, limiter: CommandLimiter, interface: str, between: Callable[[], object]
    ) -> None:
        """Enable torque at the measured configuration; raises DriverFault, torque disabled."""
        latches = self.torque_off, self.emergency_stop
        try:
            Activation(
                self.bus, self._transmission, self._feedback, limiter, *latches, between
            ).run(interface)
        except Exception as error:
            self._events.report("activation_rejected", str(error))
            raise as_driver_fault(error) from error

    def execute_commands(self) -> None:
        """Execute commands from now on."""
        self.state = DriverState.UNCONFIGURED if self.closing else DriverState.ACTIVE

    def stop(self) -> bool:
        """Stop executing commands; return whether they were executed."""
        active = self.state is DriverState.ACTIVE
        if active:
            self.state = DriverState.STOPPED
        return active

    def request_torque_off(self, enabled: Iterable[bool | None] | None = None) -> None:
        """Request to disable the torque of all motors, or of those that report torque."""
        if enabled is None:
            self.torque_off.request(self._ids)
        else:
            by_id = dict(zip(self._ids, enabled, strict=True))
            self.torque_off.request(motors_with_torque(by_id))

    def send_torque_off(self) -> None:
        """Send the pending request once; the state becomes INACTIVE when all have confirmed."""
        if self.state not in CLOSED:  # opening the port disables torque first
            self.call(self.torque_off.send, self.bus.disable)
            if not self.torque_off.pending:
                self.state = DriverState.INACTIVE

    def confirm_torque_off(self) -> None:
        """Disable torque; raises DriverFault naming the motors that do not confirm."""
        self.request_torque_off()
        self.call(self.torque_off.until_confirmed, self.bus.disable, MAX_ATTEMPTS)
        if self.torque_off.pending:
            raise DriverFault(f"{self._unconfirmed}; {self.bus.remedies}")
        self.state = DriverState.INACTIVE

    def require_not_closed(self) -> None:
        """Raise DriverFault if nothing is open that could be reset."""
        if self.state in CLOSED:
            raise DriverFault(f"not reset: the arm is {self._description}")

    def clear_faults(self, ids: Collection[int]) -> None:
        """Clear the faults of motors."""
        self.call(self.bus.clear_faults, sorted(ids))

    def close(self) -> None:
        """Disable torque as far as possible and release the port; from any thread."""
        self.closing = True
        with self.connection.final_lock():
            try:
                lost = self.state is DriverState.ERROR
                if lost:
                    self.bus.open()  # the port may be back
                if lost or self.connection.opened:
                    self.request_torque_off()
                    self.torque_off.until_confirmed(self.bus.disable, MAX_TORQUE_OFF_ATTEMPTS)
                    if self.torque_off.pending:
                        raise DriverFault(self._unconfirmed)
            except Exception as error:
                self._events.report("close_failed", f"torque may be enabled: {error}")
            self.connection.close()
            self._discard_measurements()
            self.state = DriverState.UNCONFIGURED

    def _start_reading(self) -> None:
        if self.closing:  # closed by another thread while the port was being opened
            self.connection.close()
            self.state = DriverState.UNCONFIGURED
            raise DriverFault("driver closed while it was being opened")
        self._discard_measurements()
        self._trips.clear_self_clearing()
        self.state = DriverState.INACTIVE

    def _discard_measurements(self) -> None:
        self._period.reset()
        self._feedback.reset()

    @property
    def _description(self) -> str:
        return f"{self.state.value} {self.connection.lost_reason}".strip()

    @property
    def _unconfirmed(self) -> str:
        pending = self.torque_off.pending
        names = [motor.joint for motor in self._transmission.motors if motor.id in pending]
        return f"torque off is not confirmed by joints {', '.join(names)}"


class BusConnection:
    """Connection to a motor bus that may be lost and restored; open completely or not at all.

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
            self.bus.discover()
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
