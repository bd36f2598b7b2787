"""The minimum of a costly function: CMA-ES by generations, then Nelder and Mead's simplex."""

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
"""Points (m, n) → costs (m,)."""
SPREAD = 0.4
"""Standard deviation of the first generation about the start."""
EVOLVED = 0.9
"""Share of the budget that the evolution may take before the simplex follows."""
SIMPLEX = 0.05
"""Side of the first simplex."""
POPULATION = 24
SMALL_STEP, FLAT = 1e-4, 1e-7
"""Evolution and simplex end once points, or costs, differ by less."""


@dataclass(frozen=True)
class Budget:
    """Points that may be tried, and seconds; one more generation may begin before they end."""

    evaluations: int
    seconds: float = inf

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise InvalidValue(f"budget = {self.evaluations}: at least 1 evaluation is expected")
        if self.seconds != inf:
            check_float("seconds", self.seconds, above=0)


@dataclass(frozen=True)
class Generation:
    """Points just tried: how many so far, best cost so far, spread (standard deviation) of x.

    A simplex tries one point after another: the spread is that of its last size + 1.
    """

    stage: str
    evaluations: int
    best: float
    spread: float
    replayed: bool


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best point, its cost, and why the search ended: "converged", "budget" or "stopped"."""

    x: Vector
    cost: float
    history: tuple[Generation, ...]
    ended: str

    @property
    def tried(self) -> int:
        """Points tried."""
        return self.history[-1].evaluations


class _Spent(Exception):
    """The budget is used up."""


@dataclass(eq=False)
class GainOptimizer:
    """min f(x), |x_i| <= bound, from x = 0; the same for a seed and a budget of evaluations.

    The start itself is tried first, so that the result is never worse. ``observe`` hears of
    every generation. Ctrl-C ends the search and keeps the best; before there is one, it goes
    on to the caller. Sources: N. Hansen and A. Ostermeier, Evolutionary Computation 9 (2001);
    J. Nelder and R. Mead, Computer Journal 7 (1965).
    """

    costs: Costs
    size: int
    bound: float
    seed: int = 0
    population: int = POPULATION
    tape: EvaluationLog = field(default_factory=EvaluationLog)
    observe: Callable[[Generation], None] = lambda generation: None

    def run(self, budget: Budget) -> SearchResult:
        """Search until it converges or ``budget`` ends.

        Raises ArmDynamicsError when the library cma is missing.
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
        evolution = _evolution(self.size, self.bound, self.seed, self.population)
        most = EVOLVED * self._budget.evaluations
        while not evolution.stop() and self._tried + self.population <= most and self._in_time():
            points = np.array(evolution.ask())
            evolution.tell(list(points), self._cost("evolve", points).tolist())

    def _refine(self) -> None:
        """From the best so far; a point outside the bounds is tried at its nearest within."""
        mark, start = f"refine from {self._tried}", self._x.copy()
        self._last = self._last[:0]

        def one(x: Vector) -> float:
            return float(self._cost(mark, np.clip(x, -self.bound, self.bound)[None])[0])

        simplex = np.vstack([start, start + SIMPLEX * np.eye(self.size)])
        options: Any = {
            "initial_simplex": simplex, "xatol": SMALL_STEP, "fatol": FLAT, "adaptive": True,
            "maxfev": 10**9,
        }  # fmt: skip
        minimize(one, start, method="Nelder-Mead", options=options)

    def _in_time(self) -> bool:
        return self.tape.replaying or time.monotonic() < self._until

    def _cost(self, mark: str, points: Vector) -> Vector:
        """Costs of ``points``, from the tape as far as it goes."""
        if self._tried + len(points) > self._budget.evaluations and self._tried:
            raise _Spent
        known = self.tape.read(mark, points)
        if known is None:
            if not self._in_time() and self._tried:
                raise _Spent
            costs = self.costs(points)
            self.tape.write(mark, points, costs)
        else:
            costs = known
        self._note(mark, points, costs, known is not None)
        return costs

    def _note(self, mark: str, points: Vector, costs: Vector, replayed: bool) -> None:
        self._tried += len(points)
        least = int(np.argmin(costs))
        if costs[least] < self._best:
            self._x, self._best = points[least].copy(), float(costs[least])
        alone = len(points) == 1
        self._last = np.vstack([self._last, points])[-self.size - 1 :] if alone else points
        spread = float(self._last.std(axis=0).mean())
        told = Generation(mark.split(maxsplit=1)[0], self._tried, self._best, spread, replayed)
        self._history.append(told)
        self.observe(told)


def _evolution(size: int, bound: float, seed: int, population: int) -> Any:
    """CMA-ES with random numbers of its own: nobody else's are touched, or matter."""
    random = np.random.default_rng([seed, size])
    options = {
        "randn": lambda *shape: random.standard_normal(shape), "seed": np.nan,
        "popsize": population, "bounds": [-bound, bound], "tolx": SMALL_STEP, "tolfun": FLAT,
        "verbose": -9, "verb_log": 0, "verb_disp": 0, "signals_filename": None,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of defaults of its own
        return require_cma().CMAEvolutionStrategy(np.zeros(size), SPREAD, options)


def require_cma() -> Any:
    """The library: an extra, and slow to import; raises ArmDynamicsError without it."""
    try:
        import cma  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ArmDynamicsError(f"the gain search needs cma: {to_install('tune')}") from error
    return cma
