"""Objective of gains: errors, overshoot, effort variation and margins over all cases."""

from __future__ import annotations

import cmath
from dataclasses import dataclass, replace
from math import pi
from typing import Any

import numpy as np

from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.gain_space import GainSpace
from arm_dynamics.batch.tuning.margins import linear_controller_at, sampled_plant
from arm_dynamics.batch.tuning.python_controller import with_gains
from arm_dynamics.batch.tuning.validation import MAX_RESIDUAL_ERROR
from arm_dynamics.control.linear_controller import NEUTRAL, closed_loop_map
from arm_dynamics.core.arrays import Matrix, Vector, check_float
from arm_dynamics.core.errors import InvalidValue

FACTORS = (2.0, 0.5, cmath.exp(-1j * pi / 6))
"""Factors on all gains with which the loop must be stable: 6 dB up and down, 30 degrees of phase.
K. J. Åström, R. M. Murray, Feedback Systems (2008), section 9.3, recommend 2 to 5, and 30 to 60
degrees."""
MAX_CASES = 8
"""Linearized cases, in addition to the nominal arm at its initial configuration."""
DIVERGED_COST = 1e3
"""Smallest cost [rad s] of a case that diverges; largest cost of any other."""


@dataclass(frozen=True, eq=False)
class SampledLoop:
    """An arm at rest at ``q`` [rad]: Φ, Γ over one control period."""

    q: Vector
    phi: Matrix
    gamma: Matrix


@dataclass(frozen=True, eq=False)
class MarginPenalty:
    """R = max over loops and FACTORS f of max(0, ρ - 1), ρ the spectral radius with f times H, J.

    A complex factor rotates the phase of the whole loop in both directions, of z^k and of its
    conjugate. R is computed over one control period and does not depend on the time step.
    """

    space: GainSpace
    cases: Cases
    loops: tuple[SampledLoop, ...]

    @classmethod
    def of(cls, space: GainSpace, cases: Cases) -> MarginPenalty:
        """Linearize the nominal arm at its initial configuration, and cases at their targets.

        Without a linear loop, as with backlash, R = 0.
        """
        arm = cases.arm
        held = [(arm, arm.configuration("initial"))]
        held += [(cases.true_arm(k), cases.target[k]) for k in range(min(MAX_CASES, len(cases)))]
        c, loops = cases.conditions, []
        for actual, q in held:
            try:
                phi, gamma = sampled_plant(actual, q, c.period, c.interface)
                linear_controller_at(space.controller, q, c.period, c.interface)
            except InvalidValue:
                continue
            loops.append(SampledLoop(q, phi, gamma))
        return cls(space, cases, tuple(loops))

    def __call__(self, x: Vector) -> Vector:
        """Return R (m,) of points (m, size)."""
        penalties, c = np.zeros(len(x)), self.cases.conditions
        for k in range(len(x) if self.loops else 0):
            gains = self.space.gains(x[k : k + 1])
            rows = {name.partition(".")[2]: row[0] for name, row in gains.items()}
            controller = with_gains(self.space.controller, rows)
            closed = []
            for loop in self.loops:
                linear: Any = linear_controller_at(controller, loop.q, c.period, c.interface)
                for factor in FACTORS:
                    scaled = replace(linear, H=factor * linear.H, J=factor * linear.J)
                    closed.append(closed_loop_map(loop.phi, loop.gamma, scaled, delay=int(c.delay)))
            values = np.linalg.eigvals(np.array(closed))
            radius = np.where(np.abs(values - 1) > NEUTRAL, np.abs(values), 0.0).max()
            penalties[k] = max(0.0, float(radius) - 1.0)
        return penalties


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
        batch = self.cases.run(self.space.controller, self.space.gains(x), outputs=("effort",))
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
