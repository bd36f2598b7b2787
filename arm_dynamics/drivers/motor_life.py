"""The life of a physical arm: opened, reading, active, stopped, lost and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from arm_dynamics.drivers.activation import TRIES, Activation
from arm_dynamics.drivers.base import Driver
from arm_dynamics.drivers.bus_link import BusLink, as_fault
from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.drivers.senses import Q, Senses, V
from arm_dynamics.drivers.shaft_map import ShaftMap
from arm_dynamics.drivers.status import Status
from arm_dynamics.errors import ConfigError, DriverFault
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.wiring import MotorWiring, read_wiring
from arm_dynamics.safety.emergency_stop import EmergencyStop, TorqueOff
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.judgement import Judgement
from arm_dynamics.safety.limits import Limits
from arm_dynamics.safety.settings import SafetySettings
from arm_dynamics.safety.stop_policy import Stop, begin_stop, require_policy
from arm_dynamics.safety.trips import Trip, Trips
from arm_dynamics.safety.watch import CommandWatch
from arm_dynamics.state import State

T = TypeVar("T")
LAST_TRIES = 3
"""How often torque off is asked for before a port is released; watchdogs do the rest."""
CLOSED = (Status.UNCONFIGURED, Status.ERROR)


class MotorLife(Driver):
    """Every state of life and every way between two, around the cycle that ``MotorArm`` adds."""

    def __init__(
        self,
        arm: ArmModel,
        bus: MotorBus,
        *,
        wiring: Sequence[MotorWiring] | None = None,
        interface: str = "effort",
        safety: SafetySettings = SafetySettings(),  # noqa: B008  # frozen
        events: Events | None = None,
    ) -> None:
        super().__init__(arm)
        self.bus, self.interface, self.safety = bus, interface, safety
        self.wiring = tuple(read_wiring(arm).motors if wiring is None else wiring)
        self.events = events or Events()
        self.status = Status.UNCONFIGURED
        self.also = (interface,)
        self._shafts = ShaftMap(arm, self.wiring, bus, interface)
        self.capabilities = self._shafts.capabilities
        """What each joint takes and tells."""
        self._ids = self._shafts.ids
        self._asked = "effort" if interface == "voltage" else interface
        require_policy(safety.policy, self._asked)
        _require_able(arm, self._asked)
        self._link = BusLink(bus, self._shafts.interface, safety.reopen_period)
        self._limits, self._judgement = Limits(arm, safety), Judgement(arm, safety)
        timeout = safety.command_timeout
        self._watch = CommandWatch(arm, timeout, self.events, also=self.also, stop=self._hold)
        self._trips, self._button, self._off = Trips(self.events), EmergencyStop(), TorqueOff()
        self._stop: Stop | None = None
        self._good, self._sent, self._closed = 0, 0.0, False
        self._senses = Senses(self._shafts, safety)
        self.feedback = self._senses.feedback(0.0)
        """What the motors told last."""

    @property
    def trips(self) -> tuple[Trip, ...]:
        """What has tripped and still holds, newest last."""
        return tuple(self._trips)

    @property
    def engaged(self) -> bool:
        """Whether the emergency stop is latched."""
        return self._button.engaged

    def configure(self) -> None:
        """Open the port, check every motor, torque off; nothing moves."""
        if self.status is Status.UNCONFIGURED:
            self._closed = False
            self._link.open()
            self._begin_reading()

    def activate(self) -> None:
        """Torque on where the arm stands; raises DriverFault, torque off, saying why not."""
        if self.status is Status.ACTIVE:
            return
        self._require_free()
        try:
            parts = (self.bus, self._senses, self._limits, self._off, self._button)
            Activation(*parts).run(self._asked)
        except Exception as error:
            self.events.report("activation_refused", str(error))
            raise as_fault(error) from error
        self._trips.clear()
        self._watch.restart()
        self._judgement.restart()
        self._good, self._sent, self._stop = 0, self.bus.now(), None
        self.status = Status.UNCONFIGURED if self._closed else Status.ACTIVE

    def deactivate(self) -> None:
        """Torque off; reading goes on.

        Raises DriverFault naming motors that have not confirmed it; they go on being asked.
        """
        if self.status not in CLOSED:
            self._confirm_off()

    def safe_stop(self) -> None:
        """Let the stop policy act until ``reset``."""
        if self.status.drives:
            self._trip(Trip("safe_stop", "", 0, 0, "", self.bus.now()))

    def emergency_stop(self, source: str) -> None:
        """Latch: torque off from the next cycle on, until ``reset``; from any thread."""
        self._button.engage(source)

    def reset(self) -> None:
        """Release what is latched, torque off; raises DriverFault naming what still holds."""
        if self.status in CLOSED:
            raise DriverFault(f"not reset: the arm is {self.status.value} {self._link.gone}")
        presses = self._button.presses
        self._obey_button()
        self._confirm_off()
        tripped = [id for id, word in zip(self._ids, self.feedback.fault, strict=True) if word]
        if tripped:
            self._call(self.bus.clear_faults, tripped)
        self.read()
        now, told = self.bus.now(), self.feedback
        still = self._judgement.faults(now, told.fault)
        found = self._judgement.limits(now, told.q, told.v, told.temperature)
        still += [trip for trip in found if trip.kind == "temperature"]
        if still:
            raise DriverFault("not reset: " + "; ".join(str(trip) for trip in still))
        if not self._button.release(presses):
            raise DriverFault("not reset: the emergency stop was pressed again")
        self._trips.clear()

    def close(self) -> None:
        """Torque off as far as the port lets, then release it."""
        try:
            if self.status.drives or self._off.pending:
                self._off.ask(self._ids)
                self._off.until_confirmed(self.bus.disable, LAST_TRIES)
        except Exception as error:
            self.events.report("close_failed", str(error))
        self._closed = True
        self._link.close()
        self.status = Status.UNCONFIGURED

    def _confirm_off(self) -> None:
        self._off.ask(self._ids)
        self._call(self._off.until_confirmed, self.bus.disable, TRIES)
        if self._off.pending:
            raise DriverFault(f"torque off is not confirmed by {self._unconfirmed()}")
        self.status, self._stop = Status.INACTIVE, None

    def _switch_off(self) -> None:
        if self.status in CLOSED:
            return  # opening the port switches torque off first of all
        self._call(self._off.cycle, self.bus.disable)
        if not self._off.pending:
            self.status, self._stop = Status.INACTIVE, None

    def _obey_button(self) -> None:
        if self._button.engaged and not self._button.seen:
            self._button.seen = True
            self._off.ask(self._ids)
            source = self._button.source
            self._trip(Trip("emergency_stop", "", 0, 0, "", self.bus.now(), source))

    def _trip(self, trip: Trip) -> None:
        self._trips.add(trip)
        if self.status is Status.ACTIVE:
            self.status = Status.STOPPED
            self._stop = self._begin(self.safety.policy, self._believed(trip.time))
            if self.safety.policy == "disable":
                self._off.ask(self._ids)

    def _begin(self, policy: str, state: State) -> Stop:
        return begin_stop(policy, self._asked, self.arm, state, self._limits.last)

    def _hold(self, state: State) -> Stop:
        """What the watch does before the first command."""
        return self._begin("hold", state)

    def _believed(self, now: float) -> State:
        """The last known state; silent joints are where the stop means them to be."""
        q, v = self._senses.table[Q], self._senses.table[V]
        silent = self._senses.freshness.silent
        if self._stop is not None and not self._senses.freshness.complete:
            path, speed = self._stop.path(now)
            q, v = np.where(silent, path, q), np.where(silent, speed, v)
        return State(now, q, v, self._limits.last)

    def _require_open(self) -> None:
        """Raises DriverFault while nothing is open; a lost port is tried when it is time to."""
        if self.status is Status.UNCONFIGURED:
            raise DriverFault("nothing is open: configure comes first")
        if self.status is Status.ERROR:
            self._link.reopen()
            self._begin_reading()
            self.events.report("reopened", "the port is back: torque is off until it is activated")

    def _require_free(self) -> None:
        """Raises DriverFault saying what stands against an activation."""
        if self.status is not Status.INACTIVE:
            raise DriverFault(f"not activated: the arm is {self.status.value} {self._link.gone}")
        latched = "; ".join(str(trip) for trip in self._trips.latched)
        if latched or self.engaged:
            raise DriverFault(f"not activated before a reset: {latched or self._button.source}")
        if self._off.pending:
            raise DriverFault(
                f"not activated: torque off is not confirmed by {self._unconfirmed()}"
            )

    def _begin_reading(self) -> None:
        self._senses = Senses(self._shafts, self.safety)
        self.feedback = self._senses.feedback(self.bus.now())
        self._trips.pass_by()
        self.status = Status.INACTIVE

    def _call(self, method: Callable[..., T], *args: object) -> T:
        """A method of the bus; raises DriverFault, and the arm is in ERROR, where it is lost."""
        try:
            return self._link.call(method, *args)
        except DriverFault as error:
            if self._closed:  # by another thread: that is no loss
                self.status = Status.UNCONFIGURED
                raise
            self.status, self._stop = Status.ERROR, None
            self._trips.add(Trip("port", "", 0, 0, "", self.bus.now(), str(error)))
            raise

    def _unconfirmed(self) -> str:
        names = [motor.joint for motor in self.wiring if motor.id in self._off.pending]
        return f"joints {', '.join(names)}"


def _require_able(arm: ArmModel, interface: str) -> None:
    """Raises ConfigError for efforts on joints whose actuators have none to give."""
    for actuator in arm.actuators:
        if interface == "effort" and actuator.prescribes:
            raise ConfigError(
                f"joint '{actuator.joint}': its actuator goes where it is told and takes no effort;"
                f" allowed: {', '.join(actuator.interfaces)}"
            )
