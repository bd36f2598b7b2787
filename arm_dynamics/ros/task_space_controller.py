"""Node task_space_controller: tracks targets of the tool on joint_states and joint_commands."""

from __future__ import annotations

import sys
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.timing import LoopTiming, RateMeter
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.arm_parameters import declared_model
from arm_dynamics.ros.capability_topics import Capabilities, waiting
from arm_dynamics.ros.controller_parameters import (
    ControllerModelParameters,
    ToolMotionParameters,
    changed_gains,
    declare_gains,
    show_gains,
)
from arm_dynamics.ros.diagnostics import ERROR, Diagnostics, StatusReport, Throttle, event_values
from arm_dynamics.ros.frames import declare_frames
from arm_dynamics.ros.process import run_node
from arm_dynamics.ros.ros_parameters import declare_fixed, set_parameters_result
from arm_dynamics.ros.shutdown_flag import ShutdownFlag
from arm_dynamics.ros.tool_topics import ToolStatePublisher, ToolTopics
from arm_dynamics.ros.topic_driver import TopicDriver
from arm_dynamics.safety.events import Events

WAIT = 0.1
"""Time [s] after which a loop without states checks the shutdown flag."""
PREPARING = "compiling the controller: about a minute at the first start, then cached"


class TaskSpaceControllerNode(Node):
    """Runs one task-space controller on the arm behind ``driver``, by default a TopicDriver."""

    def __init__(self, driver: Driver | None = None) -> None:
        super().__init__("task_space_controller")
        self._nominal = declared_model(self)
        self.events = events = Events(Throttle(self.get_logger()).warn)
        self._driver = driver or TopicDriver(self._nominal, self, events)
        self._capabilities = Capabilities(self, events, task_space=True, timed=self._fit)
        self._controller = self._build_controller()
        self.loop = ControlLoop(self._driver, self._controller, events)
        self._motion = ToolMotionParameters(self)
        frames = declare_frames(self, self._nominal)
        self._topics = ToolTopics(self, frames, self.loop, self._controller, self._motion)
        self._watch = ReachabilityMonitor(self._controller, events)
        self._state = ToolStatePublisher(self, frames, self.loop, self._watch)
        self._ticks, self._rate = 0, RateMeter()
        self._diagnostics = Diagnostics(self, self._report)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(lambda _: show_gains(self, self._controller))

    def _build_controller(self) -> TaskSpaceController:
        name = declare_fixed(
            self,
            "controller",
            "task_space",
            "task-space controller: task_space, resolved_rate, impedance",
        )
        self._model = ControllerModelParameters(self, self._nominal)
        kind = task_space_controller_class(name)
        with plugins.guarded("controllers", name):
            controller = kind(self._nominal, declare_gains(self, kind(self._nominal)))
        controller.set_model(self._model.arm)
        self.get_logger().info(PREPARING)
        warm_up_controller(controller)
        return controller

    def run(self, stop: ShutdownFlag) -> None:
        """Reply to every state until ``stop`` is set."""
        assert isinstance(self._driver, TopicDriver)
        while not stop.is_set():
            if self._driver.wait(WAIT):
                self.tick()

    def tick(self) -> None:
        """Run one control cycle, unless the arm does not accept the command interface."""
        refusal = self._capabilities.incompatibility(type(self._controller))
        if isinstance(self._driver, TopicDriver) and (self._capabilities.awaited or refusal):
            self._driver.discard_state()
            if not self._capabilities.awaited:
                self.loop.events.report("controller_incompatible", refusal)
        elif not refusal and self.loop.step() is not None:
            self._ticks += 1
            self._watch.update()

    def _fit(self, timing: LoopTiming | None) -> None:
        """Fit the gains to the arm's control period and delay; commands pause during the fit.

        A simulator publishes no delay: the gains are only checked.
        """
        if timing is None:
            self._capabilities.check_margins(self._controller)
        if isinstance(self._driver, TopicDriver):
            with self.loop.fit.under_way():
                self._driver.take_timing(timing)
        show_gains(self, self._controller)

    def destroy_node(self) -> None:
        """Destroy the node and cancel a path check."""
        self._topics.end()
        super().destroy_node()

    def _on_parameters(self, parameters: list[RosParameter]) -> SetParametersResult:
        values: dict[str, Any] = {p.name: p.value for p in parameters}
        try:
            gains = changed_gains(self._controller, values)
            motion = self._motion.changed(values)
            self._model.changed(values)  # raises before any change
            if gains is not None:
                self.loop.fit.take(gains)
            model = self._model.take(values)
            if model is not None:
                self._controller.set_model(model)
            self._motion.take(motion)
        except ArmDynamicsError as error:
            return set_parameters_result(error)
        return set_parameters_result(None)

    def _report(self) -> StatusReport:
        events, watch, rate = self.loop.events, self._watch, self._rate.update(self._ticks)
        values = {
            "controller": type(self._controller).__name__,
            "commands per second": f"{rate:.0f}",
            **self._tool_error(),
            "reachability error [m]": f"{watch.reachability_error:.6f}",
            "max reachability error [m]": f"{watch.max_reachability_error:.6f}",
            "min singular value [m]": f"{watch.min_singular_value:.6f}",
            "stalled": watch.stalled or "no",
            **event_values(events),
        }
        refusal = self._capabilities.incompatibility(type(self._controller)) or self.loop.fit.fault
        if refusal:
            return ERROR, refusal, values
        if rate <= 0:
            return False, waiting(self._capabilities), values
        topics = self._driver if isinstance(self._driver, TopicDriver) else None
        if topics is not None and topics.publisher.conflict:
            return False, topics.publisher.conflict, values
        words = ["out of reach"] * watch.out_of_reach + [
            "near a singularity"
        ] * watch.near_singularity
        words += [f"stalled: {watch.stalled}"] * bool(watch.stalled)
        return not words, ", ".join(words) or "running", values

    def _tool_error(self) -> dict[str, str]:
        """Return the tracking errors of the tool; none before the first state."""
        if self.loop.latest is None:
            return {}
        state, reference, _ = self.loop.latest
        names = "tool error [m]", "tool error [rad]"
        found = self._watch.tool_error(state, reference)
        return {name: f"{error:.6f}" for name, error in zip(names, found, strict=True)}


def task_space_controller_class(name: str) -> type[TaskSpaceController]:
    """Return the task-space controller class ``name``; raise ConfigError for a joint-space one."""
    controller: type[object] = plugins.load_class("controllers", name)
    if issubclass(controller, TaskSpaceController):
        return controller
    every = plugins.sound("controllers")
    able = ", ".join(n for n, kind in every.items() if issubclass(kind, TaskSpaceController))
    raise ConfigError(f"controller = '{name}'; expected a task-space controller: {able}")


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(TaskSpaceControllerNode))


if __name__ == "__main__":
    main()
