"""Services of a simulator: pause, step, reset and push; its diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import Pacer, RateMeter, RoundTrip
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.queued_bag import QueuedBag
from arm_dynamics.ros.parameters.ros_parameters import declare_list, declare_live, declare_number
from arm_dynamics.ros.topics.diagnostics import (
    ERROR,
    OK,
    STOPPED,
    TEMPERATURE,
    VOLTAGE,
    StatusReport,
    event_values,
    status,
)
from arm_dynamics.ros.topics.loop_requests import LoopRequests
from arm_dynamics.ros.topics.pacing import ClockPacer
from arm_dynamics.ros.topics.services import serve
from arm_dynamics.simulation.equations_of_motion import MotorValues
from arm_dynamics.simulation.simulation import Simulation

TIME_CONTINUES = "time continues"


class SimulationServices:
    """Serves ``~/pause``, ``~/step``, ``~/reset`` and ``~/push``.

    ``publish`` is called with the state after a reset. ``stopped`` returns the text of an active
    emergency stop, else "". During an emergency stop steps are rejected, and all other responses
    include that text. Requests are executed by the simulating thread between two periods.
    """

    def __init__(
        self,
        node: Node,
        simulation: Simulation,
        arm: ArmModel,
        requests: LoopRequests,
        publish: Callable[[State], None],
        stopped: Callable[[], str],
    ) -> None:
        self._node, self._simulation, self._arm = node, simulation, arm
        self._requests, self._publish, self._stopped = requests, publish, stopped
        self.paused = False
        self.steps_left = self._steps_done = 0
        poses = ", ".join(arm.configurations)
        declare_live(node, "reset_configuration", "initial", f"configuration of ~/reset: {poses}")
        declare_list(node, "reset_positions", "positions of ~/reset; empty: reset_configuration")
        declare_live(node, "step_count", 1, "control periods of one ~/step")
        for axis, default in zip("xyz", simulation.default_impulse().tolist(), strict=True):
            text = f"{axis} of the impulse of ~/push on the tool"
            spec = Parameter(f"push.{axis}", 0.0, "N·s", text, lower=-1e6, upper=1e6)
            declare_number(node, spec.name, spec, float(f"{default:.2g}"))
        checked = ("reset_configuration", "reset_positions", "step_count")
        self.check({name: node.get_parameter(name).value for name in checked})
        serve(node, SetBool, "~/pause", lambda request: self.pause(request.data))
        serve(node, Trigger, "~/step", lambda _: self.step())
        serve(node, Trigger, "~/reset", lambda _: self.reset())
        serve(node, Trigger, "~/push", lambda _: self.push())

    @property
    def is_time_stopped(self) -> bool:
        """Whether simulated time is stopped."""
        return self.paused and self.steps_left == 0

    def period_elapsed(self) -> None:
        """Count an elapsed control period."""
        if self.steps_left:
            self.steps_left -= 1
            self._steps_done += 1

    def forget_steps(self) -> None:
        """Discard requested steps."""
        self.steps_left = 0

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise for an unknown configuration, invalid positions, and a count below 1."""
        if "reset_configuration" in values:
            self._arm.configuration(str(values["reset_configuration"]))
        if values.get("reset_positions"):
            self._arm.check_position("reset_positions", values["reset_positions"])
        count = values.get("step_count", 1)
        if isinstance(count, int) and count < 1:
            raise InvalidValue(f"step_count = {count}; expected at least 1")

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation; return its state as text."""
        self.paused = paused
        self._requests.post(self.forget_steps)
        text = "paused" if paused else "not paused" if self._stopped() else "running"
        return self._with_stop(text)

    def step(self) -> str:
        """Simulate ``step_count`` control periods; raise InvalidValue unless paused."""
        count = int(self._node.get_parameter("step_count").value)
        self.add_steps(count)
        return self._with_stop(f"{count} control periods")

    def add_steps(self, count: int) -> Callable[[], tuple[int, bool]]:
        """Simulate ``count`` control periods; raise InvalidValue unless paused.

        The returned function returns the number of completed periods, and whether they have ended.
        """
        stopped = self._stopped()
        if stopped:
            raise InvalidValue(f"no step: {stopped}")
        if not self.paused:
            raise InvalidValue("the simulator is running; pause it first")
        first: list[int] = []

        def add() -> None:
            first.append(self._steps_done + self.steps_left)
            self.steps_left += count

        def progress() -> tuple[int, bool]:
            done = min(max(self._steps_done - first[0], 0), count) if first else 0
            return done, bool(first) and (self.steps_left == 0 or done == count)

        self._requests.post(add)
        return progress

    def reset(self, *, state: bool = True, time: bool = False) -> str:
        """Set the state to rest at ``reset_positions``, or at ``reset_configuration``.

        ``time``: also set simulated time to 0, or without ``state`` only that.
        """
        positions = list(self._node.get_parameter("reset_positions").value or [])
        name = self._node.get_parameter("reset_configuration").value
        q = (
            self._arm.check_position("reset_positions", positions)
            if positions
            else self._arm.configuration(name)
        )

        def reset_to() -> None:
            if state:
                self._simulation.reset(q)
            if time:
                self._simulation.set_time(0.0)
            self._publish(self._simulation.state)

        self._requests.post(reset_to)
        return self._with_stop(f"at {positions or name}; {TIME_CONTINUES}")

    def place(self, q: Vector) -> None:
        """Set the state to rest at ``q`` (nv,) and publish it; only in the simulating thread."""
        self._simulation.reset(q)
        self._publish(self._simulation.state)

    def push(self) -> str:
        """Apply the impulse ``push.x``, ``push.y``, ``push.z`` [N·s] to the tool."""
        impulse = [self._node.get_parameter(f"push.{axis}").value for axis in "xyz"]
        self._requests.call(lambda: self._simulation.push(impulse))
        return self._with_stop(f"push of {impulse} N·s")

    def _with_stop(self, text: str) -> str:
        """Return ``text`` with that of an active emergency stop."""
        return "; ".join(filter(None, (text, self._stopped())))


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
        simulation, paused = self._simulation, self._control.paused
        watchdog = simulation.watchdog
        self._post(self._read_efforts)
        values = {
            "simulated time [s]": f"{simulation.state.time:.3f}",
            "real-time factor": f"{self._factor.update(simulation.state.time):.3f}",
            "commands per second": f"{self._commands.update(watchdog.accepted):.0f}",
            "round trip p50 / p99 [ms]": self._round_trip.summary(),
            "lockstep": str(self._lockstep).lower(),
            "deadlines missed": str(self._pacer.missed),
            "paused": str(paused).lower(),
            **(queue.values() if queue else {}),
            **self._efforts,
            **event_values(watchdog.events),
        }
        trouble = "paused" if paused else "controlled stop" if watchdog.stopping else ""
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
