"""Minimum of an expensive function: CMA-ES by generations, then a Nelder-Mead simplex."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import minimize

from arm_dynamics.batch.tuning.evaluation_log import EvaluationLog
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.requirements import to_install

Costs = Callable[[Vector], Vector]
"""Points (m, n) -> costs (m,)."""
INITIAL_SPREAD = 0.4
"""Standard deviation of the first generation."""
EVOLUTION_FRACTION = 0.9
"""Fraction of the budget for the evolution; the rest is for the simplex."""
SIMPLEX_STEP = 0.05
"""Edge of the first simplex."""
POPULATION = 24
POINT_TOLERANCE, COST_TOLERANCE = 1e-4, 1e-7
"""Evolution and simplex end if points, or costs, differ by less."""


@dataclass(frozen=True)
class Budget:
    """Limits of a search: evaluated points, and time [s] after which no generation starts."""

    evaluations: int
    seconds: float = inf

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise InvalidValue(f"budget = {self.evaluations} evaluations; expected at least 1")
        if self.seconds != inf:
            check_float("seconds", self.seconds, above=0)


@dataclass(frozen=True)
class Generation:
    """Points just evaluated: their total number, the best cost, the standard deviation of x.

    A simplex evaluates single points: the standard deviation is that of the last size + 1.
    """

    stage: str
    evaluations: int
    best: float
    spread: float
    replayed: bool


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Best point, its cost, and the reason of the end: "converged", "budget" or "stopped"."""

    x: Vector
    cost: float
    history: tuple[Generation, ...]
    ended: str

    @property
    def tried(self) -> int:
        """Number of evaluated points."""
        return self.history[-1].evaluations


class _Spent(Exception):
    """The budget is used up."""


@dataclass(eq=False)
class GainOptimizer:
    """Minimization of f(x), |x_i| <= bound, from x = 0; reproducible by seed and evaluations.

    The start is evaluated first, so that the result is never worse. ``observe`` is called with each
    generation. Ctrl-C ends the search and keeps the best point; before the first evaluation it is
    raised to the caller.

    References
    ----------
    N. Hansen, A. Ostermeier, Evolutionary Computation 9 (2001).
    J. Nelder, R. Mead, Computer Journal 7 (1965).

    """

    costs: Costs
    size: int
    bound: float
    seed: int = 0
    population: int = POPULATION
    log: EvaluationLog = field(default_factory=EvaluationLog)
    observe: Callable[[Generation], None] = lambda generation: None

    def run(self, budget: Budget) -> SearchResult:
        """Search until convergence or the end of ``budget``.

        Raises
        ------
        ArmDynamicsError
            If the library cma is missing.

        """
        self._budget, self._until = budget, time.monotonic() + budget.seconds
        self._tried, self._history = 0, list[Generation]()
        self._x, self._best, self._last = np.zeros(self.size), inf, np.zeros((0, self.size))
        require_cma()
        ended = "converged"
        try:
            self._cost("start", np.zeros((1, self.size)))
            self._evolve()
            self._refine()
        except _Spent:
            ended = "budget"
        except KeyboardInterrupt:
            if not self._history:
                raise
            ended = "stopped"
        return SearchResult(self._x, self._best, tuple(self._history), ended)

    def _evolve(self) -> None:
        """Run CMA-ES by generations; its random generator is independent of the global one."""
        random = np.random.default_rng([self.seed, self.size])
        options = {
            "randn": lambda *shape: random.standard_normal(shape), "seed": np.nan,
            "popsize": self.population, "bounds": [-self.bound, self.bound],
            "tolx": POINT_TOLERANCE, "tolfun": COST_TOLERANCE,
            "verbose": -9, "verb_log": 0, "verb_disp": 0, "signals_filename": None,
        }  # fmt: skip
        start = np.zeros(self.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cma about its own defaults
            evolution = require_cma().CMAEvolutionStrategy(start, INITIAL_SPREAD, options)
        limit = EVOLUTION_FRACTION * self._budget.evaluations
        while not evolution.stop() and self._tried + self.population <= limit and self._in_time():
            points = np.array(evolution.ask())
            evolution.tell(list(points), self._cost("evolve", points).tolist())

    def _refine(self) -> None:
        """Run a simplex from the best point; the nearest point replaces one outside the bounds."""
        mark, start = f"refine from {self._tried}", self._x.copy()
        self._last = self._last[:0]

        def one(x: Vector) -> float:
            return float(self._cost(mark, np.clip(x, -self.bound, self.bound)[None])[0])

        simplex = np.vstack([start, start + SIMPLEX_STEP * np.eye(self.size)])
        options: Any = {
            "initial_simplex": simplex, "xatol": POINT_TOLERANCE, "fatol": COST_TOLERANCE,
            "adaptive": True, "maxfev": 10**9,
        }  # fmt: skip
        minimize(one, start, method="Nelder-Mead", options=options)

    def _in_time(self) -> bool:
        return self.log.replaying or time.monotonic() < self._until

    def _cost(self, mark: str, points: Vector) -> Vector:
        """Return the costs of ``points``, from the log as far as it contains them."""
        if self._tried + len(points) > self._budget.evaluations and self._tried:
            raise _Spent
        known = self.log.read(mark, points)
        if known is None:
            if not self._in_time() and self._tried:
                raise _Spent
            costs = self.costs(points)
            self.log.write(mark, points, costs)
        else:
            costs = known
        self._record(mark, points, costs, known is not None)
        return costs

    def _record(self, mark: str, points: Vector, costs: Vector, replayed: bool) -> None:
        """Update the best point and the history, and report the generation."""
        self._tried += len(points)
        k = int(np.argmin(costs))
        if costs[k] < self._best:
            self._x, self._best = points[k].copy(), float(costs[k])
        single = len(points) == 1
        self._last = np.vstack([self._last, points])[-self.size - 1 :] if single else points
        spread = float(self._last.std(axis=0).mean())
        stage = mark.split(maxsplit=1)[0]
        generation = Generation(stage, self._tried, self._best, spread, replayed)
        self._history.append(generation)
        self.observe(generation)


def require_cma() -> Any:
    """Return the library cma, an extra; raises ArmDynamicsError if it is missing."""
    try:
        import cma  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ArmDynamicsError(
            f"gain tuning: cma is not installed; {to_install('tune')}"
        ) from error
    return cma
