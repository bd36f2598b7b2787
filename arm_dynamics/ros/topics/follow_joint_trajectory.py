"""Interfaces of joint_trajectory_controller that need control_msgs.

Action ``~/follow_joint_trajectory``, topic ``~/speed_scaling_input``, service ``~/query_state``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from rclpy.node import Node

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import (
    Constraints,
    ErrorCode,
    Goal,
    GoalTolerances,
    ToleranceOverrides,
)
from arm_dynamics.control.goals.goal_handler import GoalHandler, GoalRequest, rejecting_with
from arm_dynamics.core.errors import ArmDynamicsError, GoalRejected, TrajectoryRejected
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import header, to_double_array, to_seconds
from arm_dynamics.ros.messages.serialization import check_names, check_points, listen
from arm_dynamics.ros.topics.action_goals import ActionGoals, limited_action
from arm_dynamics.ros.topics.controller_topics import state_points

TOLERANCES = (
    *("path_tolerance", "component_path_tolerance"),
    *("goal_tolerance", "component_goal_tolerance"),
)


def require_in_limits(goal: Any) -> None:
    """Raise InvalidValue for a goal in C with too many names or waypoints."""
    for trajectory in (goal.trajectory, goal.multi_dof_trajectory):
        check_names(trajectory.joint_names.size, 0)
        check_points(trajectory.points.size)
    for tolerances in TOLERANCES:
        check_names(getattr(goal, tolerances).size, 0)


def read_goal(message: Any) -> GoalRequest:
    """Return the request of a goal; raise GoalRejected for invalid content.

    A goal for joints with several degrees of freedom is invalid.
    Tolerances of acceleration are ignored, because accelerations are not measured.
    """
    if reason := getattr(message, "reason", ""):
        raise GoalRejected(ErrorCode.INVALID_GOAL, reason)
    trajectory = message.trajectory
    with rejecting_with(ErrorCode.INVALID_GOAL):
        check_names(len(trajectory.joint_names), max(map(len, trajectory.joint_names), default=0))
    several_dof = (
        *message.multi_dof_trajectory.joint_names,
        *(t.joint_name for t in message.component_path_tolerance),
        *(t.joint_name for t in message.component_goal_tolerance),
    )
    if several_dof:
        text = f"joint '{several_dof[0]}': degrees of freedom > 1; expected joints with one"
        raise GoalRejected(ErrorCode.INVALID_JOINTS, text)
    return GoalRequest(
        names=list(trajectory.joint_names),
        times=[to_seconds(point.time_from_start) for point in trajectory.points],
        positions=[point.positions for point in trajectory.points],
        velocities=[point.velocities for point in trajectory.points],
        accelerations=[point.accelerations for point in trajectory.points],
        efforts=[point.effort for point in trajectory.points],
        start=to_seconds(trajectory.header.stamp),
        path=_tolerances(message.path_tolerance),
        goal=_tolerances(message.goal_tolerance),
        goal_time=to_seconds(message.goal_time_tolerance),
    )


def _tolerances(messages: Iterable[Any]) -> ToleranceOverrides:
    return {t.name: (t.position, t.velocity) for t in messages}


class FollowJointTrajectoryServer(ActionGoals):
    """Goals of ``~/follow_joint_trajectory``; the loop's thread checks them."""

    def __init__(
        self, node: Node, frame: str, goals: GoalHandler, interruption: Callable[[], str]
    ) -> None:
        self.reject_invalid = True
        self._frame, self._goals = frame, goals
        action = limited_action(FollowJointTrajectory, require_in_limits)
        super().__init__(node, goals.loop, action, "~/follow_joint_trajectory", interruption)

    def accept(self, message: Any) -> Goal:
        """Return the goal of a message; with ``reject_invalid`` false an aborted one."""
        try:
            return self._goals.accept(read_goal(message))
        except GoalRejected as error:
            code = ErrorCode(error.code)
            text = f"{code.name}: {error}"
            if self.reject_invalid:
                raise TrajectoryRejected(text) from error
            self._loop.events.report("goal_rejected", text)
            limits = self._goals.constraints
            goal = Goal((), GoalTolerances(limits.path, limits.goal, limits.goal_time))
            goal.finish(code, str(error))
            return goal

    def cancel(self, goal: Goal) -> None:
        """Stop the arm; the goal ends at rest."""
        self._goals.cancel(goal)

    def end(self, goal: Goal, text: str, *, canceled: bool) -> None:
        """End a goal without the loop."""
        code = ErrorCode.SUCCESSFUL if canceled else ErrorCode.INVALID_GOAL
        goal.finish(code, text, canceled=canceled)

    def report(self, goal: Goal) -> None:
        """Report ``goal_aborted`` for a code other than SUCCESSFUL."""
        assert goal.result is not None
        if goal.result.code != ErrorCode.SUCCESSFUL:
            text = f"{goal.result.code.name}: {goal.result.text}"
            self._loop.events.report("goal_aborted", text)

    def feedback(self, goal: Goal) -> FollowJointTrajectory.Feedback:
        """Return reference, measured state and error of the last control cycle."""
        loop = self._loop
        assert loop.latest is not None
        state, reference, _ = loop.latest
        desired, actual, error = state_points(loop, state, reference)
        return FollowJointTrajectory.Feedback(
            header=header(self._frame, state.time),
            joint_names=list(loop.arm.joint_names),
            desired=desired,
            actual=actual,
            error=error,
        )

    def conclude(self, handle: Any, goal: Goal) -> FollowJointTrajectory.Result:
        """Set the status of ``handle``; return error code and text."""
        result = goal.result
        assert result is not None
        if result.canceled:
            handle.canceled()
        elif result.code == ErrorCode.SUCCESSFUL:
            handle.succeed()
        else:
            handle.abort()
        return FollowJointTrajectory.Result(error_code=int(result.code), error_string=result.text)


class TrajectoryInterfaces:
    """``~/follow_joint_trajectory``, ``~/speed_scaling_input`` and ``~/query_state``."""

    def __init__(
        self, node: Node, frame: str, loop: ControlLoop, interruption: Callable[[], str]
    ) -> None:
        self._loop = loop
        self._goals = GoalHandler(loop)
        self._server = FollowJointTrajectoryServer(node, frame, self._goals, interruption)
        listen(
            node,
            SpeedScalingFactor,
            "~/speed_scaling_input",
            lambda message: loop.reference_generator.clock.set_factor(message.factor),
            qos.LATCHED,
            partial(loop.events.report, "speed_scaling_rejected"),
        )
        node.create_service(QueryTrajectoryState, "~/query_state", self._query)

    def configure(self, constraints: Constraints, *, reject: bool) -> None:
        """Set the constraints, and whether an invalid goal is rejected or aborted."""
        self._goals.constraints = constraints
        self._server.reject_invalid = reject

    def allow(self, *, end_in_motion: bool, integrate: bool, partial: bool) -> None:
        """Set whether goals may end in motion, lack positions, and omit joints."""
        self._goals.end_in_motion, self._goals.integrate = end_in_motion, integrate
        self._goals.allow_partial = partial

    def observe(self) -> None:
        """Check the goals after a control cycle."""
        self._goals.update()

    def _query(
        self, request: QueryTrajectoryState.Request, response: QueryTrajectoryState.Response
    ) -> QueryTrajectoryState.Response:
        """Return the reference at a time; at 0 the current one."""
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
