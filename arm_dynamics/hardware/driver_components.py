"""The parts of a physical arm, and what its cycle and its changes of life share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.bus_connection import BusConnection, as_driver_fault
from arm_dynamics.hardware.driver import Driver, DriverState
from arm_dynamics.hardware.feedback_buffer import FeedbackBuffer, Q, V
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.command_watchdog import CommandWatchdog
from arm_dynamics.safety.controlled_stop import StopMotion, make_stop, require_policy
from arm_dynamics.safety.emergency_stop import EmergencyStopLatch, TorqueOffRequest
from arm_dynamics.safety.events import Events, Trip, Trips
from arm_dynamics.safety.limit_monitor import LimitMonitor
from arm_dynamics.safety.oscillation import OscillationMonitor, Settling
from arm_dynamics.safety.safety_settings import SafetySettings

T = TypeVar("T")
PERIODS = 10
"""Last cycles of the host that its period is measured by."""
ENOUGH = 5
"""Periods that must have been measured before their median is used."""
USUAL = 0.01
"""Control period [s] that is assumed while neither a configured nor a measured one exists."""
CLOSED = (DriverState.UNCONFIGURED, DriverState.ERROR)


class DriverComponents(Driver):
    """Bus, joints, limits, watch, trips and switches of an arm, made and checked once."""

    def __init__(
        self,
        arm: ArmModel,
        bus: MotorBus,
        *,
        wiring: Sequence[JointMotor] | None = None,
        interface: str = "effort",
        safety: SafetySettings = SafetySettings(),  # noqa: B008  # frozen
        events: Events | None = None,
        period: float = 0.0,
    ) -> None:
        """``period`` [s] is the host's configured control period; 0: measured only."""
        super().__init__(arm)
        self._configured = check_float("period [s]", period, lower=0)
        self.bus, self.interface, self.safety = bus, interface, safety
        self.wiring = tuple(read_hardware_info(arm).motors if wiring is None else wiring)
        self.events = events or Events()
        self.status = DriverState.UNCONFIGURED
        self.extra_interfaces = (interface,)
        self._shafts = Transmission(arm, self.wiring, bus, interface)
        self.capabilities = self._shafts.capabilities
        """What each joint takes and tells."""
        self._ids = self._shafts.ids
        self._asked = "effort" if interface == "voltage" else interface
        require_policy(safety.stop_policy, self._asked)
        _require_able(arm, self._asked)
        self._link = BusConnection(bus, self._shafts.interface, safety.reconnect_period)
        self._limits = CommandLimiter(arm, safety, bus.feedback_delay)
        self._judgement = LimitMonitor(arm, safety)
        self._swinging, self._settling = OscillationMonitor(arm, safety), Settling(arm)
        timeout = safety.command_timeout
        self._watch = CommandWatchdog(
            arm, timeout, self.events, also=self.extra_interfaces, stop=self._hold
        )
        self._trips, self._button, self._off = (
            Trips(self.events),
            EmergencyStopLatch(),
            TorqueOffRequest(),
        )
        self._stop: StopMotion | None = None
        self._good, self._sent, self._closed = 0, 0.0, False
        self._reads: deque[float] = deque(maxlen=PERIODS)  # when the last cycles began
        self._reading = 0.0  # time [s] that the last read took
        self._unanswered = 0  # reads since the last write or idle
        self._senses = FeedbackBuffer(self._shafts, safety)
        self.feedback = self._senses.feedback(0.0)
        """What the motors told last."""

    @property
    def trips(self) -> tuple[Trip, ...]:
        """What has tripped and still holds, newest last."""
        return tuple(self._trips)

    @property
    def held(self) -> Vector | None:
        """The position goals sent last, while there is torque; None on other interfaces."""
        holds = self._asked == "position" and self.status.torque_enabled
        return as_readonly(self._limits.last) if holds else None

    @property
    def commanded(self) -> bool:
        """Whether somebody's command is obeyed now."""
        return self.status is DriverState.ACTIVE and self._watch.commanded

    @property
    def emergency_stopped(self) -> bool:
        """Whether the emergency stop is latched."""
        return self._button.engaged

    def _switch_off(self) -> None:
        if self.status in CLOSED:
            return  # opening the port switches torque off first of all
        self._call(self._off.send, self.bus.disable)
        if not self._off.pending:
            self.status, self._stop = DriverState.INACTIVE, None

    def _obey_button(self) -> None:
        if self._button.engaged and not self._button.seen:
            self._button.seen = True
            self._off.request(self._ids)
            source = self._button.source
            self._trip(Trip("emergency_stop", "", 0, 0, "", self.bus.now(), source))

    def _trip(self, trip: Trip) -> None:
        self._trips.add(trip)
        if self.status is DriverState.ACTIVE:
            self.status = DriverState.STOPPED
            self._begin_stop(trip.time)

    def _give_up(self, error: Exception) -> None:
        """Without a command there is no holding on: torque off."""
        self._off.request(self._ids)
        self._trip(Trip("no_command", "", 0, 0, "", self.bus.now(), str(error)))

    def _begin_stop(self, now: float) -> None:
        """The policy's stop; torque off where that is the policy, and where there is no other."""
        self._settling.begin(now)
        try:
            self._stop = self._begin(self.safety.stop_policy, self._believed(now))
        except Exception as error:  # readings that no arm can have
            self.events.report("no_stop", str(error))
            self._off.request(self._ids)
        if self.safety.stop_policy == "disable":
            self._off.request(self._ids)

    def _begin(self, policy: str, state: State) -> StopMotion:
        known = self.timing or self._timed(USUAL)
        timing = known.longer(self._settling.softer)
        return make_stop(policy, self._asked, self.arm, state, self._limits.last, timing)

    @property
    def timing(self) -> LoopTiming | None:
        """Longer of the configured and the measured control period, and the feedback's delay.

        The measured period is the median of the last cycles. None without either.
        """
        gaps = np.diff(self._reads)
        measured = float(np.median(gaps)) if gaps.size >= ENOUGH else 0.0
        period = max(self._configured, measured)
        return self._timed(period) if period else None

    def _timed(self, period: float) -> LoopTiming:
        """With the delay: of new readings about twice the time that reading them takes."""
        delay = self.bus.feedback_delay or min(1.0, 2 * self._reading / period)
        return LoopTiming(period, delay)

    def _fit_gains(self) -> None:
        """Raises DriverFault where the gains of whoever commands the arm are unstable."""
        if self.fit is not None:
            try:
                self.fit(self._senses.table[Q])
            except ArmDynamicsError as error:
                self.events.report("activation_refused", str(error))
                raise as_driver_fault(error) from error

    def _soften(self, now: float) -> None:
        """The next softer stop; torque off where there is none, or nothing that is softer."""
        self._begin_stop(now)
        if self._settling.exhausted or self._asked != "effort":
            self.events.report("torque_off", "no stop calms the arm: it oscillates under each")
            self._off.request(self._ids)

    def _hold(self, state: State) -> StopMotion:
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
        if self.status is DriverState.UNCONFIGURED:
            raise DriverFault("nothing is open: configure comes first")
        if self.status is DriverState.ERROR:
            self._link.reconnect(self._ids)
            self._begin_reading()
            self.events.report("reopened", "the port is back: torque is off until it is activated")

    def _begin_reading(self) -> None:
        if self._closed:  # by another thread, while the port was being opened
            self._link.close()
            self.status = DriverState.UNCONFIGURED
            raise DriverFault("closed while it was being opened")
        self._lose_sight()
        self._trips.clear_self_clearing()
        self.status = DriverState.INACTIVE

    def _tell_doubts(self) -> None:
        """An event for every joint whose reading was held back."""
        for i in np.flatnonzero(self._senses.plausibility.doubted).tolist():
            name, q = self.arm.joint_names[i], self._senses.plausibility.held[i]
            text = f"joint '{name}': a reading of {q:.4g} is not believed before the next one"
            self.events.report("implausible", text)

    def _lose_sight(self) -> None:
        """Nothing is known of the motors, nor of the period: cycles without answers are longer."""
        self._reads.clear()
        self._senses = FeedbackBuffer(self._shafts, self.safety)
        self.feedback = self._senses.feedback(0.0)

    def _call(self, method: Callable[..., T], *args: object) -> T:
        """A method of the bus; raises DriverFault, and the arm is in ERROR, where it is lost."""
        try:
            return self._link.call(method, *args)
        except DriverFault as error:
            if self._closed:  # by another thread: that is no loss
                self.status = DriverState.UNCONFIGURED
                raise
            self.status, self._stop = DriverState.ERROR, None
            self._lose_sight()
            self._trips.add(Trip("port", "", 0, 0, "", self.bus.now(), str(error)))
            raise


def _require_able(arm: ArmModel, interface: str) -> None:
    """Raises ConfigError for efforts on joints whose actuators have none to give."""
    for actuator in arm.actuators:
        if interface == "effort" and actuator.prescribes_motion:
            raise ConfigError(
                f"joint '{actuator.joint}': its actuator goes where it is told and takes no effort;"
                f" allowed: {', '.join(actuator.interfaces)}"
            )
