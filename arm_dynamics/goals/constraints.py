"""What holds for every goal that does not say otherwise, and how fast a canceled one stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.goals.tolerances import Tolerances
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.parameters import Parameter, complete
from arm_dynamics.trajectories.stop_trajectory import usual_deceleration

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
            complete(f"joint '{name}'", OF_JOINT, {**usual[name], **given.get(name, {})})
            for name in arm.joint_names
        ]
        whole = complete("constraints", OF_GOAL, general or {})
        column = {p.name: frozen([row[p.name] for row in rows]) for p in OF_JOINT}
        any_speed = frozen([0.0] * arm.nv)
        stopped = frozen([whole["stopped_velocity_tolerance"]] * arm.nv)
        return cls(
            path=Tolerances.of(arm, column["trajectory"], any_speed),
            goal=Tolerances.of(arm, column["goal"], stopped),
            goal_time=whole["goal_time"],
            max_deceleration=column["max_deceleration_on_cancel"],
        )


def default_values(arm: ArmModel) -> dict[str, dict[str, float]]:
    """Joint → parameter → default, for those that the arm's limits decide too."""
    rates = usual_deceleration(arm).tolist()
    return {
        name: {"trajectory": 0.0, "goal": 0.0, "max_deceleration_on_cancel": rate}
        for name, rate in zip(arm.joint_names, rates, strict=True)
    }
