"""The interfaces of joint_trajectory_controller that need control_msgs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from control_msgs.msg import SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from rclpy.node import Node

from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.goals.goals import Goals
from arm_dynamics.loop import ControlLoop
from arm_dynamics.ros import qos
from arm_dynamics.ros.constraint_parameters import ConstraintParameters
from arm_dynamics.ros.conversions import doubles, to_seconds
from arm_dynamics.ros.follow_joint_trajectory import FollowJointTrajectoryServer
from arm_dynamics.ros.listen import listen


class TrajectoryInterfaces:
    """``~/follow_joint_trajectory``, ``~/speed_scaling_input`` and ``~/query_state``."""

    def __init__(
        self, node: Node, frame: str, loop: ControlLoop, interruption: Callable[[], str]
    ) -> None:
        """``interruption`` returns why no state of the arm can come, "" if one can."""
        self._loop = loop
        self._goals = Goals(loop)
        self._parameters = ConstraintParameters(node, loop.arm)
        self._server = FollowJointTrajectoryServer(node, frame, self._goals, interruption)
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
        self._goals.observe()

    def _scale(self, message: SpeedScalingFactor) -> None:
        self._loop.following.clock.ask(message.factor)

    def _query(
        self, request: QueryTrajectoryState.Request, response: QueryTrajectoryState.Response
    ) -> QueryTrajectoryState.Response:
        """The reference at a time; at 0 the present one."""
        state = self._loop.state
        try:
            time = to_seconds(request.time) or (0.0 if state is None else state.time)
            reference = self._loop.following.at(time)
        except ArmDynamicsError as error:
            response.success, response.message = False, str(error)
            return response
        response.success, response.message = True, f"reference at {time:.6g} s"
        response.name = list(self._loop.arm.joint_names)
        response.position = doubles(reference.q)
        response.velocity = doubles(reference.v)
        response.acceleration = doubles(reference.a)
        return response
