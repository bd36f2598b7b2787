"""Node joint_controller: runs a joint-space controller on joint_states and joint_commands."""

from __future__ import annotations

import sys
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.timing import LoopTiming, RateMeter
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.arm_parameters import declared_model
from arm_dynamics.ros.capability_topics import Capabilities, waiting
from arm_dynamics.ros.controller_parameters import (
    END_IN_MOTION,
    INTEGRATE,
    NAME,
    ControllerParameters,
    joint_space_controller_class,
    show_gains,
)
from arm_dynamics.ros.controller_topics import ControllerStatePublisher, ReferenceTopics
from arm_dynamics.ros.diagnostics import ERROR, Diagnostics, StatusReport, Throttle, event_values
from arm_dynamics.ros.frames import declare_frames
from arm_dynamics.ros.process import run_node
from arm_dynamics.ros.ros_parameters import set_parameters_result
from arm_dynamics.ros.shutdown_flag import ShutdownFlag
from arm_dynamics.ros.topic_driver import TopicDriver, declare_output
from arm_dynamics.safety.events import Events

WAIT = 0.1
"""Time [s] after which a loop without states checks the shutdown flag."""
STATES = "joint_states"
MISSING = (
    "control_msgs 5.3 or newer is not installed: no ~/follow_joint_trajectory, ~/controller_state,"
    " ~/speed_scaling_input, ~/query_state; ~/joint_trajectory, ~/reference and ~/tracking work"
)


class JointControllerNode(Node):
    """Runs one controller on the arm behind ``driver``, by default a TopicDriver."""

    def __init__(self, driver: Driver | None = None) -> None:
        super().__init__("joint_controller")
        self._nominal = declared_model(self)
        self.events = events = Events(Throttle(self.get_logger()).warn)
        self._capabilities = Capabilities(self, events, timed=self._fit)
        self._controller_parameters = ControllerParameters(self, self._nominal)
        self._driver = driver or self._topics(events)
        self.loop = ControlLoop(self._driver, self._controller_parameters.controller, events)
        self._references = ReferenceTopics(self, self.loop)
        frame = declare_frames(self, self._nominal).base
        self._interfaces, kind = self._standard_interfaces(frame)
        self._allow()
        self._state = ControllerStatePublisher(self, frame, self.loop, kind)
        self._ticks, self._rate = 0, RateMeter()
        self._diagnostics = Diagnostics(self, self._report)
        self.add_on_set_parameters_callback(self._on_parameters)

    def _topics(self, events: Events) -> TopicDriver:
        output = declare_output(self, self._nominal, self._controller_parameters.controller)
        return TopicDriver(self._nominal, self, events, output, self._capabilities)

    def _standard_interfaces(self, frame: str) -> tuple[Any, Any]:
        """Return the interfaces of control_msgs and the state type, or (None, None)."""
        try:
            from control_msgs.msg import JointTrajectoryControllerState  # noqa: PLC0415

            from arm_dynamics.ros.follow_joint_trajectory import TrajectoryInterfaces  # noqa: PLC0415
        except ImportError as error:
            self.get_logger().info(f"{MISSING} ({error})")
            return None, None
        interfaces = TrajectoryInterfaces(self, frame, self.loop, self._interruption)
        return interfaces, JointTrajectoryControllerState

    def _allow(self) -> None:
        """Allow goals what the topic's parameters allow."""
        if self._interfaces is not None:
            given = self._references.parameters.values
            self._interfaces.allow(end_in_motion=given[END_IN_MOTION], integrate=given[INTEGRATE])

    def run(self, stop: ShutdownFlag) -> None:
        """Reply to every state until ``stop`` is set."""
        assert isinstance(self._driver, TopicDriver)
        while not stop.is_set():
            if self._driver.wait(WAIT):
                self.tick()

    def tick(self) -> bool:
        """Run one control cycle; return whether a command was written.

        The cycle is skipped if the arm does not accept the controller's command interface.
        """
        if self._refused():
            return False
        command = self.loop.step()
        self._state.observe()
        self._references.observe()
        if self._interfaces is not None:
            self._interfaces.observe()
        self._ticks += command is not None
        return command is not None

    def _fit(self, timing: LoopTiming | None) -> None:
        """Fit the gains to the arm's control period and delay; commands pause during the fit.

        A simulator publishes no delay: the gains are only checked.
        """
        if timing is None:
            self._capabilities.check_margins(self.loop.controller)
        if isinstance(self._driver, TopicDriver):
            with self.loop.fit.under_way():
                self._driver.take_timing(timing)
            show_gains(self, self.loop.controller)

    def _refused(self) -> bool:
        if isinstance(self._driver, TopicDriver) and self._capabilities.awaited:
            self._driver.discard_state()
            return True
        refusal = self._capabilities.incompatibility(type(self.loop.controller))
        if refusal and isinstance(self._driver, TopicDriver):
            self._driver.discard_state()
            self.loop.events.report("controller_incompatible", refusal)
        return bool(refusal)

    def _interruption(self) -> str:
        """Why no state is answered, however long a goal waits; "" while time may only stand."""
        refusal = (
            self._capabilities.incompatibility(type(self.loop.controller)) or self.loop.fit.fault
        )
        if refusal or not isinstance(self._driver, TopicDriver):
            return refusal
        topic = self.resolve_topic_name(STATES)
        missing = "" if self.count_publishers(topic) else f"no publisher on {STATES}"
        return self._conflict() or missing

    def _conflict(self) -> str:
        return self._driver.publisher.conflict if isinstance(self._driver, TopicDriver) else ""

    def _on_parameters(self, parameters: list[RosParameter]) -> SetParametersResult:
        values: dict[str, Any] = {p.name: p.value for p in parameters}
        try:
            if NAME in values:
                self._capabilities.require(joint_space_controller_class(values[NAME]))
            self._controller_parameters.change(values, self.loop)
            self._references.configure(values)
            if self._interfaces is not None:
                self._interfaces.configure(values)
            self._allow()
        except ArmDynamicsError as error:
            return set_parameters_result(error)
        return set_parameters_result(None)

    def _report(self) -> StatusReport:
        events, rate = self.loop.events, self._rate.update(self._ticks)
        max_error, joint = self._state.max_error()
        values = {
            "controller": type(self.loop.controller).__name__,
            "control_msgs": "missing" if self._interfaces is None else "found",
            "commands per second": f"{rate:.0f}",
            "max joint error [rad]": f"{max_error:.6f}",
            "joint of max error": joint,
            "speed scaling": f"{self.loop.reference_generator.clock.factor:g}",
            **event_values(events),
        }
        incompatibility = self._capabilities.incompatibility(type(self.loop.controller))
        error = incompatibility or self.loop.fit.fault
        if error:
            return ERROR, error, values
        conflict = self._conflict()
        if conflict:
            return False, conflict, values
        return rate > 0, "running" if rate > 0 else waiting(self._capabilities), values


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(JointControllerNode))


if __name__ == "__main__":
    main()
