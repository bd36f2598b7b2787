"""The life of a physical arm: opened, reading, active, stopped, lost and back."""

from __future__ import annotations

from abc import abstractmethod

from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.hardware.activation import MAX_ATTEMPTS, Activation
from arm_dynamics.hardware.bus_connection import as_driver_fault
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.driver_components import CLOSED, DriverComponents
from arm_dynamics.hardware.feedback_buffer import Q
from arm_dynamics.safety.events import Trip

MAX_RESET_READINGS = 5
"""Readings that a reset waits for good news: a motor may miss a cycle, and tell its old fault."""
MAX_TORQUE_OFF_ATTEMPTS = 10
"""How often torque off is asked for before a port is released; watchdogs do the rest."""


class DriverLifecycle(DriverComponents):
    """Every change of life, around the cycle that ``MotorBusDriver`` adds."""

    def configure(self) -> None:
        """Open the port, check every motor, torque off; nothing moves."""
        with self._link.lock:
            if self.status is DriverState.UNCONFIGURED:
                self._closed = False
                warm_up()  # up to a minute on a new machine: long before torque
                if self.timing is not None:
                    self._fit_gains()
                self._link.open(self._ids if self.emergency_stopped else ())
                self._begin_reading()

    def activate(self) -> None:
        """Torque on where the arm stands; raises DriverFault, torque off, saying why not."""
        with self._link.lock:
            if self.status is not DriverState.ACTIVE:
                self._require_free()
                self._fit_gains()
                self._take_up()

    def deactivate(self) -> None:
        """Torque off; reading goes on.

        Raises DriverFault naming motors that have not confirmed it; they go on being asked.
        """
        with self._link.lock:
            if self.status not in CLOSED:
                self._confirm_off()

    def controlled_stop(self) -> None:
        """Let the stop policy act until ``reset``."""
        if self.status.torque_enabled:
            self._trip(Trip("controlled_stop", "", 0, 0, "", self.bus.now()))

    def emergency_stop(self, source: str) -> None:
        """Latch: torque off from the next cycle on, until ``reset``; from any thread."""
        self._button.engage(source)

    def reset(self) -> None:
        """Release what is latched, torque off; raises DriverFault naming what still holds.

        An active arm has nothing to release: it keeps its torque.
        """
        with self._link.lock:
            if self.status is not DriverState.ACTIVE or self.emergency_stopped:
                self._reset()

    def _reset(self) -> None:
        if self.status in CLOSED:
            raise DriverFault(f"not reset: the arm is {self.status.value} {self._link.lost_reason}")
        press = self._button.press
        self._obey_button()
        self._confirm_off()
        cleared = set[int]()
        for _ in range(MAX_RESET_READINGS):
            still = self._still_wrong()
            said = zip(self._ids, self.feedback.fault, strict=True)
            tripped = {id for id, word in said if word} - cleared
            if tripped:
                self._call(self.bus.clear_faults, sorted(tripped))
                cleared |= tripped
            elif not still:
                break
        if still:
            raise DriverFault("not reset: " + "; ".join(str(trip) for trip in still))
        if not self._button.release(press):
            raise DriverFault("not reset: the emergency stop was pressed again")
        self._trips.clear()

    def _still_wrong(self) -> list[Trip]:
        """What one more reading says that no reset can clear."""
        self._read()
        now, told = self.bus.now(), self.feedback
        found = self._judgement.check_limits(now, told.q, told.v, told.temperature)
        hot = [trip for trip in found if trip.kind == "temperature"]
        return self._judgement.check_faults(now, told.fault) + hot

    @abstractmethod
    def _read(self) -> State:
        """Read every motor once; unlike ``read`` it is no cycle of the host."""

    def close(self) -> None:
        """Torque off as far as the port lets, then release it; counts what is not confirmed."""
        self._closed = True
        with self._link.final_lock():
            try:
                self._let_go()
            except Exception as error:
                self.events.report("close_failed", f"torque may be on: {error}")
            self._link.close()
            self._lose_sight()
            self.status = DriverState.UNCONFIGURED

    def _let_go(self) -> None:
        """The last words to the motors: torque off, over a port that may be back again too."""
        if self.status is DriverState.ERROR:
            self.bus.open()
        elif not self._link.opened:
            return
        self._off.request(self._ids)
        self._off.until_confirmed(self.bus.disable, MAX_TORQUE_OFF_ATTEMPTS)
        if self._off.pending:
            raise DriverFault(f"torque off is not confirmed by {self._unconfirmed()}")

    def _take_up(self) -> None:
        """Torque on, and every part begins anew."""
        parts = (self.bus, self._senses, self._limits, self._off, self._button)
        try:
            Activation(*parts).run(self._asked)
        except Exception as error:
            self.events.report("activation_refused", str(error))
            raise as_driver_fault(error) from error
        self._trips.clear()
        self._judgement.restart(self._senses.table[Q])
        self._good, self._sent = 0, self.bus.now()
        self._swinging.restart(self._sent)
        self._settling.restart(self._sent)
        self._obey_anew()

    def _obey_anew(self) -> None:
        """Hold the arm where it is until the first command of whoever begins anew."""
        self._watch.restart()
        self._stop = None
        self.command_epoch += 1
        self.status = DriverState.UNCONFIGURED if self._closed else DriverState.ACTIVE

    def _confirm_off(self) -> None:
        self._off.request(self._ids)
        self._call(self._off.until_confirmed, self.bus.disable, MAX_ATTEMPTS)
        if self._off.pending:
            said = f"torque off is not confirmed by {self._unconfirmed()}"
            raise DriverFault(f"{said}; {self.bus.remedies}")
        self.status, self._stop = DriverState.INACTIVE, None

    def _require_free(self) -> None:
        """Raises DriverFault saying what stands against an activation."""
        if self.status is not DriverState.INACTIVE:
            raise DriverFault(
                f"not activated: the arm is {self.status.value} {self._link.lost_reason}"
            )
        latched = "; ".join(str(trip) for trip in self._trips.latched)
        if latched or self.emergency_stopped:
            raise DriverFault(f"not activated before a reset: {latched or self._button.source}")
        if self._off.pending:
            raise DriverFault(
                f"not activated: torque off is not confirmed by {self._unconfirmed()}"
            )

    def _unconfirmed(self) -> str:
        names = [motor.joint for motor in self.wiring if motor.id in self._off.pending]
        return f"joints {', '.join(names)}"
