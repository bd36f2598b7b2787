"""How far from where they should be joints may be: in position, in velocity.

What holds for every goal that does not say otherwise, and how fast a canceled one stops.

A trajectory that somebody waits for: how well it must be followed, and how it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Lock

import numpy as np

from arm_dynamics.control.trajectories.stop_trajectory import default_deceleration
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import position_error

ERASED = -1.0
"""In a goal: no tolerance, whatever the default is; 0 there is the default."""

ToleranceOverrides = Mapping[str, tuple[float, float]]
"""Joint → position and velocity as a goal gives them."""


@dataclass(frozen=True, slots=True, eq=False)
class Tolerances:
    """Largest |reference - measured| of every joint of ``arm``; inf where any error will do.

    position (nv,) [rad or m], of continuous joints modulo one turn; velocity (nv,) [rad/s or m/s].
    """

    arm: ArmModel
    position: Vector
    velocity: Vector
    any_error: bool = field(init=False)
    """Whether nothing at all is asked for."""

    def __post_init__(self) -> None:
        """Look once what every tick would ask."""
        asked = np.isfinite(self.position).any() or np.isfinite(self.velocity).any()
        object.__setattr__(self, "any_error", not asked)

    @classmethod
    def of(cls, arm: ArmModel, position: Vector, velocity: Vector) -> Tolerances:
        """From parameters, where 0 stands for any error."""
        return cls(arm, _or_any(position), _or_any(velocity))

    def overridden_by(
        self, kind: str, names: Sequence[str], given: ToleranceOverrides
    ) -> Tolerances:
        """With what a goal gives: 0 is the default (this one), -1 none at all.

        Raises UnknownName for a joint that there is not, InvalidValue for another negative or a
        non-finite number, both naming ``kind``.
        """
        columns = {"position": self.position.copy(), "velocity": self.velocity.copy()}
        for joint, values in given.items():
            if joint not in names:
                raise UnknownName(f"joint of a {kind} tolerance", joint, tuple(names))
            for (part, column), value in zip(columns.items(), values, strict=True):
                what = f"joint '{joint}': {kind} tolerance, {part} = {value:g}"
                i = names.index(joint)
                column[i] = _taken(what, value, float(column[i]))
        return Tolerances(
            self.arm, as_readonly(columns["position"]), as_readonly(columns["velocity"])
        )

    def satisfied(self, state: State, reference: Reference) -> bool:
        """Whether every joint is within them."""
        return self.any_error or bool(
            (np.abs(position_error(self.arm, reference.q, state.q)) <= self.position).all()
            and (np.abs(reference.v - state.v) <= self.velocity).all()
        )

    def violations(self, names: Sequence[str], state: State, reference: Reference) -> Iterator[str]:
        """Each joint that is further off: what of it, by how much, and how much is allowed."""
        for part, unit, error, limit in (
            ("position", "rad", position_error(self.arm, reference.q, state.q), self.position),
            ("velocity", "rad/s", reference.v - state.v, self.velocity),
        ):
            for i in np.flatnonzero(~(np.abs(error) <= limit)).tolist():
                yield (
                    f"joint '{names[i]}': {part} error {error[i]:.6g} {unit} exceeds the"
                    f" tolerance {limit[i]:.6g}"
                )


def _or_any(values: Vector) -> Vector:
    return as_readonly(np.where(np.asarray(values) > 0, values, np.inf))


def _taken(what: str, value: float, default: float) -> float:
    if value == 0.0:
        return default
    if value == ERASED:
        return float("inf")
    if not 0 < value < float("inf"):
        raise InvalidValue(f"{what}: positive, 0 (the default) or -1 (none) is allowed")
    return value


OF_JOINT = (
    Parameter("trajectory", 0.0, "rad", "largest error on the path; 0: any", lower=0),
    Parameter("goal", 0.0, "rad", "largest error at the end; 0: any", lower=0),
    Parameter(
        "max_deceleration_on_cancel", None, "rad/s²", "rate of stopping; 0: at once", lower=0
    ),
)
OF_GOAL = (
    Parameter("goal_time", 0.0, "s", "longest wait for the goal after the end; 0: any", lower=0),
    Parameter("stopped_velocity_tolerance", 0.01, "rad/s", "speed at the end; 0: any", lower=0),
)


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Default tolerances and times of goals; vectors are (nv,)."""

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
        """From the parameters of joints and of goals; those left out have their defaults.

        Raises UnknownName for a parameter that there is not, InvalidValue out of its range.
        """
        usual, given = default_values(arm), joints or {}
        rows = [
            with_defaults(f"joint '{name}'", OF_JOINT, {**usual[name], **given.get(name, {})})
            for name in arm.joint_names
        ]
        whole = with_defaults("constraints", OF_GOAL, general or {})
        column = {p.name: as_readonly([row[p.name] for row in rows]) for p in OF_JOINT}
        any_speed = as_readonly([0.0] * arm.nv)
        stopped = as_readonly([whole["stopped_velocity_tolerance"]] * arm.nv)
        return cls(
            path=Tolerances.of(arm, column["trajectory"], any_speed),
            goal=Tolerances.of(arm, column["goal"], stopped),
            goal_time=whole["goal_time"],
            max_deceleration=column["max_deceleration_on_cancel"],
        )


def default_values(arm: ArmModel) -> dict[str, dict[str, float]]:
    """Joint → parameter → default, for those that the arm's limits decide too."""
    rates = default_deceleration(arm).tolist()
    return {
        name: {"trajectory": 0.0, "goal": 0.0, "max_deceleration_on_cancel": rate}
        for name, rate in zip(arm.joint_names, rates, strict=True)
    }


class ErrorCode(IntEnum):
    """How a goal ended, in the numbers of control_msgs/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True, slots=True)
class GoalResult:
    """The end of a goal: its code, what there is to say, and whether it was canceled."""

    code: ErrorCode
    text: str
    canceled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GoalTolerances:
    """What a goal asks for beside its trajectory.

    ``path`` holds until the trajectory's end, ``goal`` within ``goal_time`` [s] after it; 0 waits
    for ever.
    """

    path: Tolerances
    goal: Tolerances
    goal_time: float


class Goal:
    """Under way until it has a ``result``; the first one counts."""

    def __init__(self, names: Sequence[str], demands: GoalTolerances) -> None:
        self._names, self.demands = names, demands
        self.result: GoalResult | None = None
        self.canceling = False
        self.note = ""
        """What is to be added to the verdict's text."""
        self._lock = Lock()

    def finish(self, code: ErrorCode, text: str, *, canceled: bool = False) -> None:
        """End it, unless it has ended."""
        with self._lock:
            if self.result is None:
                self.result = GoalResult(code, text + self.note, canceled)

    def observe(self, time: float, end: float, state: State, reference: Reference) -> None:
        """Judge one instant: trajectory time and the trajectory's end [s], where the arm is."""
        if time < end:
            self._judge_path(state, reference)
        elif self.demands.goal.satisfied(state, reference):
            self.finish(
                ErrorCode.SUCCESSFUL, f"reached {time - end:.3f} s after the trajectory's end"
            )
        elif self.demands.goal_time and time > end + self.demands.goal_time:
            self._judge_goal(state, reference)

    def _judge_path(self, state: State, reference: Reference) -> None:
        path = self.demands.path
        if not path.satisfied(state, reference):
            worst = next(path.violations(self._names, state, reference))
            self.finish(
                ErrorCode.PATH_TOLERANCE_VIOLATED, f"{worst} at {state.time:.3f} s, on the path"
            )

    def _judge_goal(self, state: State, reference: Reference) -> None:
        worst = next(self.demands.goal.violations(self._names, state, reference))
        late = f"{self.demands.goal_time:g} s after the trajectory's end"
        self.finish(ErrorCode.GOAL_TOLERANCE_VIOLATED, f"{worst} at {state.time:.3f} s, {late}")
