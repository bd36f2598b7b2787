"""What is measured of a run.

How good gains are: one number from errors, overshoot and restless efforts over all cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.gain_space import GainSpace
from arm_dynamics.batch.tuning.margin_penalty import MarginPenalty
from arm_dynamics.batch.tuning.validation import MAX_RESIDUAL_ERROR
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.model.arm_model import ArmModel

QUANTITIES = {
    "settling": "s", "overshoot": "rad", "peak_torque": "N·m", "peak_current": "A",
}  # fmt: skip
"""What is found of each run, and its unit."""


def settling_time(error: Vector, period: float, band: float) -> Vector:
    """Time [s] (lanes, nv) from which |error| (lanes, periods, nv) stays within ``band``.

    The end of the last period that ends outside; 0 for none, ∞ where the last one of all does.
    """
    outside = ~(np.abs(error) <= band)
    periods = error.shape[1]
    last = periods - np.argmax(outside[:, ::-1], axis=1)
    count = np.where(outside.any(axis=1), last, 0)
    return np.where(count == periods, np.inf, count * period)


def torque_constant(arm: ArmModel, vary: Mapping[str, Vector]) -> Vector | None:
    """N Kt [N·m/A] at the joint, by lane or of the arm; None unless all joints have DC motors.

    Nor with gear play, where the current is not what the joint feels.
    """
    constants = [actuator.constants for actuator in arm.actuators]
    if any("kt" not in c or c["backlash"] > 0 for c in constants):
        return None
    kt = vary.get("motor.kt", np.array([c["kt"] for c in constants]))
    gear = vary.get("motor.gear_ratio", np.array([c["gear_ratio"] for c in constants]))
    whole: Vector = kt * gear
    return whole


LOST = 1e3
"""Cost [rad s] of a case at least, once the arm has left the finite numbers; at most otherwise."""


@dataclass(frozen=True)
class ObjectiveWeights:
    """Of the worst case against the mean, of the other terms against the IAE.

    overshoot [s], late error beyond BOUND [s], effort's variation [rad s²], missing reserve of
    stability [rad s].
    """

    worst: float = 0.5
    overshoot: float = 0.1
    late: float = 20.0
    effort: float = 2e-3
    reserve: float = 10.0

    def __post_init__(self) -> None:
        check_float("weight worst", self.worst, lower=0, upper=1)
        check_float("weight overshoot", self.overshoot, lower=0)
        check_float("weight late", self.late, lower=0)
        check_float("weight effort", self.effort, lower=0)
        check_float("weight reserve", self.reserve, lower=0)


def case_costs(
    batch: RolloutResult, limit: Vector, steps: Vector, duration: float, w: ObjectiveWeights
) -> Vector:
    """J_c = Σ_j ( ∫|e_j| dt + w_o o_j + w_l l_j + w_u TV(τ_j) / (τ_max,j t_end) ) [rad s].

    e = q_ref - q and overshoot o at the ends of control periods, T Σ|e| for the integral; l is
    the late error's excess over ``validation.BOUND``, above which a case is not held; TV is
    Σ_k |τ_k+1 - τ_k| over them, joints without effort limit (infinite) apart. None depends on
    the time step. At most LOST; a lane lost at step k of N costs LOST (2 - k / N) instead: the
    longer it lasts, the less. ``batch`` records "effort" of every period; limit (nv,) [N·m or N],
    steps (lanes,) N, duration t_end [s].
    """
    with np.errstate(invalid="ignore", over="ignore"):
        restless = np.abs(np.diff(batch.effort, axis=1)).sum(axis=1) / limit
        late = np.maximum(batch.metrics["residual_error"] - MAX_RESIDUAL_ERROR, 0.0)
        terms = batch.metrics["iae"] + w.overshoot * batch.metrics["overshoot"] + w.late * late
        cost = (terms + w.effort * restless / duration).sum(axis=1)
    lost = LOST * (2 - np.clip(batch.failed_step / steps, 0, 1))
    found: Vector = np.where(batch.failed_step >= 0, lost, np.minimum(cost, LOST))
    return found


@dataclass(frozen=True, eq=False)
class Objective:
    """J = (1 - w) mean_c J_c + w max_c J_c + w_r R, w = ``weights.worst``, R see ``MarginPenalty``."""

    space: GainSpace
    cases: Cases
    reserve: MarginPenalty
    weights: ObjectiveWeights = ObjectiveWeights()

    @classmethod
    def of(cls, space: GainSpace, cases: Cases, weights: ObjectiveWeights) -> Objective:
        """With the reserve of the same cases."""
        return cls(space, cases, MarginPenalty.of(space, cases), weights)

    def by_case(self, x: Vector) -> Vector:
        """J_c (m, cases) [rad s] of points (m, size); one rollout."""
        c = self.cases.conditions
        batch = self.cases.run(self.space.law, self.space.gains(x), outputs=("effort",))
        steps = np.tile(np.round(c.duration / self.cases.dt), len(x))
        limit = self.cases.arm.effort_limit
        costs = case_costs(batch, limit, steps, c.duration, self.weights)
        return costs.reshape(len(x), len(self.cases))

    def __call__(self, x: Vector) -> Vector:
        """J (m,) [rad s]."""
        return self.total(x, self.by_case(x))

    def total(self, x: Vector, costs: Vector) -> Vector:
        """J (m,) of points whose J_c (m, cases) are known."""
        w = self.weights.worst
        whole: Vector = (1 - w) * costs.mean(axis=1) + w * costs.max(axis=1)
        return whole + self.weights.reserve * self.reserve(x)
