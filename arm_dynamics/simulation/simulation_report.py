"""Diagnostics of a running simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan

from arm_dynamics.core.status_summary import STOPPED, TEMPERATURE, VOLTAGE
from arm_dynamics.core.timing import RateMeter, RoundTrip
from arm_dynamics.safety.events import event_values
from arm_dynamics.simulation.equations_of_motion import MotorValues
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl


class SimulationReport:
    """Diagnostics of the loop that advances a simulation, readable from any thread.

    Parameters
    ----------
    simulation : Simulation
        The simulation.
    control : SimulationControl
        Its control.
    missed : callable
        Returns the number of missed deadlines.
    post : callable
        Runs a function in the loop's thread, the only one that may use the plant.
    lockstep : bool
        Whether simulated time waits for commands.
    round_trip : RoundTrip, optional
        Latencies of commands that other processes send.

    """

    def __init__(
        self,
        simulation: Simulation,
        control: SimulationControl,
        missed: Callable[[], int],
        post: Callable[[Callable[[], object]], None],
        *,
        lockstep: bool,
        round_trip: RoundTrip | None = None,
    ) -> None:
        self._simulation, self._control, self._post = simulation, control, post
        self._missed, self._round_trip, self._lockstep = missed, round_trip, lockstep
        self._factor, self._commands = RateMeter(), RateMeter()
        self._efforts: dict[str, str] = {}
        self._motors: MotorValues | None = None

    def summary(
        self, trouble: str = "", more: Mapping[str, str] | None = None
    ) -> tuple[bool, str, dict[str, str]]:
        """Return whether the simulation is OK, a message, and the values since the last call.

        Parameters
        ----------
        trouble : str
            Other reasons why the simulation is not OK.
        more : mapping, optional
            Further values.

        """
        simulation, paused = self._simulation, self._control.paused
        watchdog = simulation.watchdog
        self._post(self._read_efforts)
        values = {
            "simulated time [s]": f"{simulation.state.time:.3f}",
            "real-time factor": f"{self._factor.update(simulation.state.time):.3f}",
            "commands per second": f"{self._commands.update(watchdog.accepted):.0f}",
            **(
                {"round trip p50 / p99 [ms]": self._round_trip.summary()}
                if self._round_trip
                else {}
            ),
            "lockstep": str(self._lockstep).lower(),
            "deadlines missed": str(self._missed()),
            "paused": str(paused).lower(),
            **(more or {}),
            **self._efforts,
            **event_values(watchdog.events),
        }
        state = "paused" if paused else "controlled stop" if watchdog.stopping else ""
        trouble = "; ".join(filter(None, (state, trouble)))
        stopped_by = self._control.stopped_by
        if stopped_by:
            return False, f"{STOPPED} {stopped_by}", values
        return not trouble, trouble or "running", values

    def joints(self) -> dict[str, dict[str, str]]:
        """Return voltage and temperature of each joint's motor, where they exist."""
        motors, names = self._motors, self._simulation.arm.joint_names
        if motors is None:
            return {}
        rows = zip(names, motors.voltage, motors.temperature, strict=True)
        return {
            joint: ({} if isnan(voltage) else {VOLTAGE: f"{voltage:.3f}"})
            | ({} if isnan(temperature) else {TEMPERATURE: f"{temperature:.2f}"})
            for joint, voltage, temperature in rows
        }

    def _read_efforts(self) -> None:
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
