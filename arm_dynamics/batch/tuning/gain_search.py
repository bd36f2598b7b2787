"""The whole gain search: cases, search, and what the found gains are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.case_sampling import draw_cases
from arm_dynamics.batch.tuning.cases import Cases
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

UNSEEN = 1_000_003
"""Added to the seed of the search: the seed of cases that it has not seen."""


@dataclass(frozen=True, eq=False)
class TuningTask:
    """What is searched: gains ``names`` of ``law``, from its own ones, over ``cases`` cases."""

    arm: ArmModel
    law: Controller
    names: tuple[str, ...] = ("p", "i", "d")
    conditions: CaseDistribution = field(default_factory=CaseDistribution)
    weights: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    cases: int = 32
    population: int = POPULATION
    seed: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """All that the way of the search depends on, its budget apart."""
        start = {name: self.law.gains[name].tolist() for name in sorted(self.law.gains)}
        return {
            "arm": self.arm.name, "model": _digest(self.arm),
            "controller": type(self.law).__name__, "gains": list(self.names),
            "start": start, "cases": self.cases, "population": self.population, "seed": self.seed,
            "weights": asdict(self.weights), **asdict(self.conditions),
        }  # fmt: skip


def _digest(arm: ArmModel) -> str:
    """What tells arms of one name apart."""
    load = arm.payload.mass, np.asarray(arm.payload.centre).tolist()
    whole = repr((arm.urdf, arm.joints, arm.gravity.tolist(), load))
    return sha256(whole.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class TuningResult:
    """Found gains, to ``gain_space.DIGITS`` digits, and the law with them.

    before, after (cases,): J_c [rad s] of the start and of the found gains.
    """

    task: TuningTask
    cases: Cases
    found: SearchResult
    law: Controller
    gains: dict[str, dict[str, float]]
    initial_costs: Vector
    final_costs: Vector
    cost_before: float
    cost: float

    @property
    def worst_case(self) -> int:
        """Number of the training case that costs most with the found gains."""
        return int(np.argmax(self.final_costs))

    @property
    def best_case(self) -> int:
        """Number of the training case that costs least with the found gains."""
        return int(np.argmin(self.final_costs))


def tune(
    task: TuningTask,
    budget: Budget,
    tape: EvaluationLog | None = None,
    observe: Callable[[Generation], None] = lambda generation: None,
) -> TuningResult:
    """Search gains for ``task``; the same for its settings and a budget of evaluations.

    Raises what ``gain_space``, ``draw`` and ``GainOptimizer`` raise, InvalidValue for fewer than 4
    points a generation.
    """
    if task.population < 4:
        raise InvalidValue(f"population = {task.population}: at least 4 is expected")
    space = gain_space(task.law, task.names)
    cases = draw_cases(task.arm, task.cases, task.seed, task.conditions)
    objective = Objective.of(space, cases, task.weights)
    search = GainOptimizer(
        objective,
        space.size,
        space.bound,
        task.seed,
        task.population,
        tape or EvaluationLog(),
        observe,
    )
    found = search.run(budget)
    gains = space.by_joint(found.x)
    rows = {name: np.array([row[name] for row in gains.values()]) for name in task.names}
    both = np.stack([np.zeros(space.size), space.point(rows)])
    costs = objective.by_case(both)
    totals = objective.total(both, costs).tolist()
    return TuningResult(task, cases, found, with_gains(task.law, rows), gains, *costs, *totals)


def validation_cases(task: TuningTask, count: int) -> Cases:
    """Cases drawn as those of the search, with another seed."""
    return draw_cases(task.arm, count, task.seed + UNSEEN, task.conditions)


def compare_gains(tuned: TuningResult, cases: Cases) -> dict[str, ValidationResult]:
    """Validation results of the tuned gains and of the initial gains."""
    return {
        "found gains": validate(cases, tuned.law),
        "gains at the start": validate(cases, tuned.task.law),
    }


def stability_margins(tuned: TuningResult) -> tuple[tuple[Margins, ...], tuple[Margins, ...]]:
    """Of every joint: margins at the initial pose, and the least over the training cases.

    Exact arm, command held over the period, no dry friction. The arm of each case, at the case's
    target. Raises InvalidValue where the loop is not linear or a pose cannot be held.
    """
    c, law, cases = tuned.task.conditions, tuned.law, tuned.cases

    def at(arm: ArmModel, q: Vector) -> tuple[Margins, ...]:
        return joint_margins(arm, law, q, c.period, int(c.delay), c.interface)

    every = [at(cases.true_arm(k), cases.target[k]) for k in range(len(cases))]
    here = at(cases.arm, cases.arm.configuration("initial"))
    return here, tuple(min_margins(joint) for joint in zip(*every, strict=True))
