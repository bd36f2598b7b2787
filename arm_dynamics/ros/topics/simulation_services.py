"""Services of a simulator, pause, step, reset and push, and its topic link_wrench."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.parameters.ros_parameters import declare_list, declare_live, declare_number
from arm_dynamics.ros.topics.diagnostics import Throttle
from arm_dynamics.ros.topics.services import serve
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl, push_parameters


class SimulationServices:
    """Serves ``~/pause``, ``~/step``, ``~/reset``, ``~/push`` and ``~/link_wrench`` by ``control``.

    A message on ``~/link_wrench`` is a wrench in the frame of the link that its header names.
    """

    def __init__(
        self, node: Node, simulation: Simulation, arm: ArmModel, control: SimulationControl
    ) -> None:
        self._node, self._arm, self._control = node, arm, control
        poses = ", ".join(arm.configurations)
        declare_live(node, "reset_configuration", "initial", f"configuration of ~/reset: {poses}")
        declare_list(node, "reset_positions", "positions of ~/reset; empty: reset_configuration")
        declare_live(node, "step_count", 1, "control periods of one ~/step")
        for spec, default in push_parameters(simulation).values():
            declare_number(node, spec.name, spec, default)
        checked = ("reset_configuration", "reset_positions", "step_count")
        self.check({name: node.get_parameter(name).value for name in checked})
        serve(node, SetBool, "~/pause", lambda request: control.pause(request.data))
        serve(node, Trigger, "~/step", lambda _: control.step(int(self._value("step_count"))))
        serve(node, Trigger, "~/reset", lambda _: self.reset())
        serve(node, Trigger, "~/push", lambda _: self.push())
        reject = partial(Throttle(node.get_logger()).warn, "~/link_wrench")
        listen(node, WrenchStamped, "~/link_wrench", self._pull, 1, reject)

    def _pull(self, message: WrenchStamped) -> None:
        force, torque = message.wrench.force, message.wrench.torque
        wrench = [force.x, force.y, force.z, torque.x, torque.y, torque.z]
        self._control.pull(message.header.frame_id, wrench)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise for an unknown configuration, invalid positions, and a count below 1."""
        if "reset_configuration" in values:
            self._arm.configuration(str(values["reset_configuration"]))
        if values.get("reset_positions"):
            self._arm.check_position("reset_positions", values["reset_positions"])
        count = values.get("step_count", 1)
        if isinstance(count, int) and count < 1:
            raise InvalidValue(f"step_count = {count}; expected at least 1")

    def reset(self, *, state: bool = True, time: bool = False) -> str:
        """Set the state to rest at ``reset_positions``, or at ``reset_configuration``.

        ``time``: also set simulated time to 0, or without ``state`` only that.
        """
        positions = list(self._value("reset_positions") or [])
        name = str(positions or self._value("reset_configuration"))
        q = (
            self._arm.check_position("reset_positions", positions)
            if positions
            else self._arm.configuration(name)
        )
        return self._control.reset(q if state else None, name, time=time)

    def push(self) -> str:
        """Apply the impulse ``push.x``, ``push.y``, ``push.z`` [N·s] to the tool."""
        return self._control.push([self._value(f"push.{axis}") for axis in "xyz"])

    def _value(self, name: str) -> Any:
        return self._node.get_parameter(name).value
