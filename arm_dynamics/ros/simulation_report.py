"""How a simulation is doing, as /diagnostics shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

from diagnostic_msgs.msg import DiagnosticStatus

from arm_dynamics.core.timing import Pacer, RateMeter, RoundTrip
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.ros.diagnostics import (
    ERROR,
    OK,
    STOPPED,
    TEMPERATURE,
    VOLTAGE,
    StatusReport,
    event_values,
    status,
)
from arm_dynamics.ros.pacing import ClockPacer
from arm_dynamics.ros.simulation_services import SimulationServices
from arm_dynamics.simulation.equations_of_motion import MotorValues
from arm_dynamics.simulation.simulation import Simulation


class SimulationReport:
    """Words on what the loop does; another thread than the loop's may ask.

    ``post`` has the loop do something: its plant serves one thread.
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
        """Summary of one second.

        ``stopped_by``: source of the emergency stop; ``conflict``: rejected publishers of
        commands; ``queue``: of the recording.
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
        trouble = "paused" if paused else "safe stop" if watch.stopping else ""
        trouble = "; ".join(filter(None, (trouble, conflict, queue.trouble if queue else "")))
        if stopped_by:
            return ERROR, f"{STOPPED} {stopped_by}", values
        return not trouble, trouble or "running", values

    def joints(self, name: str) -> Sequence[DiagnosticStatus]:
        """One status a joint of the node ``name``: voltage and temperature of its motor, if any."""
        motors, names = self._motors, self._simulation.arm.joint_names
        if motors is None:
            return ()
        rows = zip(names, motors.voltage, motors.temperature, strict=True)
        return [_joint(name, *row) for row in rows]

    def _note_efforts(self) -> None:
        self._motors = self._simulation.motors()
        found = self._simulation.efforts()
        if found:
            names = self._simulation.arm.joint_names
            self._efforts = {
                f"{name} effort computed / applied [N·m]": f"{computed:.4g} / {applied:.4g}"
                for name, computed, applied in zip(
                    names, found.computed, found.applied, strict=True
                )
            }


def _joint(node: str, joint: str, voltage: float, temperature: float) -> DiagnosticStatus:
    known = {VOLTAGE: (voltage, ".3f"), TEMPERATURE: (temperature, ".2f")}
    values = {key: f"{number:{form}}" for key, (number, form) in known.items() if not isnan(number)}
    return status(f"{node}: {joint}", OK, "simulated", values)
