"""Diagnostics of an arm and its joints, physical or simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, isnan

from diagnostic_msgs.msg import DiagnosticStatus

from arm_dynamics.core.timing import Pacer, RateMeter, RoundTrip
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.ros.diagnostics import (
    ERROR,
    OK,
    STOPPED,
    TEMPERATURE,
    VOLTAGE,
    WARN,
    StatusReport,
    event_values,
    status,
)
from arm_dynamics.ros.hardware_cycle import HardwareCycle
from arm_dynamics.ros.pacing import ClockPacer
from arm_dynamics.ros.simulation_services import SimulationServices
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.equations_of_motion import MotorValues
from arm_dynamics.simulation.simulation import Simulation

LEVELS = {
    DriverState.UNCONFIGURED: WARN,
    DriverState.INACTIVE: OK,
    DriverState.ACTIVE: OK,
    DriverState.STOPPED: ERROR,
    DriverState.ERROR: ERROR,
}
MAX_LATE_FRACTION = 0.05
"""Fraction of late cycles above which diagnostics warn."""
TORQUE = {True: "on", False: "off", None: "unknown"}


class HardwareReport:
    """Diagnostics of the loop, readable from any thread."""

    def __init__(self, events: Events, cycle: HardwareCycle) -> None:
        self._events, self._cycle = events, cycle
        self._rate, self._misses = RateMeter(), RateMeter()

    def summary(self, driver: MotorBusDriver | None, engaged: str, rejection: str) -> StatusReport:
        """``engaged``: source of the emergency stop; ``rejection``: why a transition failed."""
        state = DriverState.UNCONFIGURED if driver is None else driver.status
        trips = () if driver is None else driver.trips
        queue = self._cycle.log.queue if self._cycle.log else None
        late = min(1.0, self._misses.update(self._cycle.pacer.missed) * self._cycle.pacer.period)
        values = {
            "state": state.value,
            "emergency stop": engaged or "released",
            "commands per second": f"{self._rate.update(self._cycle.commands):.0f}",
            "round trip p50 / p99 [ms]": self._cycle.round_trip.summary(),
            "deadlines missed": f"{self._cycle.pacer.missed}, {late:.0%} of the last",
            **({"last rejected transition": rejection} if rejection else {}),
            **{f"trip {i}": str(trip) for i, trip in enumerate(trips, 1)},
            **(queue.values() if queue else {}),
            **event_values(self._events),
        }
        if engaged:
            return ERROR, f"{STOPPED} {engaged}", values
        if state is DriverState.ERROR and self._cycle.fault:
            return ERROR, f"error: {self._cycle.fault}", values
        if trips:
            more = f", and {len(trips) - 1} more" if len(trips) > 1 else ""
            latched = any(not trip.self_clearing for trip in trips)
            remedy = "; reset, then activate" if latched else ""
            return ERROR, f"{state.value}: {trips[0]}{more}{remedy}", values
        trouble = "; ".join(filter(None, (self._cycle.conflict, queue.trouble if queue else "")))
        if trouble:
            return WARN, f"{state.value}; {trouble}", values
        if late > MAX_LATE_FRACTION:
            return WARN, f"{state.value}; {late:.0%} of the cycles are late", values
        return LEVELS[state], state.value, values

    def joints(self, name: str, driver: MotorBusDriver | None) -> Sequence[DiagnosticStatus]:
        """Return one status per joint of the node ``name``: motor feedback and its age."""
        if driver is None or driver.status is DriverState.UNCONFIGURED:
            return ()
        statuses, feedback = [], driver.feedback
        for i, joint in enumerate(driver.arm.joint_names):
            values = {
                "age [s]": f"{feedback.age[i]:.3f}",
                "position [rad]": f"{feedback.q[i]:.4f}",
                "temperature [°C]": f"{feedback.temperature[i]:.0f}",
                "supply [V]": f"{feedback.supply[i]:.1f}",
                "torque": TORQUE[feedback.enabled[i]],
                "fault": feedback.fault[i] or "none",
                "effort": driver.capabilities[i].effort_source,
            }
            trouble = [str(trip) for trip in driver.trips if trip.joint == joint]
            if not trouble and feedback.fault[i]:
                trouble = [feedback.fault[i]]
            if not trouble and not isfinite(feedback.q[i]):
                trouble = [f"no feedback for {feedback.age[i]:.3f} s"]
            level = ERROR if trouble else OK
            statuses.append(status(f"{name}: {joint}", level, "; ".join(trouble) or "OK", values))
        return statuses


class SimulationReport:
    """Diagnostics of the loop, readable from any thread.

    ``post`` runs a function in the loop's thread, the only one that may use the plant.
    """

    def __init__(
        self,
        simulation: Simulation,
        control: SimulationServices,
        pacer: Pacer | ClockPacer,
        round_trip: RoundTrip,
        post: Callable[[Callable[[], object]], None],
        *,
        lockstep: bool,
    ) -> None:
        self._simulation, self._control, self._post = simulation, control, post
        self._pacer, self._round_trip, self._lockstep = pacer, round_trip, lockstep
        self._factor, self._commands = RateMeter(), RateMeter()
        self._efforts: dict[str, str] = {}
        self._motors: MotorValues | None = None

    def summary(self, stopped_by: str, conflict: str, queue: QueuedBag | None) -> StatusReport:
        """Return the summary of one second.

        ``stopped_by``: source of the emergency stop; ``conflict``: rejected publishers of
        commands; ``queue``: queue of the recording.
        """
        simulation, watch, paused = self._simulation, self._simulation.watch, self._control.paused
        self._post(self._note_efforts)
        values = {
            "simulated time [s]": f"{simulation.state.time:.3f}",
            "real-time factor": f"{self._factor.update(simulation.state.time):.3f}",
            "commands per second": f"{self._commands.update(watch.accepted):.0f}",
            "round trip p50 / p99 [ms]": self._round_trip.summary(),
            "lockstep": str(self._lockstep).lower(),
            "deadlines missed": str(self._pacer.missed),
            "paused": str(paused).lower(),
            **(queue.values() if queue else {}),
            **self._efforts,
            **event_values(watch.events),
        }
        trouble = "paused" if paused else "controlled stop" if watch.stopping else ""
        trouble = "; ".join(filter(None, (trouble, conflict, queue.trouble if queue else "")))
        if stopped_by:
            return ERROR, f"{STOPPED} {stopped_by}", values
        return not trouble, trouble or "running", values

    def joints(self, name: str) -> Sequence[DiagnosticStatus]:
        """Return one status per joint of the node ``name``: voltage and temperature, if any."""
        motors, names = self._motors, self._simulation.arm.joint_names
        if motors is None:
            return ()
        statuses = []
        for joint, voltage, temperature in zip(
            names, motors.voltage, motors.temperature, strict=True
        ):
            values = {} if isnan(voltage) else {VOLTAGE: f"{voltage:.3f}"}
            values |= {} if isnan(temperature) else {TEMPERATURE: f"{temperature:.2f}"}
            statuses.append(status(f"{name}: {joint}", OK, "simulated", values))
        return statuses

    def _note_efforts(self) -> None:
        self._motors = self._simulation.motors()
        efforts = self._simulation.efforts()
        if efforts:
            names = self._simulation.arm.joint_names
            self._efforts = {
                f"{name} effort computed / applied [N·m]": f"{computed:.4g} / {applied:.4g}"
                for name, computed, applied in zip(
                    names, efforts.computed, efforts.applied, strict=True
                )
            }
