"""The joint controller node: joint states in, joint commands out."""

from __future__ import annotations

import sys
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics import plugins
from arm_dynamics.controllers.base import Controller
from arm_dynamics.drivers.base import Driver
from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.loop import ControlLoop
from arm_dynamics.model.load import load_arm
from arm_dynamics.pacer import Rate
from arm_dynamics.ros.arm_parameters import PAYLOAD
from arm_dynamics.ros.controller_state import ControllerState
from arm_dynamics.ros.diagnostics import Diagnostics, Report
from arm_dynamics.ros.gain_parameters import changed_gains, declare_gains
from arm_dynamics.ros.parameters import declare_fixed, declare_number, result
from arm_dynamics.ros.process import run_node
from arm_dynamics.ros.reference_topics import ReferenceTopics
from arm_dynamics.ros.stop import Stop
from arm_dynamics.ros.throttle import Throttle
from arm_dynamics.ros.topic_driver import TopicDriver
from arm_dynamics.safety.events import Events

WAIT = 0.1
"""Time [s] after which a loop without states looks whether it should stop."""


class JointControllerNode(Node):
    """Runs one control law on the arm behind ``driver``, by default the one behind topics."""

    def __init__(self, driver: Driver | None = None) -> None:
        super().__init__("joint_controller")
        self._nominal = load_arm(declare_fixed(self, "arm", "five_dof", "bundled arm or URDF file"))
        self._driver = driver or TopicDriver(self._nominal, self)
        events = Events(Throttle(self.get_logger()).warn)
        self.loop = ControlLoop(self._driver, self._build_controller(), events)
        self._references = ReferenceTopics(self, self.loop)
        self._state = ControllerState(self, self.loop)
        self._ticks, self._rate = 0, Rate()
        self._diagnostics = Diagnostics(self, self._report)
        self.add_on_set_parameters_callback(self._on_parameters)

    def _build_controller(self) -> Controller:
        laws = ", ".join(plugins.names("controllers"))
        name = declare_fixed(self, "controller", "pid_gravity", f"control law: {laws}")
        payload = declare_number(self, PAYLOAD.name, PAYLOAD, 0.0)
        law = plugins.load("controllers", name)
        controller: Controller = law(self._nominal, declare_gains(self, law(self._nominal)))
        controller.use_model(self._nominal.with_payload(payload))
        return controller

    def run(self, stop: Stop) -> None:
        """Answer every state until told to stop."""
        assert isinstance(self._driver, TopicDriver)
        while not stop.is_set():
            if self._driver.wait(WAIT):
                self.tick()

    def tick(self) -> bool:
        """One step of the control loop; whether a command was written."""
        command = self.loop.step()
        self._state.observe()
        self._ticks += command is not None
        return command is not None

    def _on_parameters(self, parameters: list[RosParameter]) -> SetParametersResult:
        values: dict[str, Any] = {p.name: p.value for p in parameters}
        controller = self.loop.controller
        try:
            gains = changed_gains(controller, values)
            model = self._nominal.with_payload(values.get(PAYLOAD.name, 0.0))
            if gains is not None:
                controller.configure(gains)
            if PAYLOAD.name in values:
                controller.use_model(model)
        except ArmDynamicsError as error:
            return result(error)
        return result(None)

    def _report(self) -> Report:
        events, rate = self.loop.events, self._rate.of(self._ticks)
        error, joint = self._state.worst_error()
        values = {
            "controller": type(self.loop.controller).__name__,
            "commands per second": f"{rate:.0f}",
            "worst joint error [rad]": f"{error:.6f}",
            "worst joint": joint,
            **{kind: str(count) for kind, count in sorted(events.counts.items())},
            **{f"last {kind}": text for kind, text in sorted(events.latest.items())},
        }
        return rate > 0, "running" if rate > 0 else "waiting for joint_states", values


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(JointControllerNode))


if __name__ == "__main__":
    main()
