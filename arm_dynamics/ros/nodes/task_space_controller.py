"""Node task_space_controller: tracks targets of the tool on joint_states and joint_commands."""

from __future__ import annotations

import sys
from typing import Any

from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.nodes.controller_node import ControllerNode
from arm_dynamics.ros.parameters.controller_parameters import (
    ControllerModelParameters,
    ToolMotionParameters,
    change_controller,
    declare_gains,
    show_gains,
)
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed, on_change
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.diagnostics import Diagnostics
from arm_dynamics.ros.topics.frames import declare_frames
from arm_dynamics.ros.topics.tool_topics import ToolStatePublisher, ToolTopics
from arm_dynamics.ros.topics.topic_driver import TopicDriver
from arm_dynamics.safety.events import event_values

PREPARING = "compiling the controller: about a minute at the first start, then cached"


class TaskSpaceControllerNode(ControllerNode):
    """Runs one task-space controller on the arm behind ``driver``, by default a TopicDriver."""

    def __init__(self, driver: Driver | None = None) -> None:
        super().__init__("task_space_controller", task_space=True)
        self._driver = driver or TopicDriver(
            self._nominal, self, self.events, capabilities=self._capabilities
        )
        text = "task-space controller: task_space, resolved_rate, impedance, task_space_mpc"
        name = declare_fixed(self, "controller", "task_space", text)
        self._model = ControllerModelParameters(self, self._nominal)
        kind = task_space_controller_class(name)
        with plugins.guarded("controllers", name):
            self._controller = kind(self._nominal, declare_gains(self, kind(self._nominal)))
        self._controller.set_model(self._model.arm)
        self.get_logger().info(PREPARING)
        warm_up_controller(self._controller)
        self.loop = self._new_loop(self._controller)
        self._motion = ToolMotionParameters(self)
        frames = declare_frames(self, self._nominal)
        self._tool_topics = ToolTopics(self, frames, self.loop, self._controller, self._motion)
        self._reachability = ReachabilityMonitor(self._controller, self.events)
        self._state = ToolStatePublisher(self, frames, self.loop, self._reachability)
        self._diagnostics = Diagnostics(self, self._report)
        on_change(self, self.change_parameters)
        self.add_post_set_parameters_callback(lambda _: show_gains(self, self._controller))

    def step(self) -> bool:
        """Step the control loop, then check the reachability of the target."""
        commanded = super().step()
        if commanded:
            self._reachability.update()
        return commanded

    def destroy_node(self) -> None:
        """Destroy the node and cancel a path check."""
        self._tool_topics.end()
        super().destroy_node()

    def change_parameters(self, values: dict[str, Any]) -> None:
        """Apply changed parameters; an error rejects all of them."""
        motion = self._motion.changed(values)
        change_controller(self._controller, self._model, values, self.loop)
        self._motion.take(motion)

    def values(self) -> dict[str, str]:
        """Return the diagnostics values: tool errors, reachability and events."""
        reachability, values = self._reachability, dict[str, str]()
        if self.loop.latest is not None:
            state, reference, _ = self.loop.latest
            distance, angle = reachability.tool_error(state, reference)
            values = {
                "tool error [m]": f"{distance:.6f}",
                "tool error [rad]": f"{angle:.6f}",
            }
        return {
            **values,
            "reachability error [m]": f"{reachability.reachability_error:.6f}",
            "max reachability error [m]": f"{reachability.max_reachability_error:.6f}",
            "min singular value [m]": f"{reachability.min_singular_value:.6f}",
            "stalled": reachability.stalled or "no",
            **event_values(self.loop.events),
        }

    def warnings(self) -> str:
        """Return what prevents the tool from tracking its target, "" without any cause."""
        warnings = {
            "out of reach": self._reachability.out_of_reach,
            "near a singularity": self._reachability.near_singularity,
            f"stalled: {self._reachability.stalled}": bool(self._reachability.stalled),
        }
        return ", ".join(text for text, holds in warnings.items() if holds)


def task_space_controller_class(name: str) -> type[TaskSpaceController]:
    """Return the task-space controller class ``name``; raise ConfigError for a joint-space one."""
    controller: type[object] = plugins.load_class("controllers", name)
    if issubclass(controller, TaskSpaceController):
        return controller
    every = plugins.loadable_classes("controllers")
    able = ", ".join(n for n, kind in every.items() if issubclass(kind, TaskSpaceController))
    raise ConfigError(f"controller = '{name}'; expected a task-space controller: {able}")


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(TaskSpaceControllerNode))


if __name__ == "__main__":
    main()
