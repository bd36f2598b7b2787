"""Services of a simulator: pause, step, reset and push."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.loop_requests import LoopRequests
from arm_dynamics.ros.ros_parameters import declare_list, declare_live, declare_number
from arm_dynamics.simulation.simulation import Simulation


class SimulationServices:
    """Serves ``~/pause``, ``~/step``, ``~/reset`` and ``~/push``.

    ``reset`` is called with positions. ``stopped`` returns the text of an active emergency stop,
    else "". During an emergency stop steps are rejected, and all other responses include that
    text. Requests are executed by the simulating thread between two periods.
    """

    def __init__(
        self,
        node: Node,
        simulation: Simulation,
        arm: ArmModel,
        requests: LoopRequests,
        reset: Callable[[Vector], None],
        stopped: Callable[[], str],
    ) -> None:
        self._node, self._simulation, self._arm = node, simulation, arm
        self._requests, self._post, self._reset_to = requests, requests.post, reset
        self._stopped = stopped
        self.paused = False
        self.steps_left = 0
        poses = ", ".join(arm.configurations)
        declare_live(node, "reset_configuration", "initial", f"configuration of ~/reset: {poses}")
        declare_list(node, "reset_positions", "positions of ~/reset; empty: reset_configuration")
        declare_live(node, "step_count", 1, "control periods of one ~/step")
        for axis, default in zip("xyz", simulation.usual_impulse().tolist(), strict=True):
            text = f"{axis} of the impulse of ~/push on the tool"
            spec = Parameter(f"push.{axis}", 0.0, "N·s", text, lower=-1e6, upper=1e6)
            declare_number(node, spec.name, spec, float(f"{default:.2g}"))
        given = ("reset_configuration", "reset_positions", "step_count")
        self.check({name: node.get_parameter(name).value for name in given})
        node.create_service(SetBool, "~/pause", self._pause)
        node.create_service(Trigger, "~/step", self._step)
        node.create_service(Trigger, "~/reset", self._reset)
        node.create_service(Trigger, "~/push", self._push)

    @property
    def is_time_stopped(self) -> bool:
        """Whether simulated time is stopped."""
        return self.paused and self.steps_left == 0

    def period_elapsed(self) -> None:
        """Count an elapsed control period."""
        self.steps_left = max(0, self.steps_left - 1)

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

    def _add_steps(self, count: int) -> None:
        self.steps_left += count

    def _done(self, response: Any, text: str) -> Any:
        """Return success, with the text of an active emergency stop."""
        response.success = True
        response.message = "; ".join(filter(None, (text, self._stopped())))
        return response

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.paused = request.data
        self._post(self.forget_steps)
        text = "paused" if request.data else "not paused" if self._stopped() else "running"
        return self._done(response, text)

    def _step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        stopped = self._stopped()
        if stopped:
            response.success, response.message = False, f"no step: {stopped}"
            return response
        if not self.paused:
            response.success, response.message = False, "the simulator is running; pause it first"
            return response
        count = int(self._node.get_parameter("step_count").value)
        self._post(lambda: self._add_steps(count))
        return self._done(response, f"{count} control periods")

    def _reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        given = list(self._node.get_parameter("reset_positions").value or [])
        name = self._node.get_parameter("reset_configuration").value
        try:
            q = (
                self._arm.check_position("reset_positions", given)
                if given
                else self._arm.configuration(name)
            )
        except ArmDynamicsError as error:
            response.success, response.message = False, str(error)
            return response
        self._post(lambda: self._reset_to(q))
        return self._done(response, f"at {given or name}")

    def _push(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        impulse = [self._node.get_parameter(f"push.{axis}").value for axis in "xyz"]
        try:
            self._requests.call(lambda: self._simulation.push(impulse))
        except ArmDynamicsError as error:
            response.success, response.message = False, str(error)
            return response
        return self._done(response, f"push of {impulse} N·s")
