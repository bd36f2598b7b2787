"""The published gain search of five_dof: Nelder-Mead over P, then over I, to the same gains.

V = P e + I Σ e for R2, R3 and R5, holding (0, -1.1, 0.3, 0, 0) for 3 s; the objective is
Σ |e| [rad] over the 30000 calls, see ``dynamechs.objective``. P starts at (6, 5, 1) with steps of
0.1; then I at (0.1, 0.1, 0.1) with steps of 0.01, P fixed. The variant of Math::Amoeba with a
tolerance of 1e-4 (``simplex_search``) gives the published gains to all digits: the search only
compares costs, so the gains are equal if every comparison is.

``improve`` searches P and I together and finds an objective about fifty times smaller at the same
configuration and time step. These gains hold no other configuration; they are for comparison only.

References
----------
AffectiveSilicon, Forward Dynamics Model of a 5 Degree-of-Freedom Robot Arm using DynaMechs (2023).

"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from published_gains import PUBLISHED_I, PUBLISHED_P
from simplex_search import (
    Point,
    SimplexResult,
    StoppingRule,
    minimize_simplex,
)

from arm_dynamics.batch.tuning.gain_optimizer import Budget, GainOptimizer, Generation
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import CONTROLLED, objective, published_arm

Objectives = Callable[[Matrix, Matrix], Vector]
"""Gains P, I [V/rad], shape (m, joints) each -> objectives [rad], shape (m,)."""
RULE = StoppingRule(tolerance=1e-4)
START_P, STEP_P = (6.0, 5.0, 1.0), 0.1
START_I, STEP_I = (0.1, 0.1, 0.1), 0.01
OBJECTIVE_P, OBJECTIVE_PI = 16.3888758427019, 0.305710199012247
"""Published objectives [rad] of P, and of P and I."""
BEST_P = (54687.282037303085, 12203.909716814382, 4967.256619320427)
BEST_I = (463.8710389409981, 136.50997742313115, 70.58983719662525)
"""Gains [V/rad] found by ``improve(16000, seed=3)``: 0.0066084 rad. All digits matter: gains
rounded to six digits give 3 % more."""
LOG_RATIO_BOUND = 6.0
"""Bound of |ln| of a gain over the published one in ``improve``."""


def objectives_of(arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> Objectives:
    """Return ``dynamechs.objective`` over rows of gains, 3 s in steps of 1e-4 s.

    It uses the generated kernel; without CasADi or numba, or if the arm has no kernel, the function
    itself: the same to 1e-9 and slower, which a RuntimeWarning states once.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    joints : sequence of str
        Controlled joints.

    Raises
    ------
    InvalidValue
        If the arm has no published step.

    """
    try:
        from published_kernel import PublishedKernel  # noqa: PLC0415 - numba

        return PublishedKernel(arm, joints).objectives
    except ArmDynamicsError as error:
        objective(arm, np.zeros(len(joints)), joints=tuple(joints), duration=1e-4)  # or it raises
        _warn_once(str(error))
    except ModuleNotFoundError as error:
        _warn_once(f"{error.name} is not installed")

    def one_by_one(p: Matrix, i: Matrix) -> Vector:
        rows = zip(p, i, strict=True)
        return np.array([objective(arm, *row, joints=tuple(joints)) for row in rows])

    return one_by_one


@cache
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"the published objective has no kernel, slower: {reason}", RuntimeWarning, stacklevel=3
    )


@dataclass(frozen=True)
class PublishedSearch:
    """Results of the two stages, and their time [s]."""

    p: SimplexResult
    i: SimplexResult
    seconds: float

    @property
    def gains(self) -> dict[str, tuple[float, float]]:
        """Joint to P, I [V/rad]."""
        return dict(zip(CONTROLLED, zip(self.p.point, self.i.point, strict=True), strict=True))


def search(
    objectives: Objectives | None = None,
    observe: Callable[[str, SimplexResult], None] = lambda stage, result: None,
) -> PublishedSearch:
    """Run both stages.

    Parameters
    ----------
    objectives : callable, optional
        Objective, default: that of the published arm.
    observe : callable
        Called with the stage, "P" or "I", and its best result after each evaluation.

    """
    evaluate = objectives_of(published_arm()) if objectives is None else objectives
    start = time.perf_counter()

    def with_p(points: Sequence[Point]) -> list[float]:
        p = np.array(points)
        costs: list[float] = evaluate(p, np.zeros_like(p)).tolist()
        return costs

    p = minimize_simplex(with_p, START_P, STEP_P, RULE, lambda result: observe("P", result))

    def with_i(points: Sequence[Point]) -> list[float]:
        i = np.array(points)
        costs: list[float] = evaluate(np.tile(p.point, (len(i), 1)), i).tolist()
        return costs

    i = minimize_simplex(with_i, START_I, STEP_I, RULE, lambda result: observe("I", result))
    return PublishedSearch(p, i, time.perf_counter() - start)


@dataclass(frozen=True, eq=False)
class ImprovedGains:
    """Gains P, I [V/rad], shape (joints,), and their objective [rad]."""

    p: Vector
    i: Vector
    objective: float


def improve(
    budget: int = 6000,
    *,
    seed: int = 0,
    objectives: Objectives | None = None,
    observe: Callable[[Generation], None] = lambda generation: None,
) -> ImprovedGains:
    """Minimize the objective over P and I together.

    Parameters
    ----------
    budget : int
        Evaluations.
    seed : int
        Seed.
    objectives : callable, optional
        Objective, default: that of the published arm.
    observe : callable
        Called with each generation.

    Raises
    ------
    InvalidValue
        If ``budget`` is below 1.
    ArmDynamicsError
        If the library cma is missing.

    """
    evaluate = objectives_of(published_arm()) if objectives is None else objectives
    start = np.array([gains[j] for gains in (PUBLISHED_P, PUBLISHED_I) for j in CONTROLLED])

    def costs(x: Matrix) -> Vector:
        p, i = np.hsplit(start * np.exp(x), 2)
        return np.log(evaluate(p, i))

    result = GainOptimizer(costs, start.size, LOG_RATIO_BOUND, seed, observe=observe).run(
        Budget(budget)
    )
    p, i = np.split(start * np.exp(result.x), 2)
    return ImprovedGains(p, i, float(np.exp(result.cost)))
