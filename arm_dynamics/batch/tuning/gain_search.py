"""Gain tuning by optimization: cases, search, and validation of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.cases import Cases, draw_cases
from arm_dynamics.batch.tuning.evaluation_log import EvaluationLog
from arm_dynamics.batch.tuning.gain_optimizer import (
    POPULATION,
    Budget,
    GainOptimizer,
    Generation,
    SearchResult,
)
from arm_dynamics.batch.tuning.gain_space import gain_space
from arm_dynamics.batch.tuning.margins import Margins, joint_margins, min_margins
from arm_dynamics.batch.tuning.objective import Objective, ObjectiveWeights
from arm_dynamics.batch.tuning.python_controller import with_gains
from arm_dynamics.batch.tuning.validation import ValidationResult, validate
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel

VALIDATION_SEED_OFFSET = 1_000_003
"""Seed of the validation cases minus the seed of the search."""


@dataclass(frozen=True, eq=False)
class TuningTask:
    """What is optimized.

    Attributes
    ----------
    arm : ArmModel
        Nominal arm.
    controller : Controller
        Controller, with the initial gains.
    names : tuple of str
        Optimized gains.
    conditions : CaseDistribution
        Distribution of the training cases.
    weights : ObjectiveWeights
        Weights of the objective.
    cases : int
        Number of training cases.
    population : int
        Points per generation, at least 4.
    seed : int
        Seed of cases and search.

    """

    arm: ArmModel
    controller: Controller
    names: tuple[str, ...] = ("p", "i", "d")
    conditions: CaseDistribution = field(default_factory=CaseDistribution)
    weights: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    cases: int = 32
    population: int = POPULATION
    seed: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that the path of the search depends on, except its budget."""
        start = {name: gains.tolist() for name, gains in sorted(self.controller.gains.items())}
        arm = self.arm
        load = arm.payload.mass, np.asarray(arm.payload.center).tolist()
        model = arm.urdf, arm.joints, arm.gravity.tolist(), load
        return {
            "arm": arm.name, "model": sha256(repr(model).encode()).hexdigest()[:16],
            "controller": type(self.controller).__name__, "gains": list(self.names),
            "start": start, "cases": self.cases, "population": self.population, "seed": self.seed,
            "weights": asdict(self.weights), **asdict(self.conditions),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class TuningResult:
    """Optimized gains, to ``gain_space.DIGITS`` digits, and the controller with them.

    Attributes
    ----------
    task : TuningTask
        Task.
    cases : Cases
        Training cases.
    found : SearchResult
        Result of the optimizer.
    controller : Controller
        Controller with the tuned gains.
    gains : dict
        Joint to the tuned gains.
    initial_costs, final_costs : Vector
        J_c of initial and tuned gains [rad s], shape (cases,).
    cost_before, cost : float
        J of initial and tuned gains [rad s].

    """

    task: TuningTask
    cases: Cases
    found: SearchResult
    controller: Controller
    gains: dict[str, dict[str, float]]
    initial_costs: Vector
    final_costs: Vector
    cost_before: float
    cost: float

    @property
    def worst_case(self) -> int:
        """Number of the training case with the largest final cost."""
        return int(np.argmax(self.final_costs))

    @property
    def best_case(self) -> int:
        """Number of the training case with the smallest final cost."""
        return int(np.argmin(self.final_costs))


def tune(
    task: TuningTask,
    budget: Budget,
    log: EvaluationLog | None = None,
    observe: Callable[[Generation], None] = lambda generation: None,
) -> TuningResult:
    """Optimize the gains of ``task``; the result depends on its settings and the evaluations only.

    Parameters
    ----------
    task : TuningTask
        Task.
    budget : Budget
        Evaluations and time.
    log : EvaluationLog, optional
        Log of an earlier search, which is continued.
    observe : callable
        Called with each generation.

    Raises
    ------
    InvalidValue, UnknownName, ArmDynamicsError
        As ``gain_space``, ``draw_cases`` and ``GainOptimizer``; or for a population below 4.

    """
    if task.population < 4:
        raise InvalidValue(f"population = {task.population}; expected at least 4")
    space = gain_space(task.controller, task.names)
    cases = draw_cases(task.arm, task.cases, task.seed, task.conditions)
    objective = Objective.of(space, cases, task.weights)
    search = GainOptimizer(
        objective,
        space.size,
        space.bound,
        task.seed,
        task.population,
        log or EvaluationLog(),
        observe,
    )
    found = search.run(budget)
    gains = space.by_joint(found.x)
    rows = {name: np.array([row[name] for row in gains.values()]) for name in task.names}
    both = np.stack([np.zeros(space.size), space.point(rows)])
    costs = objective.by_case(both)
    totals = objective.total(both, costs).tolist()
    controller = with_gains(task.controller, rows)
    return TuningResult(task, cases, found, controller, gains, *costs, *totals)


def validation_cases(task: TuningTask, count: int) -> Cases:
    """Draw ``count`` cases as those of the search, with another seed."""
    return draw_cases(task.arm, count, task.seed + VALIDATION_SEED_OFFSET, task.conditions)


def compare_gains(tuned: TuningResult, cases: Cases) -> dict[str, ValidationResult]:
    """Return validation results of the tuned gains and of the initial gains."""
    return {
        "tuned gains": validate(cases, tuned.controller),
        "initial gains": validate(cases, tuned.task.controller),
    }


def stability_margins(tuned: TuningResult) -> tuple[tuple[Margins, ...], tuple[Margins, ...]]:
    """Return margins of every joint, at the initial configuration and the smallest over all cases.

    Exact linearization with zero-order hold, without dry friction; of each training case at its
    target, with its actual arm.

    Raises
    ------
    InvalidValue
        If the loop is not linear, or a configuration cannot be held.

    """
    c, controller, cases = tuned.task.conditions, tuned.controller, tuned.cases

    def at(arm: ArmModel, q: Vector) -> tuple[Margins, ...]:
        return joint_margins(arm, controller, q, c.period, int(c.delay), c.interface)

    every = [at(cases.true_arm(k), cases.target[k]) for k in range(len(cases))]
    here = at(cases.arm, cases.arm.configuration("initial"))
    return here, tuple(min_margins(joint) for joint in zip(*every, strict=True))
