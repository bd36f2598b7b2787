"""Nelder and Mead's simplex as a value that asks for points and is told their costs.

The variant of Perl's module Math::Amoeba, whose path ends at the published gains of five_dof to
all their digits: vertices at the start and at one step along each axis; reflection 1, expansion 2,
contraction 1/2, shrinking 1/2; a reflected point that beats the worst is kept before it is
contracted; the centroid is carried along, not summed anew, as in its later versions; ends at a
relative spread of costs. scipy's ends by another rule, and drops a reflected point that it
contracts in vain: another path, and the path is what reaches the digits.

Sources: J. A. Nelder, R. Mead, A simplex method for function minimization, Computer Journal 7
(1965); W. H. Press et al., Numerical Recipes (1986), section 10.4; J. A. R. Williams and T. Chau,
Math::Amoeba, whose order of operations is kept, as rounding decides the last digits.

Which points a simplex is likely to ask for next: they are judged beside the one it asks for.

A simplex taken to where its costs hardly differ, one point after another or many at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from arm_dynamics.core.errors import InvalidValue

Point = tuple[float, ...]
ZERO_COST_TOLERANCE = 1e-16
"""Keeps the spread of zero costs a number."""
REFLECTION, EXPANSION, CONTRACTION = 1.0, 2.0, 0.5


class Simplex(NamedTuple):
    """Vertices, their costs, and ``requested``: the points whose costs it waits for.

    stage: "start", "reflect", "expand", "contract" or "shrink"; last: what the cost told last
    was, one of ``OUTCOMES``; best, second, worst: places of the least, second largest and
    largest cost; moved: the vertex that was replaced last; tried: a point with its cost.
    """

    vertices: tuple[Point, ...]
    costs: tuple[float, ...]
    requested: tuple[Point, ...]
    stage: str = "start"
    last: str = "start"
    centroid: Point | None = None
    moved: int = -1
    best: int = 0
    second: int = 0
    worst: int = 0
    tried: tuple[Point, float] = ((), 0.0)

    @property
    def spread(self) -> float:
        """2 |f_worst - f_best| / (|f_worst| + |f_best|)."""
        worst, best = self.costs[self.worst], self.costs[self.best]
        return 2 * abs(worst - best) / (abs(worst) + abs(best) + ZERO_COST_TOLERANCE)

    def updated(self, costs: Sequence[float]) -> Simplex:
        """The simplex after the costs of the points that it ``requested`` for."""
        return STAGES[self.stage](self, costs)


def begin(start: Point, step: float) -> Simplex:
    """A simplex at ``start`` and at ``step`` from it along each axis."""
    axes = range(len(start))
    beside = (tuple(x + step * (i == j) for j, x in enumerate(start)) for i in axes)
    vertices = (start, *beside)
    return Simplex(vertices, (), vertices)


OUTCOMES: dict[str, dict[str, Callable[[Simplex], float]]] = {
    "reflect": {
        "better": lambda s: s.costs[s.best] - 1.0,
        "between": lambda s: 0.5 * (s.costs[s.best] + s.costs[s.second]),
        "outside": lambda s: 0.5 * (s.costs[s.second] + s.costs[s.worst]),
        "inside": lambda s: s.costs[s.worst] + 1.0,
    },
    "expand": {
        "further": lambda s: s.costs[s.best] - 2.0,
        "enough": lambda s: s.costs[s.best],
    },
    "contract": {
        "nearer": lambda s: 0.5 * (s.costs[s.best] + s.costs[s.second]),
        "no nearer": lambda s: s.costs[s.worst],
    },
}
"""Stage → what the cost of its one point may turn out to be → a cost that stands for it."""


def _started(s: Simplex, costs: Sequence[float]) -> Simplex:
    return _reflect(s._replace(costs=tuple(costs), last="start"))


def _reflected(s: Simplex, costs: Sequence[float]) -> Simplex:
    (point,), cost = s.requested, costs[0]
    assert s.centroid is not None
    if cost < s.costs[s.best]:
        further = _beyond(s.centroid, point, -EXPANSION)
        return s._replace(requested=(further,), stage="expand", last="better", tried=(point, cost))
    if cost < s.costs[s.second]:
        return _reflect(_moved(s, point, cost, "between"))
    outside = cost < s.costs[s.worst]
    s = _moved(s, point, cost, "outside") if outside else s._replace(last="inside")
    assert s.centroid is not None
    nearer = _beyond(s.centroid, s.vertices[s.worst], -CONTRACTION)
    return s._replace(requested=(nearer,), stage="contract")


def _expanded(s: Simplex, costs: Sequence[float]) -> Simplex:
    if costs[0] < s.costs[s.best]:
        return _reflect(_moved(s, s.requested[0], costs[0], "further"))
    return _reflect(_moved(s, *s.tried, "enough"))


def _contracted(s: Simplex, costs: Sequence[float]) -> Simplex:
    if costs[0] < s.costs[s.worst]:
        return _reflect(_moved(s, s.requested[0], costs[0], "nearer"))
    best = s.vertices[s.best]
    vertices = tuple(v if v is best else _beyond(best, v, -CONTRACTION) for v in s.vertices)
    asked = tuple(v for v in vertices if v is not best)
    return s._replace(vertices=vertices, requested=asked, stage="shrink", last="no nearer")


def _shrunk(s: Simplex, costs: Sequence[float]) -> Simplex:
    every = (*costs[: s.best], s.costs[s.best], *costs[s.best :])
    return _reflect(s._replace(costs=every, centroid=None))


STAGES = {
    "start": _started,
    "reflect": _reflected,
    "expand": _expanded,
    "contract": _contracted,
    "shrink": _shrunk,
}


def _moved(s: Simplex, point: Point, cost: float, last: str) -> Simplex:
    """With ``point`` in place of the worst vertex."""
    w = s.worst
    vertices = (*s.vertices[:w], point, *s.vertices[w + 1 :])
    costs = (*s.costs[:w], cost, *s.costs[w + 1 :])
    return s._replace(vertices=vertices, costs=costs, last=last, moved=w)


def _reflect(s: Simplex) -> Simplex:
    """The next iteration: order the vertices, ask for the worst one's mirror image."""
    best, second, worst = _order(s.costs)
    centroid, vertex = s.centroid, s.vertices[worst]
    if centroid is None:
        others = [v for i, v in enumerate(s.vertices) if i != worst]
        centroid = tuple(sum(xs) / len(others) for xs in zip(*others, strict=True))
    elif s.moved != worst:
        pairs = zip(centroid, s.vertices[s.moved], vertex, strict=True)
        centroid = tuple(c + (new - old) / len(vertex) for c, new, old in pairs)
    mirror = _beyond(centroid, vertex, REFLECTION)
    return Simplex(
        s.vertices, s.costs, (mirror,), "reflect", s.last, centroid, s.moved, best, second, worst
    )


def _order(costs: Sequence[float]) -> tuple[int, int, int]:
    """Places of the least, the second largest and the largest cost; the first of equal ones."""
    best, (second, worst) = 0, (1, 0) if costs[0] > costs[1] else (0, 1)
    for i, cost in enumerate(costs):
        if cost < costs[best]:
            best = i
        if cost > costs[worst]:
            second, worst = worst, i
        elif cost > costs[second] and i != worst:
            second = i
    return best, second, worst


def _beyond(origin: Point, point: Point, factor: float) -> Point:
    """origin + factor (origin - point)."""
    return tuple([o + factor * (o - x) for o, x in zip(origin, point, strict=True)])


MAX_OUTCOMES = 4
"""Futures looked at for each point that is wanted."""


class OutcomePredictor:
    """Odds of what comes next, learnt from what came: by stage and by what was told before."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def learn(self, before: Simplex, after: Simplex) -> None:
        """``before`` was told a cost and became ``after``."""
        self._seen[before.stage, before.last][after.last] += 1

    def odds(self, simplex: Simplex) -> dict[str, float]:
        """Outcome → (times seen + 1) / (times of all + outcomes)."""
        seen, outcomes = self._seen[simplex.stage, simplex.last], OUTCOMES[simplex.stage]
        every = len(outcomes) + sum(seen.values())
        return {name: (seen[name] + 1) / every for name in outcomes}

    def points(self, simplex: Simplex, known: Mapping[Point, float], width: int) -> list[Point]:
        """Points of unknown cost, at most ``width``: those asked for, then the likeliest ones."""
        chosen: dict[Point, None] = {}
        futures: list[tuple[float, int, Simplex, float | None]] = [(-1.0, 0, simplex, None)]
        looked = 0
        while futures and len(chosen) < width and looked < MAX_OUTCOMES * width:
            weight, _, future, guess = heappop(futures)
            looked += 1
            if guess is not None:
                future = future.updated((guess,))
            chosen.update(dict.fromkeys(p for p in future.requested if p not in known))
            self._branch(futures, weight, future, known, looked)
        return list(chosen)[:width]

    def _branch(
        self,
        futures: list[tuple[float, int, Simplex, float | None]],
        weight: float,
        future: Simplex,
        known: Mapping[Point, float],
        looked: int,
    ) -> None:
        """Add what may follow ``future``; its costs stand where they are known."""
        costs = [known.get(p) for p in future.requested]
        if None not in costs:
            after = future.updated([known[p] for p in future.requested])
            heappush(futures, (weight, 10 * looked, after, None))
        elif future.stage in OUTCOMES:
            for k, (name, share) in enumerate(self.odds(future).items()):
                guess = OUTCOMES[future.stage][name](future)
                heappush(futures, (weight * share, 10 * looked + k, future, guess))


Costs = Callable[[Sequence[Point]], Sequence[float]]
"""Costs of some points; a point's cost must not depend on its company."""


@dataclass(frozen=True)
class StoppingRule:
    """When a descent ends: relative spread of the vertices' costs, or iterations."""

    tolerance: float
    iterations: int = 200


@dataclass(frozen=True)
class SimplexResult:
    """Best vertex, its cost, iterations; points the simplex asked for, those judged, calls made."""

    point: Point
    cost: float
    iterations: int
    requested: int
    evaluated: int
    calls: int


def minimize_simplex(
    costs: Costs,
    start: Point,
    step: float,
    rule: StoppingRule,
    *,
    width: int = 1,
    observe: Callable[[SimplexResult], None] = lambda descent: None,
) -> SimplexResult:
    """min f from ``start``, with ``width`` points in a call of ``costs``.

    The simplex takes the same path, bit for bit, for every width: points beyond those that it
    asks for are the likeliest next ones, and their costs serve when they are asked for.
    ``observe`` hears of every call. Raises InvalidValue for a width below 1.
    """
    if width < 1:
        raise InvalidValue(f"width = {width}: at least 1")
    simplex, known, foresight = begin(start, step), dict[Point, float](), OutcomePredictor()
    asked, iterations, calls = 0, 0, 0
    while True:
        while all(point in known for point in simplex.requested):
            asked += len(simplex.requested)
            after = simplex.updated([known[point] for point in simplex.requested])
            foresight.learn(simplex, after)
            simplex = after
            if simplex.stage == "reflect":
                ended = simplex.spread < rule.tolerance or iterations > rule.iterations
                if ended:
                    best = simplex.best
                    point, cost = simplex.vertices[best], simplex.costs[best]
                    return SimplexResult(point, cost, iterations, asked, len(known), calls)
                iterations += 1
        points = foresight.points(simplex, known, width)
        known.update(zip(points, map(float, costs(points)), strict=True))
        calls += 1
        point, cost = min(known.items(), key=lambda item: item[1])
        observe(SimplexResult(point, cost, iterations, asked, len(known), calls))
