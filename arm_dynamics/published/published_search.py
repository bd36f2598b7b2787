"""The objective of the published gain search: by a generated kernel, else one call at a time.

The published gain search of five_dof: Nelder and Mead over P, then over I, to the same gains.

V = P e + I Σe for R2, R3 and R5, holding (0, -1.1, 0.3, 0, 0) for 3 s; the objective is
Σ |e| [rad] over the 30000 calls, see ``dynamechs.objective``. P from (6, 5, 1) with steps of
0.1; then I from (0.1, 0.1, 0.1) with steps of 0.01, the found P kept.
Source: AffectiveSilicon, Forward Dynamics Model of a 5 Degree-of-Freedom Robot Arm using
DynaMechs (2023). Math::Amoeba's variant of the method with a tolerance of 1e-4, see ``simplex``,
gives the published gains to all their digits. Costs decide comparisons alone: gains come out the
same wherever every comparison does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from arm_dynamics.batch.tuning.simplex_search import (
    Point,
    SimplexResult,
    StoppingRule,
    minimize_simplex,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import CONTROLLED, objective, published_arm

Objectives = Callable[[Vector, Vector], Vector]
"""Gains P, I [V/rad], (m, joints) each → objectives (m,) [rad]."""
WIDTH = 4
"""Gains that the kernel judges in the time of one."""


@dataclass(frozen=True)
class ObjectiveEvaluator:
    """``objectives``, and how many gains they take at a time where time counts."""

    objectives: Objectives
    width: int

    def __call__(self, p: Vector, i: Vector) -> Vector:
        """Objectives (m,) [rad] of P, I (m, joints) [V/rad]."""
        return self.objectives(p, i)


def objectives_of(arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> ObjectiveEvaluator:
    """``dynamechs.objective`` over rows of gains, 3 s long with steps of 1e-4 s.

    By the generated kernel; without CasADi or numba, or where it does not serve, by the
    function itself: same results to 1e-9, slower, said once. Raises InvalidValue for an arm
    that has no published step.
    """
    try:
        from arm_dynamics.published.published_kernel import PublishedKernel  # noqa: PLC0415 - numba

        return ObjectiveEvaluator(PublishedKernel(arm, joints).objectives, WIDTH)
    except ArmDynamicsError as error:
        objective(arm, np.zeros(len(joints)), joints=tuple(joints), duration=1e-4)  # or it raises
        _say_once(str(error))
    except ModuleNotFoundError as error:
        _say_once(f"{error.name} is not installed")
    return ObjectiveEvaluator(lambda p, i: _one_by_one(arm, joints, p, i), width=1)


def _one_by_one(arm: ArmModel, joints: Sequence[str], p: Vector, i: Vector) -> Vector:
    rows = zip(p, i, strict=True)
    return np.array([objective(arm, *row, joints=tuple(joints)) for row in rows])


@cache
def _say_once(why: str) -> None:
    warnings.warn(
        f"the published objective has no kernel, slower: {why}", RuntimeWarning, stacklevel=3
    )


RULE = StoppingRule(tolerance=1e-4)
START_P, STEP_P = (6.0, 5.0, 1.0), 0.1
START_I, STEP_I = (0.1, 0.1, 0.1), 0.01
OBJECTIVE_P, OBJECTIVE_PI = 16.3888758427019, 0.305710199012247
"""Published objectives [rad] of the found P, and of P with the found I."""

Observe = Callable[[str, SimplexResult], None]
"""Hears of every call of a stage, "P" or "I": the best so far."""


@dataclass(frozen=True)
class PublishedSearch:
    """The two stages of a search, and how long they took [s]."""

    p: SimplexResult
    i: SimplexResult
    seconds: float

    @property
    def gains(self) -> dict[str, tuple[float, float]]:
        """Joint → P, I [V/rad]."""
        return dict(zip(CONTROLLED, zip(self.p.point, self.i.point, strict=True), strict=True))


def search(
    judge: ObjectiveEvaluator | None = None,
    *,
    width: int | None = None,
    observe: Observe = lambda stage, descent: None,
) -> PublishedSearch:
    """Both stages, ``width`` gains at a time; the same gains, bit for bit, for every width.

    ``judge`` defaults to that of the published arm, ``width`` to what suits it. Raises
    InvalidValue for a width below 1.
    """
    judge = judge or objectives_of(published_arm())
    width = judge.width if width is None else width
    began = time.perf_counter()

    def with_p(points: Sequence[Point]) -> list[float]:
        p = np.array(points)
        return list(judge(p, np.zeros_like(p)))

    p = minimize_simplex(
        with_p, START_P, STEP_P, RULE, width=width, observe=lambda d: observe("P", d)
    )

    def with_i(points: Sequence[Point]) -> list[float]:
        i = np.array(points)
        return list(judge(np.tile(p.point, (len(i), 1)), i))

    i = minimize_simplex(
        with_i, START_I, STEP_I, RULE, width=width, observe=lambda d: observe("I", d)
    )
    return PublishedSearch(p, i, time.perf_counter() - began)
