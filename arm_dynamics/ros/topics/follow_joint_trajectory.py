"""Interfaces of joint_trajectory_controller that need control_msgs.

Action ``~/follow_joint_trajectory``, topic ``~/speed_scaling_input``, service ``~/query_state``.
rclpy's action server provides no serialized goals, and converts a waypoint in 25 µs. A goal with
10^6 waypoints would block the services for half a minute, so that sizes are checked in C first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import (
    Constraints,
    ErrorCode,
    Goal,
    GoalResult,
    ToleranceOverrides,
)
from arm_dynamics.control.goals.goal_handler import GoalHandler, GoalRequest, rejecting_with
from arm_dynamics.core.errors import ArmDynamicsError, GoalRejected, InvalidValue
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.c_message import derived, from_c, guarded, is_known, structure
from arm_dynamics.ros.messages.conversions import header, to_double_array, to_seconds
from arm_dynamics.ros.messages.serialization import check_names, check_points, listen
from arm_dynamics.ros.topics.controller_topics import state_points
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.topic_driver import STATE_TIMEOUT

SendGoal: Any = FollowJointTrajectory.Impl.SendGoalService.Request
TOLERANCES = (
    *("path_tolerance", "component_path_tolerance"),
    *("goal_tolerance", "component_goal_tolerance"),
)


class TooLarge(FollowJointTrajectory.Goal):
    """Goal that was not converted; ``reason`` is the exceeded limit."""

    reason = ""


def limited_action() -> Any:
    """Return a FollowJointTrajectory whose server receives a TooLarge for goals beyond the limits.

    Return FollowJointTrajectory itself if the layout of the C structure is unknown.
    """
    if not is_known(SendGoal):
        return FollowJointTrajectory
    request = guarded(SendGoal, _request_in_limits)
    service = derived(FollowJointTrajectory.Impl.SendGoalService, {"Request": request})
    impl = type("Impl", (FollowJointTrajectory.Impl,), {"SendGoalService": service})
    return derived(FollowJointTrajectory, {"Impl": impl})


def _request_in_limits(address: int) -> Any:
    """Return the request in C as an object."""
    request: Any = structure(SendGoal).from_address(address)
    goal = request.goal
    try:
        for trajectory in (goal.trajectory, goal.multi_dof_trajectory):
            check_names(trajectory.joint_names.size, 0)
            check_points(trajectory.points.size)
        for tolerances in TOLERANCES:
            check_names(getattr(goal, tolerances).size, 0)
    except InvalidValue as error:
        rejected = TooLarge()
        rejected.reason = str(error)
        result = SendGoal(goal=rejected)
        result.goal_id.uuid = list(request.goal_id.uuid)
        return result
    return from_c(SendGoal, address)


def read_goal(message: Any) -> GoalRequest:
    """Return the request of a goal; raise GoalRejected for invalid content.

    A goal for joints with several degrees of freedom is invalid.
    Tolerances of acceleration are ignored, because accelerations are not measured.
    """
    if isinstance(message, TooLarge):
        raise GoalRejected(ErrorCode.INVALID_GOAL, message.reason)
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


PERIOD = 0.05
"""Time [s] between two feedbacks, and maximum delay of a result."""


@dataclass(eq=False)
class _Running:
    """Goal handle and the future of its result; an invalid goal has no ``goal``."""

    handle: Any
    future: Any
    goal: Goal | None = None


class FollowJointTrajectoryServer:
    """Action server in the services' thread; the loop's thread checks the goals."""

    def __init__(
        self, node: Node, frame: str, goals: GoalHandler, interruption: Callable[[], str]
    ) -> None:
        """``interruption`` returns why no state of the arm can come, "" if time is only paused."""
        self.reject_invalid, self._interruption = True, interruption
        self._frame, self._goals, self._events = frame, goals, goals.loop.events
        self._accepted: Goal | GoalResult | None = None
        self._running: dict[bytes, _Running] = {}
        self._last_state = (-1.0, 0.0)  # its time, and when it was first seen [s]
        self._timer = wall_timer(node, PERIOD, self._update_goals)
        self._timer.cancel()
        self.server = ActionServer(
            node,
            limited_action(),
            "~/follow_joint_trajectory",
            execute_callback=self._execute,
            handle_accepted_callback=self._begin,
            goal_callback=self._accept,
            cancel_callback=self._cancel,
        )

    def _accept(self, request: FollowJointTrajectory.Goal) -> GoalResponse:
        try:
            self._accepted = self._goals.accept(read_goal(request))
        except GoalRejected as error:
            self._events.report("goal_rejected", f"{ErrorCode(error.code).name}: {error}")
            if self.reject_invalid:
                return GoalResponse.REJECT
            self._accepted = GoalResult(ErrorCode(error.code), str(error))
        return GoalResponse.ACCEPT

    def _begin(self, handle: Any) -> None:
        """Store the handle of the goal that was accepted last, before any other goal."""
        running = _Running(handle, Future())
        if isinstance(self._accepted, GoalResult):
            running.future.set_result(self._accepted)
        else:
            running.goal = self._accepted
            self._timer.reset()
        self._running[bytes(handle.goal_id.uuid)] = running
        handle.execute()

    async def _execute(self, handle: Any) -> FollowJointTrajectory.Result:
        """Wait for the result; the executor serves other callbacks during this time."""
        key = bytes(handle.goal_id.uuid)
        result: GoalResult = await self._running[key].future
        del self._running[key]
        if result.canceled:
            handle.canceled()
        elif result.code == ErrorCode.SUCCESSFUL:
            handle.succeed()
        else:
            handle.abort()
        code = int(result.code)
        return FollowJointTrajectory.Result(error_code=code, error_string=result.text)

    def _cancel(self, handle: Any) -> CancelResponse:
        running = self._running.get(bytes(handle.goal_id.uuid))
        if running is None or running.goal is None or running.goal.result is not None:
            return CancelResponse.REJECT
        self._goals.cancel(running.goal)
        return CancelResponse.ACCEPT

    def _update_goals(self) -> None:
        """Publish feedback and the results from the loop's thread."""
        state, now = self._goals.loop.state, time.monotonic()
        if state is not None and state.time != self._last_state[0]:
            self._last_state = (state.time, now)
        missing = now - self._last_state[1] > STATE_TIMEOUT
        waiting = [r for r in self._running.values() if r.goal is not None and not r.future.done()]
        for running in waiting:
            self._update(running, running.goal, missing=missing)
        if not waiting:
            self._timer.cancel()

    def _update(self, running: _Running, goal: Any, *, missing: bool) -> None:
        """Publish feedback on one goal or set its result; ``missing``: no states are received."""
        loop = self._goals.loop
        if missing and goal.canceling:
            text = f"canceled; no joint state for {STATE_TIMEOUT:g} s"
            goal.finish(ErrorCode.SUCCESSFUL, text, canceled=True)
        elif loop.driver.inactive:  # perhaps without any further state
            goal.finish(ErrorCode.INVALID_GOAL, f"interrupted: {loop.driver.inactive}")
        elif missing and (reason := self._interruption()):
            self._goals.cancel(goal)
            goal.finish(ErrorCode.INVALID_GOAL, f"interrupted: {reason}")
        if goal.result is not None:
            if goal.result.code != ErrorCode.SUCCESSFUL:
                self._events.report("goal_aborted", f"{goal.result.code.name}: {goal.result.text}")
            running.future.set_result(goal.result)
        elif loop.latest is not None:
            state, reference, _ = loop.latest
            desired, actual, error = state_points(loop, state, reference)
            feedback = FollowJointTrajectory.Feedback(
                header=header(self._frame, state.time),
                joint_names=list(loop.arm.joint_names),
                desired=desired,
                actual=actual,
                error=error,
            )
            running.handle.publish_feedback(feedback)


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
