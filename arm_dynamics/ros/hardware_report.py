"""How a physical arm is doing, as /diagnostics shows it: the arm, and every joint."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from diagnostic_msgs.msg import DiagnosticStatus

from arm_dynamics.core.timing import RateMeter
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.ros.diagnostics import (
    ERROR,
    OK,
    STOPPED,
    WARN,
    StatusReport,
    event_values,
    status,
)
from arm_dynamics.ros.hardware_cycle import HardwareCycle
from arm_dynamics.safety.events import Events, Trip

LEVELS = {
    DriverState.UNCONFIGURED: WARN,
    DriverState.INACTIVE: OK,
    DriverState.ACTIVE: OK,
    DriverState.STOPPED: ERROR,
    DriverState.ERROR: ERROR,
}
LATE = 0.05
"""Share of late cycles that is worth a warning."""
TORQUE = {True: "on", False: "off", None: "unknown"}


class HardwareReport:
    """Words on what the loop does; another thread than the loop's may ask."""

    def __init__(self, events: Events, cycle: HardwareCycle) -> None:
        self._events, self._cycle = events, cycle
        self._rate, self._misses = RateMeter(), RateMeter()

    def summary(self, driver: MotorBusDriver | None, engaged: str, refusal: str) -> StatusReport:
        """``engaged``: who pressed the emergency stop; ``refusal``: of the last transition."""
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
            **({"last refusal": refusal} if refusal else {}),
            **{f"trip {i}": str(trip) for i, trip in enumerate(trips, 1)},
            **(queue.values() if queue else {}),
            **event_values(self._events),
        }
        if engaged:
            return ERROR, f"{STOPPED} {engaged}", values
        if state is DriverState.ERROR and self._cycle.fault:
            return ERROR, f"error: {self._cycle.fault}", values
        if trips:
            return ERROR, f"{state.value}: {_cause(trips)}", values
        trouble = "; ".join(filter(None, (self._cycle.conflict, queue.trouble if queue else "")))
        if trouble:
            return WARN, f"{state.value}; {trouble}", values
        if late > LATE:
            return WARN, f"{state.value}; {late:.0%} of the cycles are late", values
        return LEVELS[state], state.value, values

    def joints(self, name: str, driver: MotorBusDriver | None) -> Sequence[DiagnosticStatus]:
        """One status a joint of the node ``name``: what its motor told last, and how old it is."""
        if driver is None or driver.status is DriverState.UNCONFIGURED:
            return ()
        return [_joint(name, driver, i) for i in range(driver.arm.nv)]


def _cause(trips: Sequence[Trip]) -> str:
    """The first of them, how many came of it, and what helps."""
    more = f", and {len(trips) - 1} more" if len(trips) > 1 else ""
    latched = any(not trip.self_clearing for trip in trips)
    return f"{trips[0]}{more}{'; reset, then activate' if latched else ''}"


def _joint(name: str, driver: MotorBusDriver, i: int) -> DiagnosticStatus:
    told, joint = driver.feedback, driver.arm.joint_names[i]
    tripped = [str(trip) for trip in driver.trips if trip.joint == joint]
    values = {
        "age [s]": f"{told.age[i]:.3f}",
        "position [rad]": f"{told.q[i]:.4f}",
        "temperature [°C]": f"{told.temperature[i]:.0f}",
        "supply [V]": f"{told.supply[i]:.1f}",
        "torque": TORQUE[told.enabled[i]],
        "fault": told.fault[i] or "none",
        "effort": driver.capabilities[i].effort_source,
    }
    trouble = tripped or [told.fault[i]] * bool(told.fault[i])
    if not trouble and not isfinite(told.q[i]):
        trouble = [f"silent for {told.age[i]:.3f} s"]
    return status(
        f"{name}: {joint}", ERROR if trouble else OK, "; ".join(trouble) or "well", values
    )
