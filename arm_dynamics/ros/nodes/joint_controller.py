"""Node joint_controller: runs a joint-space controller on joint_states and joint_commands."""

from __future__ import annotations

import sys
from typing import Any

from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.nodes.controller_node import ControllerNode
from arm_dynamics.ros.parameters.controller_parameters import (
    NAME,
    ControllerParameters,
    joint_space_controller_class,
)
from arm_dynamics.ros.parameters.ros_parameters import on_change
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_topics import (
    END_IN_MOTION,
    INTEGRATE,
    PARTIAL,
    ConstraintParameters,
    ControllerStatePublisher,
    ReferenceTopics,
)
from arm_dynamics.ros.topics.diagnostics import RUN, Diagnostics
from arm_dynamics.ros.topics.frames import declare_frames
from arm_dynamics.ros.topics.topic_driver import TopicDriver, declare_output
from arm_dynamics.safety.events import event_values

STATES = "joint_states"
MISSING = (
    "control_msgs 5.3 or newer is not installed (make setup builds it): no"
    " ~/follow_joint_trajectory, ~/gripper_cmd, ~/controller_state, ~/speed_scaling_input,"
    " ~/query_state; ~/joint_trajectory, ~/reference and ~/tracking work"
)


class JointControllerNode(ControllerNode):
    """Runs one joint-space controller on the arm behind ``driver``, by default a TopicDriver."""

    def __init__(self, driver: Driver | None = None) -> None:
        super().__init__("joint_controller")
        self._controller_parameters = ControllerParameters(self, self._nominal)
        controller = self._controller_parameters.controller
        self._driver = driver or TopicDriver(
            self._nominal,
            self,
            self.events,
            declare_output(self, self._nominal, controller),
            self._capabilities,
        )
        self.loop = self._new_loop(controller)
        self._constraints = ConstraintParameters(self, self._nominal)
        goal_time = self._constraints.changed({}).goal_time
        self._references = ReferenceTopics(self, self.loop, goal_time)
        self._missing = ""
        frame = declare_frames(self, self._nominal).base
        self._interfaces, kind = self._standard_interfaces(frame)
        self._gripper: Any = None if self._interfaces is None else self._gripper_actions(frame)
        self._configure({})
        self._state = ControllerStatePublisher(self, frame, self.loop, kind)
        self._manager = self._manager_services()
        self._diagnostics = Diagnostics(self, self._report)
        if self._missing and not self.get_parameter(RUN).value:  # a run of arm-dynamics sim
            self.get_logger().info(self._missing)
        on_change(self, self.change_parameters)

    def _standard_interfaces(self, frame: str) -> tuple[Any, Any]:
        """Return the interfaces of control_msgs and the state type, or (None, None)."""
        try:
            from control_msgs.msg import JointTrajectoryControllerState  # noqa: PLC0415

            from arm_dynamics.ros.topics.follow_joint_trajectory import TrajectoryInterfaces  # noqa: PLC0415
        except ImportError as error:
            self._missing = f"{MISSING} ({error})"
            return None, None
        interfaces = TrajectoryInterfaces(self, frame, self.loop, self._interruption)
        return interfaces, JointTrajectoryControllerState

    def _gripper_actions(self, frame: str) -> Any:
        """Return the actions of the gripper."""
        from arm_dynamics.ros.topics.gripper_actions import GripperActions  # noqa: PLC0415

        return GripperActions(self, frame, self.loop, self._interruption)

    def _manager_services(self) -> Any:
        """Return the services of controller_manager_msgs; None if it is not installed."""
        try:
            from arm_dynamics.ros.topics.controller_manager import ControllerManagerServices  # noqa: PLC0415
        except ImportError:
            return None
        return ControllerManagerServices(self, self.loop, lambda: self.is_active)

    def _configure(self, values: dict[str, Any]) -> None:
        """Apply changed parameters of goals and streams; goals are allowed what streams are."""
        constraints = self._constraints.changed(values)
        self._references.configure(values, constraints.goal_time)
        if self._interfaces is not None:
            self._gripper.configure(values)
            values = self._references.parameters.values
            self._interfaces.configure(constraints, reject=self._constraints.reject)
            self._interfaces.allow(
                end_in_motion=values[END_IN_MOTION],
                integrate=values[INTEGRATE],
                partial=values[PARTIAL],
            )

    def step(self) -> bool:
        """Step the control loop, then check streams and goals."""
        commanded = super().step()
        self._state.observe()
        self._references.observe()
        if self._interfaces is not None:
            self._interfaces.observe()
        return commanded

    def _interruption(self) -> str:
        """Return why no joint state can come, however long a goal waits; "" if one can."""
        incompatible = (
            self._capabilities.incompatibility(type(self.loop.controller))
            or self.loop.gain_scaling.fault
        )
        if incompatible or self._topics is None:
            return incompatible
        topic = self.resolve_topic_name(STATES)
        missing = "" if self.count_publishers(topic) else f"no publisher on {topic}"
        return self._topics.publisher.conflict or missing or self._topics.missing

    def change_parameters(self, values: dict[str, Any]) -> None:
        """Apply changed parameters; an error rejects all of them."""
        if NAME in values:
            self._capabilities.require(joint_space_controller_class(values[NAME]))
        self._controller_parameters.change(values, self.loop)
        self._configure(values)

    def values(self) -> dict[str, str]:
        """Return the diagnostics values: joint errors, speed scaling and events."""
        max_error, joint = self._state.max_error()
        return {
            "control_msgs": "missing" if self._interfaces is None else "found",
            "max joint error [rad]": f"{max_error:.6f}",
            "joint of max error": joint,
            "speed scaling": f"{self.loop.reference_generator.clock.factor:g}",
            **event_values(self.loop.events),
        }


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(JointControllerNode))


if __name__ == "__main__":
    main()
