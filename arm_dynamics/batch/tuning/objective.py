"""Objective of gains: errors, overshoot, effort variation and margins over all cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.gain_space import GainSpace
from arm_dynamics.batch.tuning.margin_penalty import MarginPenalty
from arm_dynamics.batch.tuning.validation import MAX_RESIDUAL_ERROR
from arm_dynamics.core.arrays import Vector, check_float

DIVERGED_COST = 1e3
"""Smallest cost [rad s] of a case that diverges; largest cost of any other."""


@dataclass(frozen=True)
class ObjectiveWeights:
    """Weights of the objective.

    Attributes
    ----------
    worst : float
        Weight of the worst case against the mean, in [0, 1].
    overshoot : float
        Of the overshoot [s], relative to the IAE.
    late : float
        Of the residual error above MAX_RESIDUAL_ERROR [s].
    effort : float
        Of the variation of the effort [rad s²].
    reserve : float
        Of missing stability margins [rad s].

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
    result: RolloutResult, limit: Vector, steps: Vector, duration: float, w: ObjectiveWeights
) -> Vector:
    """Return J_c = Σ_j ( ∫|e_j| dt + w_o o_j + w_l l_j + w_u TV(τ_j) / (τ_max,j t_end) ) [rad s].

    e = q_ref - q and the overshoot o are sampled at the ends of control periods. l is the excess of
    the residual error over MAX_RESIDUAL_ERROR. TV is Σ_k |τ_k+1 - τ_k|, without joints that have no
    effort limit. No term depends on the time step. The cost is at most DIVERGED_COST; a rollout
    that diverges at step k of N costs DIVERGED_COST (2 - k / N) instead: the later, the less.

    Parameters
    ----------
    result : RolloutResult
        Rollouts with "effort" recorded every period.
    limit : Vector
        Effort limits τ_max [N·m or N], shape (nv,).
    steps : Vector
        Time steps N, shape (batch,).
    duration : float
        Simulated time t_end [s].
    w : ObjectiveWeights
        Weights.

    """
    with np.errstate(invalid="ignore", over="ignore"):
        variation = np.abs(np.diff(result.effort, axis=1)).sum(axis=1) / limit
        residual = np.maximum(result.metrics["residual_error"] - MAX_RESIDUAL_ERROR, 0.0)
        terms = result.metrics["iae"] + w.overshoot * result.metrics["overshoot"]
        terms = terms + w.late * residual
        cost = (terms + w.effort * variation / duration).sum(axis=1)
    failed = result.failed_step
    diverged = DIVERGED_COST * (2 - np.clip(failed / steps, 0, 1))
    costs: Vector = np.where(failed >= 0, diverged, np.minimum(cost, DIVERGED_COST))
    return costs


@dataclass(frozen=True, eq=False)
class Objective:
    """J = (1 - w) mean_c J_c + w max_c J_c + w_r R; w = ``weights.worst``, R: MarginPenalty."""

    space: GainSpace
    cases: Cases
    reserve: MarginPenalty
    weights: ObjectiveWeights = ObjectiveWeights()

    @classmethod
    def of(cls, space: GainSpace, cases: Cases, weights: ObjectiveWeights) -> Objective:
        """Return the objective with the margin penalty of the same cases."""
        return cls(space, cases, MarginPenalty.of(space, cases), weights)

    def by_case(self, x: Vector) -> Vector:
        """Return J_c (m, cases) [rad s] of points (m, size), by one batch."""
        c = self.cases.conditions
        batch = self.cases.run(self.space.law, self.space.gains(x), outputs=("effort",))
        steps = np.tile(np.round(c.duration / self.cases.dt), len(x))
        limit = self.cases.arm.effort_limit
        costs = case_costs(batch, limit, steps, c.duration, self.weights)
        return costs.reshape(len(x), len(self.cases))

    def __call__(self, x: Vector) -> Vector:
        """Return J (m,) [rad s]."""
        return self.total(x, self.by_case(x))

    def total(self, x: Vector, costs: Vector) -> Vector:
        """Return J (m,) of points x with known J_c (m, cases)."""
        w = self.weights.worst
        whole: Vector = (1 - w) * costs.mean(axis=1) + w * costs.max(axis=1)
        return whole + self.weights.reserve * self.reserve(x)
