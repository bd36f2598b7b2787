"""A simplex taken to where its costs hardly differ, one point after another or many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arm_dynamics.errors import InvalidValue
from arm_dynamics.tuning.foresight import Foresight
from arm_dynamics.tuning.simplex import Point, begin

Costs = Callable[[Sequence[Point]], Sequence[float]]
"""Costs of some points; a point's cost must not depend on its company."""


@dataclass(frozen=True)
class Rule:
    """When a descent ends: relative spread of the vertices' costs, or iterations."""

    tolerance: float
    iterations: int = 200


@dataclass(frozen=True)
class Descent:
    """Best vertex, its cost, iterations; points the simplex asked for, those judged, calls made."""

    point: Point
    cost: float
    iterations: int
    asked: int
    judged: int
    calls: int


def descend(
    costs: Costs,
    start: Point,
    step: float,
    rule: Rule,
    *,
    width: int = 1,
    observe: Callable[[Descent], None] = lambda descent: None,
) -> Descent:
    """min f from ``start``, with ``width`` points in a call of ``costs``.

    The simplex takes the same path, bit for bit, for every width: points beyond those that it
    asks for are the likeliest next ones, and their costs serve when they are asked for.
    ``observe`` hears of every call. Raises InvalidValue for a width below 1.
    """
    if width < 1:
        raise InvalidValue(f"width = {width}: at least 1")
    simplex, known, foresight = begin(start, step), dict[Point, float](), Foresight()
    asked, iterations, calls = 0, 0, 0
    while True:
        while all(point in known for point in simplex.asked):
            asked += len(simplex.asked)
            after = simplex.told([known[point] for point in simplex.asked])
            foresight.learn(simplex, after)
            simplex = after
            if simplex.stage == "reflect":
                ended = simplex.spread < rule.tolerance or iterations > rule.iterations
                if ended:
                    best = simplex.best
                    point, cost = simplex.vertices[best], simplex.costs[best]
                    return Descent(point, cost, iterations, asked, len(known), calls)
                iterations += 1
        points = foresight.points(simplex, known, width)
        known.update(zip(points, map(float, costs(points)), strict=True))
        calls += 1
        point, cost = min(known.items(), key=lambda item: item[1])
        observe(Descent(point, cost, iterations, asked, len(known), calls))
