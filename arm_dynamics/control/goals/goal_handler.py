"""Goals on a control loop: accepted or rejected, checked in every cycle, canceled, preempted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from numpy.typing import ArrayLike

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.goals.goal import (
    Constraints,
    ErrorCode,
    Goal,
    GoalTolerances,
    ToleranceOverrides,
)
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory import StopTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import (
    NO_OPTIONS,
    Options,
    joint_fault,
    parse_trajectory,
)
from arm_dynamics.core.errors import ArmDynamicsError, GoalRejected
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel

IMMEDIATE_MOVE_TIME = 0.05
"""Duration of the motion to a single waypoint that is due immediately [s]."""
OVERRIDDEN = "; another trajectory than the goal's was followed in between"


@dataclass(frozen=True, slots=True, eq=False)
class GoalRequest:
    """A requested goal, as in control_msgs/FollowJointTrajectory.

    Parameters
    ----------
    names : Sequence[str]
        Joint names in the order of the columns.
    times : Sequence[float]
        Times of the waypoints after ``start`` [s].
    positions, velocities, accelerations, efforts : Sequence of arrays
        One row per waypoint, or none [rad, rad/s, rad/s², N·m; m and N for prismatic joints].
    start : float
        Start time [s]; 0 is now.
    path, goal : ToleranceOverrides
        Tolerances by joint.
    goal_time : float
        Maximum time to the goal after the end [s]; 0 is the default, a negative one waits
        indefinitely.

    """

    names: Sequence[str]
    times: Sequence[float]
    positions: Sequence[ArrayLike]
    velocities: Sequence[ArrayLike] = ()
    accelerations: Sequence[ArrayLike] = ()
    efforts: Sequence[ArrayLike] = ()
    start: float = 0.0
    path: ToleranceOverrides = field(default_factory=dict)
    goal: ToleranceOverrides = field(default_factory=dict)
    goal_time: float = 0.0


class GoalHandler:
    """At most one goal at a time, by the rules of joint_trajectory_controller.

    A trajectory without a goal is held to the constraints too: beyond them the arm is stopped and
    holds. ``update`` is called after every cycle by the loop's thread, all other methods by one
    other thread.

    Parameters
    ----------
    loop : ControlLoop
        Loop that follows the goals.

    """

    def __init__(self, loop: ControlLoop) -> None:
        self.loop = loop
        self.constraints = Constraints.of(loop.arm)
        self.allow_partial = self.end_in_motion = self.integrate = False
        self.active: Goal | None = None
        self._number = self._restart_count = 0
        self._watched = self._checked = 0
        self._is_accepting = False
        """Until a goal is active, a trajectory that starts may be its own."""
        self._topic_goal: Goal | None = None
        """Stands for a trajectory from the topic, which is checked as a goal is."""
        self._lock = Lock()
        """Held while ``active`` and what belongs to it are read or replaced."""

    def accept(self, request: GoalRequest) -> Goal:
        """Follow a goal's trajectory from the next cycle; the previous goal is aborted.

        Raises
        ------
        GoalRejected
            With its error code, if a limit of position, velocity or effort is exceeded, the request
            is invalid, or the driver executes no commands. The active goal continues.

        """
        loop, state = self.loop, self._require_active()
        if fault := joint_fault(loop.arm, request.names, partial=self.allow_partial):
            raise GoalRejected(ErrorCode.INVALID_JOINTS, fault)
        options = loop.options(
            integrate=self.integrate,
            end_in_motion=self.end_in_motion,
            partial=self.allow_partial,
            deceleration=self.constraints.max_deceleration,
        )
        trajectory = build_trajectory(loop.arm, request, state.time, options)
        tolerances = goal_tolerances(loop.arm, request, self.constraints)
        goal, restart_count = Goal(loop.arm.joint_names, tolerances), loop.restart_count
        with self._lock:
            self._is_accepting = True
        try:
            with rejecting_with(ErrorCode.INVALID_GOAL):
                loop.follow(trajectory, effort_check=loop.controller.interface == "effort")
            with self._lock:
                before, self.active = self.active, goal
                if before is not None:
                    text = "preempted by another goal"
                    before.finish(ErrorCode.INVALID_GOAL, text, canceled=before.canceling)
                self._number = loop.reference_generator.queued_number
                self._restart_count = restart_count
        finally:
            self._is_accepting = False
        return goal

    def _require_active(self) -> State:
        """Return the state; raises GoalRejected unless the arm follows references now."""
        loop = self.loop
        state, reference = loop.state, loop.reference
        if inactive := loop.driver.inactive:
            cause = inactive
        elif state is None or reference is None:
            cause = "no state of the arm received"
        elif not loop.controller.tracks_reference:
            cause = self._no_tracking()
        else:
            return state
        raise GoalRejected(ErrorCode.INVALID_GOAL, f"not active: {cause}")

    def cancel(self, goal: Goal) -> None:
        """Stop the arm; the goal has its result when the reference is at rest."""
        with self._lock:
            if goal is self.active and goal.result is None:
                goal.canceling = True
                self.loop.request_stop(self.constraints.max_deceleration)
                self._number = self.loop.reference_generator.queued_number

    def update(self) -> None:
        """Check the goal after a control cycle."""
        with self._lock:
            goal, generator = self.active, self.loop.reference_generator
            state, reference = self.loop.state, self.loop.reference
            if state is None or reference is None:
                return
            if self._is_accepting and generator.number != self._checked:
                return
            self._checked = generator.number
            if goal is None:  # also with a pending trajectory: a fast stream always has one
                self._update_topic(state, reference)
                return
            if generator.number < self._number:  # the goal's own trajectory is still pending
                return
            self._watched, self._topic_goal = generator.number, None
            if inactive := self.loop.driver.inactive:
                text = f"interrupted: {inactive}"
                goal.finish(ErrorCode.INVALID_GOAL, text, canceled=goal.canceling)
            elif not self.loop.controller.tracks_reference:
                text = f"interrupted: {self._no_tracking()}"
                goal.finish(ErrorCode.INVALID_GOAL, text, canceled=goal.canceling)
                self.loop.stop_from_state(state, self.constraints.max_deceleration)
            elif self.loop.restart_count != self._restart_count:
                cause = self.loop.events.latest.get("control_restarted", "controller switch")
                text = f"interrupted: {cause}"
                goal.finish(ErrorCode.INVALID_GOAL, text, canceled=goal.canceling)
            elif goal.canceling:
                if self._stop_has_ended():
                    goal.finish(ErrorCode.SUCCESSFUL, "canceled: stopped", canceled=True)
            else:
                self._update_goal(goal, state, reference)
            if goal.result is not None:
                self.active = None

    def _stop_has_ended(self) -> bool:
        """Return whether the stop of a canceled goal has ended, or another trajectory follows."""
        generator = self.loop.reference_generator
        overridden = generator.number != self._number
        # during a pause the reference is at rest before the end of the stop
        paused = generator.clock.factor == 0.0
        trajectory = generator.trajectory
        return overridden or paused or bool(trajectory and generator.time >= trajectory.end)

    def _update_goal(self, goal: Goal, state: State, reference: Reference) -> None:
        generator = self.loop.reference_generator
        assert generator.trajectory is not None
        if generator.number != self._number:
            goal.note = OVERRIDDEN
        goal.observe(generator.time, generator.trajectory.end, state, reference)
        if goal.result is not None and goal.result.code != ErrorCode.SUCCESSFUL:
            self.loop.stop_from_state(state, self.constraints.max_deceleration)

    def _update_topic(self, state: State, reference: Reference) -> None:
        generator, trajectory = self.loop.reference_generator, self.loop.trajectory
        assert trajectory is not None
        if self._watched != generator.number:
            self._watched = generator.number
            moves = trajectory.start < trajectory.end and not isinstance(trajectory, StopTrajectory)
            defaults = self.constraints
            tolerances = GoalTolerances(defaults.path, defaults.goal, defaults.goal_time)
            self._topic_goal = Goal(self.loop.arm.joint_names, tolerances) if moves else None
        goal = self._topic_goal
        if goal is None or not self.loop.controller.tracks_reference:
            return
        goal.observe(generator.time, trajectory.end, state, reference)
        if goal.result is None:
            return
        self._topic_goal = None
        if goal.result.code != ErrorCode.SUCCESSFUL:
            self.loop.events.report(goal.result.code.name.lower(), f"{goal.result.text}: stopped")
            self.loop.stop_from_state(state, self.constraints.max_deceleration)

    def _no_tracking(self) -> str:
        name = type(self.loop.controller).__name__
        return f"controller {name} does not track a reference; expected another one"


@contextmanager
def rejecting_with(code: ErrorCode) -> Iterator[None]:
    """Turn any of the package's errors into GoalRejected with an error code."""
    try:
        yield
    except GoalRejected:
        raise
    except ArmDynamicsError as error:
        raise GoalRejected(code, str(error)) from error


def build_trajectory(
    arm: ArmModel, request: GoalRequest, now: float, options: Options = NO_OPTIONS
) -> JointTrajectory:
    """Return the trajectory of a request; raises GoalRejected.

    A single waypoint that is due immediately gets IMMEDIATE_MOVE_TIME, within the joints' limits.
    """
    is_immediate = not request.start and list(request.times) == [0.0]
    with rejecting_with(ErrorCode.INVALID_GOAL):
        trajectory = parse_trajectory(
            arm,
            request.names,
            [IMMEDIATE_MOVE_TIME] if is_immediate else request.times,
            request.positions,
            request.velocities,
            request.accelerations,
            start=request.start or now,
            efforts=request.efforts,
            options=options,
        )
    if request.start and trajectory.end <= now:
        raise GoalRejected(
            ErrorCode.OLD_HEADER_TIMESTAMP,
            f"trajectory: time of the last waypoint = {trajectory.end:.6g} s; expected a time later"
            f" than now ({now:.6g} s), or the stamp 0",
        )
    return trajectory


def goal_tolerances(arm: ArmModel, request: GoalRequest, default: Constraints) -> GoalTolerances:
    """Return the tolerances of a request, else the default ones; raises GoalRejected."""
    with rejecting_with(ErrorCode.INVALID_GOAL):
        path = default.path.overridden_by("path", arm.joint_names, request.path)
        goal = default.goal.overridden_by("goal", arm.joint_names, request.goal)
    goal_time = request.goal_time or default.goal_time
    return GoalTolerances(path, goal, max(goal_time, 0.0))
