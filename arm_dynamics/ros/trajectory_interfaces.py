"""Constraints of goals as parameters, named as joint_trajectory_controller names them.

The interfaces of joint_trajectory_controller that need control_msgs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from control_msgs.msg import SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from rclpy.node import Node

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import OF_GOAL, OF_JOINT, Constraints, default_values
from arm_dynamics.control.goals.goal_handler import GoalHandler
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import to_double_array, to_seconds
from arm_dynamics.ros.decode import listen
from arm_dynamics.ros.follow_joint_trajectory import FollowJointTrajectoryServer
from arm_dynamics.ros.ros_parameters import by_joint, declare_live, declare_number

PARTIAL = "allow_partial_joints_goal"
REJECT = "reject_invalid_goals"


class ConstraintParameters:
    """Declares them, and makes Constraints of those in force; all are live."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._arm = arm
        self._values: dict[str, Any] = {
            f"constraints.{spec.name}": declare_number(
                node, f"constraints.{spec.name}", spec, spec.default or 0.0
            )
            for spec in OF_GOAL
        }
        for joint, row in default_values(arm).items():
            for spec in OF_JOINT:
                name = f"constraints.{joint}.{spec.name}"
                self._values[name] = declare_number(node, name, spec, row[spec.name])
        self.partial = bool(
            declare_live(node, PARTIAL, False, "whether a goal may leave joints out, to stand")
        )
        self.reject = bool(
            declare_live(
                node,
                REJECT,
                True,
                "whether an invalid goal is rejected without a result, the reason in the log;"
                " false: it is accepted and aborted at once, with error code and string",
            )
        )

    def changed(self, values: Mapping[str, Any]) -> Constraints:
        """Take what concerns them; those in force then. Raises InvalidValue out of range."""
        merged = self._values | {n: v for n, v in values.items() if n in self._values}
        joints = by_joint(merged, "constraints")
        general = {spec.name: merged[f"constraints.{spec.name}"] for spec in OF_GOAL}
        constraints = Constraints.of(self._arm, joints, general)
        self._values = merged
        self.partial = bool(values.get(PARTIAL, self.partial))
        self.reject = bool(values.get(REJECT, self.reject))
        return constraints


class TrajectoryInterfaces:
    """``~/follow_joint_trajectory``, ``~/speed_scaling_input`` and ``~/query_state``."""

    def __init__(self, node: Node, frame: str, loop: ControlLoop) -> None:
        self._loop = loop
        self._goals = GoalHandler(loop)
        self._parameters = ConstraintParameters(node, loop.arm)
        self._server = FollowJointTrajectoryServer(node, frame, self._goals)
        self.configure({})
        refuse = partial(loop.events.report, "speed_scaling_refused")
        topic = "~/speed_scaling_input"
        listen(node, SpeedScalingFactor, topic, self._scale, qos.LATCHED, refuse)
        node.create_service(QueryTrajectoryState, "~/query_state", self._query)

    def configure(self, values: dict[str, object]) -> None:
        """Take changed parameters; raises InvalidValue for one out of its range."""
        self._goals.constraints = self._parameters.changed(values)
        self._goals.allow_partial = self._parameters.partial
        self._server.reject_invalid = self._parameters.reject

    def allow(self, *, end_in_motion: bool, integrate: bool) -> None:
        """Set what a goal may do: end in motion, give velocities or accelerations alone."""
        self._goals.end_in_motion, self._goals.integrate = end_in_motion, integrate

    def observe(self) -> None:
        """Judge the tick that just ended."""
        self._goals.update()

    def _scale(self, message: SpeedScalingFactor) -> None:
        self._loop.reference_generator.clock.set_factor(message.factor)

    def _query(
        self, request: QueryTrajectoryState.Request, response: QueryTrajectoryState.Response
    ) -> QueryTrajectoryState.Response:
        """The reference at a time; at 0 the present one."""
        state = self._loop.state
        try:
            time = to_seconds(request.time) or (0.0 if state is None else state.time)
            reference = self._loop.reference_generator.at(time)
        except ArmDynamicsError as error:
            response.success, response.message = False, str(error)
            return response
        response.success, response.message = True, f"reference at {time:.6g} s"
        response.name = list(self._loop.arm.joint_names)
        response.position = to_double_array(reference.q)
        response.velocity = to_double_array(reference.v)
        response.acceleration = to_double_array(reference.a)
        return response
