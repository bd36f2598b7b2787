"""Goals on a control loop: taken up or refused, judged at every tick, canceled, preempted."""

from __future__ import annotations

from threading import Lock

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import Constraints, ErrorCode, Goal, GoalTolerances
from arm_dynamics.control.goals.goal_request import (
    GoalRequest,
    build_trajectory,
    check_joints,
    fill_missing_joints,
    goal_tolerances,
    rejecting_with,
)
from arm_dynamics.control.trajectories.stop_trajectory import StopTrajectory
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import GoalRejected
from arm_dynamics.core.state import Reference, State

OVERRIDDEN = "; meanwhile another trajectory than the goal's was followed"


class GoalHandler:
    """At most one goal at a time, by the rules of joint_trajectory_controller.

    A trajectory that is no goal's is held to the constraints too: beyond them the arm is stopped
    where it is, and stays there. ``update`` is called after every tick by the loop's thread, all
    others by one other thread.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self.loop = loop
        self.constraints = Constraints.of(loop.arm)
        self.allow_partial = self.end_in_motion = self.integrate = False
        self.active: Goal | None = None
        self._entered = self._takeovers = 0
        self._watched = 0
        self._topic_goal: Goal | None = None
        """Stands for a trajectory from the topic, which is judged as a goal is."""
        self._lock = Lock()
        """Held while ``active`` and what belongs to it are read or replaced."""

    def accept(self, request: GoalRequest) -> Goal:
        """Follow a goal's trajectory from the next tick on; the one before it is aborted.

        Raises GoalRefused with its code for what cannot be followed as it stands, be it for
        limits of position, velocity or effort; what is under way then goes on.
        """
        state, reference = self.loop.state, self.loop.reference
        if state is None or reference is None:
            raise GoalRejected(
                ErrorCode.INVALID_GOAL, "not active: no state of the arm has come yet"
            )
        if not self.loop.controller.tracks_reference:
            raise GoalRejected(ErrorCode.INVALID_GOAL, f"not active: {self._leads_none()}")
        check_joints(self.loop.arm, request.names, partial=self.allow_partial)
        whole = fill_missing_joints(self.loop.arm, request, self._at_rest(state, reference))
        options = self.loop.options(integrate=self.integrate, end_in_motion=self.end_in_motion)
        trajectory = build_trajectory(self.loop.arm, whole, state.time, options)
        demands = goal_tolerances(self.loop.arm, request, self.constraints)
        restarts = self.loop.restart_count
        effort = self.loop.controller.interface == "effort"
        with rejecting_with(ErrorCode.INVALID_GOAL):
            self.loop.follow(trajectory, effort_check=effort)
        goal = Goal(self.loop.arm.joint_names, demands)
        with self._lock:
            self._preempt()
            self._entered, self._takeovers = self.loop.reference_generator.queued_number, restarts
            self.active = goal
        return goal

    def cancel(self, goal: Goal) -> None:
        """Bring the arm to rest; the goal has its result when the reference is at rest."""
        with self._lock:
            if goal is self.active and goal.result is None:
                goal.canceling = True
                self.loop.request_stop(self.constraints.max_deceleration)
                self._entered = self.loop.reference_generator.queued_number

    def update(self) -> None:
        """Judge the tick that just ended."""
        with self._lock:
            self._update()

    def _update(self) -> None:
        goal, following = self.active, self.loop.reference_generator
        state, reference = self.loop.state, self.loop.reference
        if state is None or reference is None:
            return
        if goal is None:  # be another trajectory pending or not: a fast stream always has one
            self._observe_topic(state, reference)
            return
        if following.number < self._entered:  # the goal's own trajectory is still pending
            return
        self._watched, self._topic_goal = following.number, None
        if not self.loop.controller.tracks_reference:
            text = f"interrupted: {self._leads_none()}"
            goal.finish(ErrorCode.INVALID_GOAL, text, canceled=goal.canceling)
            self.loop.stop_from_state(state, self.constraints.max_deceleration)
        elif self.loop.restart_count != self._takeovers:
            why = self.loop.events.latest.get("took_over", "another control law took over")
            goal.finish(ErrorCode.INVALID_GOAL, f"interrupted: {why}", canceled=goal.canceling)
        elif goal.canceling:
            self._observe_stop(goal)
        else:
            self._judge(goal, state, reference)
        if goal.result is not None:
            self.active = None

    def _observe_stop(self, goal: Goal) -> None:
        following = self.loop.reference_generator
        overridden = following.number != self._entered
        paused = following.clock.factor == 0.0  # the reference stands, before the stop's end
        ended = following.trajectory and following.time >= following.trajectory.end
        if overridden or paused or ended:
            goal.finish(ErrorCode.SUCCESSFUL, "canceled: stopped", canceled=True)

    def _judge(self, goal: Goal, state: State, reference: Reference) -> None:
        following = self.loop.reference_generator
        assert following.trajectory is not None
        if following.number != self._entered:
            goal.note = OVERRIDDEN
        goal.observe(following.time, following.trajectory.end, state, reference)
        if goal.result is not None and goal.result.code != ErrorCode.SUCCESSFUL:
            self.loop.stop_from_state(state, self.constraints.max_deceleration)

    def _observe_topic(self, state: State, reference: Reference) -> None:
        following, trajectory = self.loop.reference_generator, self.loop.trajectory
        assert trajectory is not None
        if self._watched != following.number:
            self._watched = following.number
            moves = trajectory.start < trajectory.end and not isinstance(trajectory, StopTrajectory)
            self._topic_goal = Goal(self.loop.arm.joint_names, self._default()) if moves else None
        goal = self._topic_goal
        if goal is None or not self.loop.controller.tracks_reference:
            return
        goal.observe(following.time, trajectory.end, state, reference)
        if goal.result is None:
            return
        self._topic_goal = None
        if goal.result.code != ErrorCode.SUCCESSFUL:
            self.loop.events.report(goal.result.code.name.lower(), f"{goal.result.text}: stopped")
            self.loop.stop_from_state(state, self.constraints.max_deceleration)

    def _default(self) -> GoalTolerances:
        constraints = self.constraints
        return GoalTolerances(constraints.path, constraints.goal, constraints.goal_time)

    def _leads_none(self) -> str:
        law = type(self.loop.controller).__name__
        return f"the control law {law} follows no reference; another one is expected"

    def _preempt(self) -> None:
        before, self.active = self.active, None
        if before is not None:
            text = "preempted by another goal"
            before.finish(ErrorCode.INVALID_GOAL, text, canceled=before.canceling)

    def _at_rest(self, state: State, reference: Reference) -> Vector:
        """Where joints come to rest (nv,) that no goal names."""
        stop = self.loop.stop_trajectory(self.constraints.max_deceleration).starting_from(
            state.time, reference
        )
        return stop.at(stop.end).q
