"""A goal of joint_trajectory_controller: tolerances, constraints, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Lock

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import position_error
from arm_dynamics.safety.braking import default_deceleration

ERASED = -1.0
"""In a goal: no tolerance, whatever the default is; 0 is the default."""

ToleranceOverrides = Mapping[str, tuple[float, float]]
"""Joint → position and velocity tolerance of a goal."""


@dataclass(frozen=True, slots=True, eq=False)
class Tolerances:
    """Maximum |reference - measured| of every joint; inf for any error.

    Parameters
    ----------
    arm : ArmModel
        Arm with the joints.
    position : (nv,) array
        Position tolerances [rad or m]; of continuous joints modulo one turn.
    velocity : (nv,) array
        Velocity tolerances [rad/s or m/s].

    """

    arm: ArmModel
    position: Vector
    velocity: Vector
    any_error: bool = field(init=False)
    """Whether every error is within the tolerances."""

    def __post_init__(self) -> None:
        """Compute ``any_error``."""
        limited = np.isfinite(self.position).any() or np.isfinite(self.velocity).any()
        object.__setattr__(self, "any_error", not limited)

    @classmethod
    def of(cls, arm: ArmModel, position: Vector, velocity: Vector) -> Tolerances:
        """Return tolerances from parameters, where 0 stands for any error."""
        return cls(arm, _unlimited_if_zero(position), _unlimited_if_zero(velocity))

    def overridden_by(
        self, kind: str, names: Sequence[str], given: ToleranceOverrides
    ) -> Tolerances:
        """Return the tolerances of a goal: 0 is the default (these), -1 no tolerance.

        Raises
        ------
        UnknownName
            For an unknown joint, naming ``kind``.
        InvalidValue
            For another negative or a non-finite number, naming ``kind``.

        """
        columns = {"position": self.position.copy(), "velocity": self.velocity.copy()}
        for joint, values in given.items():
            if joint not in names:
                raise UnknownName(f"joint of a {kind} tolerance", joint, tuple(names))
            i = names.index(joint)
            for (quantity, column), value in zip(columns.items(), values, strict=True):
                if value == ERASED:
                    column[i] = np.inf
                elif 0 < value < np.inf:
                    column[i] = value
                elif value != 0.0:
                    raise InvalidValue(
                        f"joint '{joint}': {kind} tolerance, {quantity} = {value:g}; expected a"
                        " positive number, 0 (the default) or -1 (no tolerance)"
                    )
        position, velocity = columns.values()
        return Tolerances(self.arm, as_readonly(position), as_readonly(velocity))

    def satisfied(self, state: State, reference: Reference) -> bool:
        """Return whether every joint is within the tolerances."""
        return self.any_error or bool(
            (np.abs(position_error(self.arm, reference.q, state.q)) <= self.position).all()
            and (np.abs(reference.v - state.v) <= self.velocity).all()
        )

    def violations(self, names: Sequence[str], state: State, reference: Reference) -> Iterator[str]:
        """Yield a message with error and tolerance for each violation."""
        for quantity, unit, error, limit in (
            ("position", "rad", position_error(self.arm, reference.q, state.q), self.position),
            ("velocity", "rad/s", reference.v - state.v, self.velocity),
        ):
            for i in np.flatnonzero(~(np.abs(error) <= limit)).tolist():
                yield (
                    f"joint '{names[i]}': {quantity} error = {error[i]:.6g} {unit}; expected within"
                    f" the tolerance {limit[i]:.6g}"
                )


def _unlimited_if_zero(values: Vector) -> Vector:
    return as_readonly(np.where(np.asarray(values) > 0, values, np.inf))


OF_JOINT = (
    Parameter("trajectory", 0.0, "rad", "maximum error on the path; 0: any", lower=0),
    Parameter("goal", 0.0, "rad", "maximum error at the end; 0: any", lower=0),
    Parameter(
        "max_deceleration_on_cancel", None, "rad/s²", "deceleration of a stop; 0: immediate",
        lower=0,
    ),
)  # fmt: skip
OF_GOAL = (
    Parameter("goal_time", 0.0, "s", "maximum time to the goal after the end; 0: any", lower=0),
    Parameter("stopped_velocity_tolerance", 0.01, "rad/s", "velocity at the end; 0: any", lower=0),
)


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Default tolerances and times of goals.

    Parameters
    ----------
    path, goal : Tolerances
        Tolerances on the path and at its end.
    goal_time : float
        Maximum time to the goal after the end of the trajectory [s]; 0: any.
    max_deceleration : (nv,) array
        Deceleration of a canceled goal [rad/s² or m/s²].

    """

    path: Tolerances
    goal: Tolerances
    goal_time: float
    max_deceleration: Vector

    @classmethod
    def of(
        cls,
        arm: ArmModel,
        joints: Mapping[str, Mapping[str, float]] | None = None,
        general: Mapping[str, float] | None = None,
    ) -> Constraints:
        """Return constraints from parameters of joints and of goals; omitted ones are defaults.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        joints : Mapping[str, Mapping[str, float]], optional
            Joint → parameter of OF_JOINT → value.
        general : Mapping[str, float], optional
            Parameter of OF_GOAL → value.

        Raises
        ------
        UnknownName
            For an unknown parameter.
        InvalidValue
            For a value out of its range.

        """
        usual, given = default_values(arm), joints or {}
        rows = [
            with_defaults(f"joint '{name}'", OF_JOINT, {**usual[name], **given.get(name, {})})
            for name in arm.joint_names
        ]
        whole = with_defaults("constraints", OF_GOAL, general or {})
        column = {p.name: as_readonly([row[p.name] for row in rows]) for p in OF_JOINT}
        any_velocity = as_readonly([0.0] * arm.nv)
        stopped = as_readonly([whole["stopped_velocity_tolerance"]] * arm.nv)
        return cls(
            path=Tolerances.of(arm, column["trajectory"], any_velocity),
            goal=Tolerances.of(arm, column["goal"], stopped),
            goal_time=whole["goal_time"],
            max_deceleration=column["max_deceleration_on_cancel"],
        )


def default_values(arm: ArmModel) -> dict[str, dict[str, float]]:
    """Return joint → parameter → default, including those from the arm's limits."""
    rates = default_deceleration(arm).tolist()
    return {
        name: {"trajectory": 0.0, "goal": 0.0, "max_deceleration_on_cancel": rate}
        for name, rate in zip(arm.joint_names, rates, strict=True)
    }


class ErrorCode(IntEnum):
    """Error codes of control_msgs/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True, slots=True)
class GoalResult:
    """Result of a goal.

    Parameters
    ----------
    code : ErrorCode
        Error code of control_msgs/FollowJointTrajectory.
    text : str
        Message.
    canceled : bool
        Whether the goal was canceled.

    """

    code: ErrorCode
    text: str
    canceled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GoalTolerances:
    """Tolerances of one goal.

    ``path`` holds until the trajectory's end, ``goal`` within ``goal_time`` [s] after it; with 0
    the goal waits indefinitely.
    """

    path: Tolerances
    goal: Tolerances
    goal_time: float


class Goal:
    """A goal that is active until it has a ``result``; the first result counts.

    Parameters
    ----------
    names : Sequence[str]
        Joint names.
    tolerances : GoalTolerances
        Tolerances of the goal.

    """

    def __init__(self, names: Sequence[str], tolerances: GoalTolerances) -> None:
        self._names, self.tolerances = names, tolerances
        self.result: GoalResult | None = None
        self.canceling = False
        self.note = ""
        """Text appended to the result."""
        self._lock = Lock()

    def finish(self, code: ErrorCode, text: str, *, canceled: bool = False) -> None:
        """Set the result, unless there is one."""
        with self._lock:
            if self.result is None:
                self.result = GoalResult(code, text + self.note, canceled)

    def observe(self, time: float, end: float, state: State, reference: Reference) -> None:
        """Check one control cycle.

        Parameters
        ----------
        time, end : float
            Trajectory time and the trajectory's end [s].
        state : State
            Measured state.
        reference : Reference
            Reference of the cycle.

        """
        tolerances, goal_time = self.tolerances, self.tolerances.goal_time
        if time < end:
            if not tolerances.path.satisfied(state, reference):
                worst = next(tolerances.path.violations(self._names, state, reference))
                text = f"{worst} at {state.time:.3f} s, on the path"
                self.finish(ErrorCode.PATH_TOLERANCE_VIOLATED, text)
        elif tolerances.goal.satisfied(state, reference):
            text = f"reached {time - end:.3f} s after the trajectory's end"
            self.finish(ErrorCode.SUCCESSFUL, text)
        elif goal_time and time > end + goal_time:
            worst = next(tolerances.goal.violations(self._names, state, reference))
            deadline = f"{goal_time:g} s after the trajectory's end"
            text = f"{worst} at {state.time:.3f} s, {deadline}"
            self.finish(ErrorCode.GOAL_TOLERANCE_VIOLATED, text)
