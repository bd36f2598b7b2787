"""Gripper of an arm: limited speed and effort, stall detection, held force.

The rules are those of parallel_gripper_action_controller of ros2_controllers: the newest goal
counts, a goal ends at its position or at a stall, and the gripper continues to hold after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from threading import Lock

import numpy as np

from arm_dynamics.control.trajectories.limited_move import Limits, Track, fastest, follow
from arm_dynamics.control.trajectories.trajectory import StopTrajectory, Trajectory
from arm_dynamics.core.arrays import IntArray, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import STOP_TIME

PARAMETERS = (
    Parameter("goal_tolerance", 0.01, "rad or m", "largest position error of a reached goal", 0),
    Parameter("stall_velocity_threshold", 0.001, "rad/s or m/s", "speed below which it stalls", 0),
    Parameter("stall_timeout", 1.0, "s", "time below this speed until a stall", lower=0),
    Parameter("max_effort", 0.0, "N·m or N", "effort without a given one; 0: continuous", lower=0),
    Parameter("max_velocity", 0.0, "rad/s or m/s", "speed without a given one; 0: a quarter", 0),
    Parameter("stiffness", 0.0, "N·m/rad", "of the position servos; 0: not known", lower=0),
)
"""Parameters of a gripper; 0 N·m is the continuous effort, 0 rad/s a quarter of the limit."""
CONTINUOUS_FRACTION = 1 / 3
"""Continuous effort of a motor without a thermal model over its effort limit."""
SPEED_FRACTION, UNLIMITED_SPEED = 0.25, 1.0
"""Default speed over the velocity limit, and that of a joint without one [rad/s or m/s]."""
LEAD = 0.1
"""Largest distance from the measured position to the reference, over the range of the joint."""
SUCCEEDED, ABORTED, CANCELED = "succeeded", "aborted", "canceled"
"""Outcomes of a goal."""


@dataclass(frozen=True, slots=True)
class GripperCommand:
    """Command of the gripper joints, as in control_msgs/ParallelGripperCommand.

    Parameters
    ----------
    joints : Sequence[str]
        Names; without any, one position is that of every gripper joint.
    position : Sequence[float]
        Positions [rad or m].
    velocity, effort : Sequence[float]
        Largest speeds [rad/s or m/s] and efforts [N·m or N]; empty or 0 for the defaults.

    """

    joints: Sequence[str]
    position: Sequence[float]
    velocity: Sequence[float] = ()
    effort: Sequence[float] = ()


@dataclass(frozen=True, slots=True, eq=False)
class GripperResult:
    """Result of a goal: outcome, text, and whether the gripper stalled or reached the position."""

    outcome: str
    text: str
    stalled: bool = False
    reached_goal: bool = False


class GripperGoal:
    """A goal of the gripper joints that is active until it has a ``result``; the first counts.

    Parameters
    ----------
    target, speed, effort : (n,) array
        Positions, largest speeds and largest efforts of the gripper joints.
    held : (n,) array
        Largest efforts after the result.

    """

    def __init__(self, target: Vector, speed: Vector, effort: Vector, held: Vector) -> None:
        self.target, self.speed, self.effort, self.held = target, speed, effort, held
        self.result: GripperResult | None = None
        self.canceling = False
        self._lock = Lock()

    def finish(self, result: GripperResult) -> None:
        """Set the result, unless there is one."""
        with self._lock:
            if self.result is None:
                self.result = result


class Gripper:
    """Motion of the gripper joints of a control loop, while the other joints follow a trajectory.

    The reference moves to the target with limited speed and acceleration, and stays within a lead e
    of the measured position. Controllers of effort are limited to the effort F of the goal, and

    tau = F sign(q_goal - q)

    at a stall. Position servos of the stiffness K apply it by e = F / K. After the result F is at
    most the continuous effort of the motor. A trajectory that moves the gripper ends its goal.

    Parameters
    ----------
    arm : ArmModel
        The driver's arm.

    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm, self.joints = arm, arm.gripper_joints
        self.indices: IntArray = np.array([arm.index(name) for name in self.joints], int)
        at = self.indices
        limit = arm.effort_limit[at]
        motors = np.array([arm.actuators[i].continuous_effort for i in at.tolist()])
        self.continuous_effort: Vector = as_readonly(
            np.where(np.isfinite(motors), np.minimum(motors, limit), CONTINUOUS_FRACTION * limit)
        )
        """Efforts (n,) [N·m or N] that the motors hold indefinitely."""
        top = np.where(np.isfinite(arm.velocity_limit), arm.velocity_limit, UNLIMITED_SPEED)[at]
        self._top = top
        span = arm.upper[at] - arm.lower[at]
        self._lead = LEAD * np.where(np.isfinite(span), span, 1.0)
        self._free = as_readonly(np.full(arm.nv, inf))
        self._goal: GripperGoal | None = None  # the newest one, also after its result
        self._followed: GripperGoal | None = None  # that of the last cycle
        self._lock = Lock()
        self._number, self._time, self._moved_at, self._stalled = -1, 0.0, 0.0, False
        self._moments = np.zeros((len(at), 3))  # q, v and a of the reference
        self._acceleration = self._top / STOP_TIME
        self._bound = self._free
        self.configure()

    def configure(
        self, values: Mapping[str, float] | None = None, *, allow_stalling: bool = False
    ) -> None:
        """Set values of PARAMETERS, and whether a goal that stalls has succeeded.

        Raises UnknownName and InvalidValue.
        """
        self._values = with_defaults("gripper", PARAMETERS, values or {})
        self._allow_stalling = allow_stalling

    @property
    def active_joints(self) -> IntArray:
        """Indices of the gripper joints while a goal moves or holds them, else none."""
        return self.indices if self._followed is not None else self.indices[:0]

    @property
    def stalled_joints(self) -> IntArray:
        """Indices of the gripper joints at a stall, else none."""
        return self.indices if self._followed is not None and self._stalled else self.indices[:0]

    @property
    def effort_bound(self) -> Vector | None:
        """Largest efforts (nv,) [N·m or N] of the controller; None without a goal."""
        return self._bound if self._followed is not None else None

    def goal(self, command: GripperCommand) -> GripperGoal:
        """Return a checked goal.

        Speeds and efforts above the limits of the joints are reduced to them.

        Raises
        ------
        UnknownName
            For a joint that is not one of the gripper.
        InvalidValue
            For missing joints, values that are not finite, positions out of the limits, negative
            speeds or efforts, and an arm without a gripper.

        """
        arm, zero = self._arm, np.zeros(self._arm.nv)
        if not self.joints:
            expected = f"joints behind the tool frame '{arm.tool_frame}'"
            raise _invalid(f"joints of arm '{arm.name}' = none", expected)
        order = self._order(command.joints, len(command.position))
        rows = {"position": command.position, "velocity": command.velocity}
        values = {}
        for name, row in {**rows, "effort": command.effort}.items():
            given = list(row) or [0.0] * len(command.position)
            if len(given) != len(command.position):
                raise _invalid(f"{name}: {len(given)} values", f"{len(command.position)} or none")
            values[name] = np.array([given[k] for k in order])
            lowest, highest = (arm.lower, arm.upper) if name == "position" else (zero, self._free)
            for i, x in zip(self.indices.tolist(), values[name].tolist(), strict=True):
                if not (np.isfinite(x) and lowest[i] <= x <= highest[i]):
                    within = f"{lowest[i]:.6g} to {highest[i]:.6g}"
                    expected = within if name == "position" else "a finite number of at least 0"
                    raise _invalid(f"joint '{arm.joint_names[i]}': {name} = {x:.6g}", expected)
        return self._limited(values["position"], values["velocity"], values["effort"])

    def _order(self, names: Sequence[str], size: int) -> list[int]:
        """Return the index into the values of a command for each gripper joint."""
        if not names and size == 1:
            return [0] * len(self.joints)
        for name in names:
            if name not in self.joints:
                raise UnknownName("gripper joint", name, self.joints)
        if sorted(names) != sorted(self.joints) or size != len(names):
            given = f"joints = {', '.join(names) or 'none'}, {size} positions"
            expected = f"one position of {', '.join(self.joints)}"
            raise _invalid(given, expected)
        return [list(names).index(joint) for joint in self.joints]

    def _limited(self, target: Vector, speed: Vector, effort: Vector) -> GripperGoal:
        """Return a goal with the defaults for 0, within the limits of the joints."""
        values, limit = self._values, self._arm.effort_limit[self.indices]
        usual = values["max_effort"] or self.continuous_effort
        effort = np.minimum(np.where(effort > 0, effort, usual), limit)
        speed = np.where(speed > 0, speed, values["max_velocity"] or SPEED_FRACTION * self._top)
        held = np.minimum(effort, self.continuous_effort)
        rows = (target, np.minimum(speed, self._top), effort, held)
        return GripperGoal(*(as_readonly(row) for row in rows))

    def begin(self, goal: GripperGoal) -> None:
        """Follow a goal from the next cycle; the goal before is aborted. From any thread."""
        with self._lock:
            before, self._goal = self._goal, goal
        if before is not None:
            outcome = CANCELED if before.canceling else ABORTED
            before.finish(GripperResult(outcome, "preempted by another goal"))

    def cancel(self, goal: GripperGoal) -> None:
        """Hold the measured position from the next cycle. From any thread."""
        goal.canceling = True

    def interrupt(self, cause: str) -> None:
        """End the goal and the hold: the trajectory of the loop moves the gripper again."""
        with self._lock:
            goal, self._goal, self._followed = self._goal, None, None
        if goal is not None:
            outcome = CANCELED if goal.canceling else ABORTED
            goal.finish(GripperResult(outcome, f"interrupted: {cause}"))

    def stop(self, state: State, cause: str) -> None:
        """Hold the measured position, and abort the goal, unless the gripper holds an object."""
        goal = self._followed
        if goal is not None and not self._stalled:
            self._hold(state, goal, GripperResult(ABORTED, f"stopped: {cause}"))

    def _hold(self, state: State, goal: GripperGoal, result: GripperResult) -> None:
        at = self.indices
        zero = np.zeros(len(at))
        q = np.clip(state.q[at], self._arm.lower[at], self._arm.upper[at])
        held = self._limited(q, zero, zero)
        held.result = result
        with self._lock:
            if self._goal is goal:
                self._goal = held
        goal.finish(result)

    def reference(
        self,
        reference: Reference,
        state: State,
        trajectory: Trajectory,
        number: int,
        interface: str,
    ) -> Reference:
        """Return the reference of a control cycle, with that of the gripper joints.

        Parameters
        ----------
        reference : Reference
            Reference of the trajectory.
        state : State
            Measured state.
        trajectory : Trajectory
            The active trajectory.
        number : int
            Its number, which a new trajectory changes.
        interface : str
            Command interface of the controller.

        """
        goal = self._goal
        if goal is not None and goal.canceling and goal.result is None:
            self._hold(state, goal, GripperResult(CANCELED, "canceled: holding"))
            goal = self._goal
        if goal is None:
            return reference
        if goal is not self._followed:
            self._start(goal, reference, state)
        elif number != self._number and self._is_moved_by(trajectory, state.q[self.indices]):
            self.interrupt("another trajectory moves the gripper")
            return reference
        self._number = number
        self._observe(goal, state)
        self._advance(goal, state, interface)
        self._time = state.time
        q, v, a = reference.q.copy(), reference.v.copy(), reference.a.copy()
        q[self.indices], v[self.indices], a[self.indices] = self._moments.T
        return replace(reference, q=as_readonly(q), v=as_readonly(v), a=as_readonly(a))

    def _start(self, goal: GripperGoal, reference: Reference, state: State) -> None:
        """Continue at the reference of the gripper, its own or that of the trajectory."""
        at = self.indices
        if self._followed is None:
            self._moments = np.array([reference.q[at], reference.v[at], reference.a[at]]).T
        self._followed, self._stalled = goal, False
        self._time = self._moved_at = state.time
        fastest_speed = np.maximum(goal.speed, np.abs(self._moments[:, 1]))
        self._acceleration = fastest_speed / STOP_TIME
        self._set_bound(goal)

    def _set_bound(self, goal: GripperGoal) -> None:
        bound = np.full(self._arm.nv, inf)
        bound[self.indices] = goal.effort if goal.result is None else goal.held
        self._bound = as_readonly(bound)

    def _is_moved_by(self, trajectory: Trajectory, q: Vector) -> bool:
        """Return whether a trajectory ends neither at the reference nor at ``q`` (n,)."""
        if isinstance(trajectory, StopTrajectory):
            return False
        end, reference = trajectory.at(trajectory.end).q[self.indices], self._moments[:, 0]
        tolerance = self._values["goal_tolerance"] + np.abs(reference - q)
        return bool((np.abs(end - reference) > tolerance).any())

    def _observe(self, goal: GripperGoal, state: State) -> None:
        """Detect a stall, and give the goal its result."""
        values, at = self._values, self.indices
        speed = np.abs(state.v[at])
        released = 0.5 * goal.speed if self._stalled else values["stall_velocity_threshold"]
        reached = bool((np.abs(goal.target - state.q[at]) < values["goal_tolerance"]).all())
        if reached or (speed > released).any():
            self._moved_at, self._stalled = state.time, False
        elif state.time - self._moved_at > values["stall_timeout"]:
            self._stalled = True
        if goal.result is not None or not (reached or self._stalled):
            return
        where = ", ".join(
            f"{name} at {q:.6g}" for name, q in zip(self.joints, state.q[at].tolist(), strict=True)
        )
        if reached:
            goal.finish(GripperResult(SUCCEEDED, f"reached: {where}", reached_goal=True))
        else:
            outcome = SUCCEEDED if self._allow_stalling else ABORTED
            goal.finish(GripperResult(outcome, f"stalled: {where}", stalled=True))
        self._set_bound(goal)

    def _advance(self, goal: GripperGoal, state: State, interface: str) -> None:
        """Move the reference by a cycle towards the target, within its lead."""
        dt, rows, stiffness = state.time - self._time, [], self._values["stiffness"]
        effort = goal.effort if goal.result is None else goal.held
        lead = self._lead
        if interface == "position" and stiffness > 0:
            lead = np.minimum(lead, effort / stiffness)
        elif self._stalled:
            lead = np.zeros(len(lead))  # ``command`` applies the effort
        for k, (q, v, _) in enumerate(self._moments.tolist()):
            limits = Limits(float(goal.speed[k]), float(self._acceleration[k]))
            phases, track = fastest(q, v, float(goal.target[k]), 0.0, limits), Track((), ())
            end = follow(track, 0.0, q, v, phases)
            moment = track.at(dt) if dt < end else (float(goal.target[k]), 0.0, 0.0)
            measured, most = float(state.q[self.indices[k]]), float(lead[k])
            near = min(max(moment[0], measured - most), measured + most)
            rows.append(moment if near == moment[0] else (near, 0.0, 0.0))
        self._moments = np.array(rows)

    def command(self, command: Command, state: State) -> Command:
        """Return the command of a control cycle within the effort, and with it at a stall."""
        goal = self._followed
        if goal is None or command.interface != "effort":
            return command
        value, at = command.value.copy(), self.indices
        bound = self._bound[at]
        value[at] = np.clip(value[at], -bound, bound)
        if self._stalled:
            value[at] = np.sign(goal.target - state.q[at]) * bound
        return replace(command, value=as_readonly(value))


def _invalid(given: str, expected: str) -> InvalidValue:
    return InvalidValue(f"gripper: {given}; expected {expected}")
