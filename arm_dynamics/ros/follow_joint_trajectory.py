"""From a FollowJointTrajectory goal to the package's own request.

The action ``~/follow_joint_trajectory``: goals in, feedback and verdicts out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future

from arm_dynamics.control.goals.goal import ErrorCode, Goal, GoalResult, ToleranceOverrides
from arm_dynamics.control.goals.goal_handler import GoalHandler, GoalRequest, rejecting_with
from arm_dynamics.core.errors import GoalRejected
from arm_dynamics.ros.controller_state import state_points
from arm_dynamics.ros.conversions import header, to_seconds
from arm_dynamics.ros.decode import check_names
from arm_dynamics.ros.size_limits import TooLarge, limited_action


def read_goal(message: Any) -> GoalRequest:
    """The request; raises GoalRefused for what no joint here can do.

    Tolerances of acceleration are left alone: no acceleration is measured.
    """
    if isinstance(message, TooLarge):
        raise GoalRejected(ErrorCode.INVALID_GOAL, message.why)
    trajectory = message.trajectory
    with rejecting_with(ErrorCode.INVALID_GOAL):
        check_names(len(trajectory.joint_names), max(map(len, trajectory.joint_names), default=0))
    _refuse_other_joints(message)
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


def _refuse_other_joints(message: Any) -> None:
    """Joints of several axes, which arms here do not have."""
    other = (
        *message.multi_dof_trajectory.joint_names,
        *(t.joint_name for t in message.component_path_tolerance),
        *(t.joint_name for t in message.component_goal_tolerance),
    )
    if other:
        text = f"joint '{other[0]}' has several axes: joints of one axis are expected"
        raise GoalRejected(ErrorCode.INVALID_JOINTS, text)


def _tolerances(messages: Iterable[Any]) -> ToleranceOverrides:
    return {t.name: (t.position, t.velocity) for t in messages}


PERIOD = 0.05
"""Time [s] between two feedbacks, and until a verdict is told."""
STATE_TIMEOUT = 1.0
"""Time [s] without a state after which a canceled goal no longer waits for the arm to stand."""


@dataclass(eq=False)
class _Running:
    """Who waits for the end of a goal; one that was refused has none."""

    handle: Any
    over: Any
    goal: Goal | None = None


class FollowJointTrajectoryServer:
    """Everything here runs in the thread of services; the loop's thread judges the goals."""

    def __init__(self, node: Node, frame: str, goals: GoalHandler) -> None:
        self.reject_invalid = True
        self._frame, self._goals, self._events = frame, goals, goals.loop.events
        self._accepted: Goal | GoalResult | None = None
        self._running: dict[bytes, _Running] = {}
        self._heard = (-1.0, 0.0)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._look, clock=steady)
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
            self._events.report("goal_refused", f"{ErrorCode(error.code).name}: {error}")
            if self.reject_invalid:
                return GoalResponse.REJECT
            self._accepted = GoalResult(ErrorCode(error.code), str(error))
        return GoalResponse.ACCEPT

    def _begin(self, handle: Any) -> None:
        """The handle of what was just accepted, before any other goal can come."""
        running = _Running(handle, Future())
        if isinstance(self._accepted, GoalResult):
            running.over.set_result(self._accepted)
        else:
            running.goal = self._accepted
            self._timer.reset()
        self._running[bytes(handle.goal_id.uuid)] = running
        handle.execute()

    async def _execute(self, handle: Any) -> FollowJointTrajectory.Result:
        """Wait for the verdict; the executor goes on with other things meanwhile."""
        key = bytes(handle.goal_id.uuid)
        verdict: GoalResult = await self._running[key].over
        del self._running[key]
        return self._told(handle, verdict)

    def _told(self, handle: Any, verdict: GoalResult) -> FollowJointTrajectory.Result:
        """The result, once the goal's state says the same."""
        if verdict.canceled:
            handle.canceled()
        elif verdict.code == ErrorCode.SUCCESSFUL:
            handle.succeed()
        else:
            handle.abort()
        code = int(verdict.code)
        return FollowJointTrajectory.Result(error_code=code, error_string=verdict.text)

    def _cancel(self, handle: Any) -> CancelResponse:
        running = self._running.get(bytes(handle.goal_id.uuid))
        if running is None or running.goal is None or running.goal.result is not None:
            return CancelResponse.REJECT
        self._goals.cancel(running.goal)
        return CancelResponse.ACCEPT

    def _look(self) -> None:
        """Pass on what the loop's thread has judged."""
        silent = self._silent()
        waiting = [r for r in self._running.values() if r.goal is not None and not r.over.done()]
        for running in waiting:
            self._pass_on(running, running.goal, silent=silent)
        if not waiting:
            self._timer.cancel()

    def _pass_on(self, running: _Running, goal: Any, *, silent: bool) -> None:
        if silent and goal.canceling:
            text = f"canceled; no state of the arm came for {STATE_TIMEOUT:g} s"
            goal.finish(ErrorCode.SUCCESSFUL, text, canceled=True)
        if goal.result is None:
            self._feed_back(running.handle)
            return
        if goal.result.code != ErrorCode.SUCCESSFUL:
            self._events.report("goal_aborted", f"{goal.result.code.name}: {goal.result.text}")
        running.over.set_result(goal.result)

    def _silent(self) -> bool:
        state, now = self._goals.loop.state, time.monotonic()
        if state is not None and state.time != self._heard[0]:
            self._heard = (state.time, now)
        return now - self._heard[1] > STATE_TIMEOUT

    def _feed_back(self, handle: Any) -> None:
        if self._goals.loop.latest is None:
            return
        state, reference, _ = self._goals.loop.latest
        desired, actual, error = state_points(self._goals.loop, state, reference)
        feedback = FollowJointTrajectory.Feedback(
            header=header(self._frame, state.time),
            joint_names=list(self._goals.loop.arm.joint_names),
            desired=desired,
            actual=actual,
            error=error,
        )
        handle.publish_feedback(feedback)
