"""Nelder-Mead simplex search in the variant of Perl's module Math::Amoeba.

Its path ends at the published gains of five_dof to all digits: vertices at the start and at one
step along each axis; reflection 1, expansion 2, contraction 1/2, shrinking 1/2; a reflected point
better than the worst is kept before it is contracted; the centroid is updated, not summed again;
the search ends at a relative spread of costs. ``scipy.optimize.minimize`` ends by another rule and
drops a reflected point that it contracts without success, which gives another path.

References
----------
J. A. Nelder, R. Mead, A simplex method for function minimization, Computer Journal 7 (1965).
W. H. Press et al., Numerical Recipes (1986), section 10.4.
J. A. R. Williams, T. Chau, Math::Amoeba; the order of operations is the same, because rounding
determines the last digits.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Point = tuple[float, ...]
Costs = Callable[[Sequence[Point]], Sequence[float]]
"""Points -> their costs; a point's cost must not depend on the others."""
ZERO_COST_TOLERANCE = 1e-16
"""Added to the costs, so that the relative spread of zero costs is finite."""
REFLECTION, EXPANSION, CONTRACTION = 1.0, 2.0, 0.5


@dataclass(frozen=True)
class StoppingRule:
    """End of a search: relative spread of the vertices' costs, or number of iterations."""

    tolerance: float
    iterations: int = 200


@dataclass(frozen=True)
class SimplexResult:
    """Best vertex, its cost, iterations, and number of evaluated points."""

    point: Point
    cost: float
    iterations: int
    evaluated: int


def minimize_simplex(
    costs: Costs,
    start: Point,
    step: float,
    rule: StoppingRule,
    observe: Callable[[SimplexResult], None] = lambda result: None,
) -> SimplexResult:
    """Minimize f from ``start``.

    Parameters
    ----------
    costs : callable
        f of several points.
    start : tuple of float
        First vertex.
    step : float
        Distance of the other vertices from it, along each axis.
    rule : StoppingRule
        End of the search.
    observe : callable
        Called with the best result so far after each evaluation.

    Returns
    -------
    SimplexResult
        Best vertex at the end.

    """
    size, evaluated, best_known = len(start), 0, (start, float("inf"))

    def evaluate(*points: Point) -> list[float]:
        nonlocal evaluated, best_known
        values = [float(cost) for cost in costs(points)]
        evaluated += len(points)
        best_known = min(best_known, *zip(points, values, strict=True), key=lambda pair: pair[1])
        observe(SimplexResult(*best_known, iterations, evaluated))
        return values

    iterations, moved = 0, -1
    axes = (tuple(x + step * (i == j) for j, x in enumerate(start)) for i in range(size))
    vertices = [start, *axes]
    values = evaluate(*vertices)
    centroid: Point | None = None
    while True:
        best, second, worst = _ranks(values)
        spread = 2 * abs(values[worst] - values[best])
        spread /= abs(values[worst]) + abs(values[best]) + ZERO_COST_TOLERANCE
        if spread < rule.tolerance or iterations > rule.iterations:
            return SimplexResult(vertices[best], values[best], iterations, evaluated)
        iterations += 1
        if centroid is None:
            others = [v for i, v in enumerate(vertices) if i != worst]
            centroid = tuple(sum(xs) / len(others) for xs in zip(*others, strict=True))
        elif moved != worst:
            pairs = zip(centroid, vertices[moved], vertices[worst], strict=True)
            centroid = tuple(c + (new - old) / size for c, new, old in pairs)
        point = _extrapolated(centroid, vertices[worst], REFLECTION)
        (cost,) = evaluate(point)
        if cost < values[second]:
            if cost < values[best]:
                expanded = _extrapolated(centroid, point, -EXPANSION)
                (expanded_cost,) = evaluate(expanded)
                if expanded_cost < values[best]:
                    point, cost = expanded, expanded_cost
            vertices[worst], values[worst], moved = point, cost, worst
            continue
        if cost < values[worst]:
            vertices[worst], values[worst] = point, cost
        contracted = _extrapolated(centroid, vertices[worst], -CONTRACTION)
        (cost,) = evaluate(contracted)
        moved = worst
        if cost < values[worst]:
            vertices[worst], values[worst] = contracted, cost
            continue
        for i, vertex in enumerate(vertices):
            if i != best:
                vertices[i] = _extrapolated(vertices[best], vertex, -CONTRACTION)
        shrunk = evaluate(*(v for i, v in enumerate(vertices) if i != best))
        values, centroid = [*shrunk[:best], values[best], *shrunk[best:]], None


def _ranks(costs: Sequence[float]) -> tuple[int, int, int]:
    """Return the indices of the smallest, second largest and largest cost; the first of equals."""
    best, (second, worst) = 0, (1, 0) if costs[0] > costs[1] else (0, 1)
    for i, cost in enumerate(costs):
        if cost < costs[best]:
            best = i
        if cost > costs[worst]:
            second, worst = worst, i
        elif cost > costs[second] and i != worst:
            second = i
    return best, second, worst


def _extrapolated(origin: Point, point: Point, factor: float) -> Point:
    """Return origin + factor (origin - point)."""
    return tuple([o + factor * (o - x) for o, x in zip(origin, point, strict=True)])
