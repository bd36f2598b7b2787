"""Where a loop turns unstable: a scan for the stable set, then bisection of its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from arm_dynamics.core.errors import InvalidValue

MIN_TIME_STEP, MAX_TIME_STEP = 1e-6, 1.0
"""Time steps [s] that are tried."""
PER_DECADE = 24
SHARP = 1e-9
"""Relative accuracy of an edge."""


@dataclass(frozen=True)
class StableSet:
    """Intervals (low, high), rising, of the tried numbers in which the loop is stable.

    ``open``: the last one reaches the largest number tried, and no edge was found.
    """

    intervals: tuple[tuple[float, float], ...]
    open: bool

    @property
    def largest(self) -> float:
        """Upper end of the lowest interval; 0 where nothing is stable, ∞ where no edge is."""
        if not self.intervals:
            return 0.0
        return inf if self.open and len(self.intervals) == 1 else self.intervals[0][1]


def stable_set(
    stable: Callable[[float], bool], lowest: float = MIN_TIME_STEP, highest: float = MAX_TIME_STEP
) -> StableSet:
    """Every interval of numbers in which ``stable`` holds, seen at 24 numbers a decade.

    Edges are bisected to 1e-9 relative. Raises InvalidValue unless 0 < lowest < highest.
    """
    if not 0 < lowest < highest:
        raise InvalidValue(f"from {lowest:g} to {highest:g}: 0 < lowest < highest is expected")
    count = max(2, round(PER_DECADE * np.log10(highest / lowest)) + 1)
    grid = np.geomspace(lowest, highest, count).tolist()

    def middle(low: float, high: float) -> float | None:
        return sqrt(low * high) if high / low > 1 + SHARP else None

    intervals = _intervals(stable, grid, middle)
    return StableSet(intervals, bool(intervals) and intervals[-1][1] == grid[-1])


def stable_parts(
    stable: Callable[[float], bool], whole: float, shortest: float = MIN_TIME_STEP
) -> StableSet:
    """Intervals of dt = whole / m >= shortest, m = 1, 2, ..., in which ``stable`` holds."""
    most = max(2, round(whole / shortest))
    count = round(PER_DECADE * np.log10(most)) + 2
    grid = sorted({round(m) for m in np.geomspace(1, most, count).tolist()})

    def middle(low: float, high: float) -> float | None:
        return (low + high) // 2 if high - low > 1 else None

    found = _intervals(lambda m: stable(whole / m), [float(m) for m in grid], middle)
    intervals = tuple((whole / high, whole / low) for low, high in reversed(found))
    return StableSet(intervals, bool(found) and found[0][0] == 1)


def largest_stable_dt(
    stable: Callable[[float], bool], shortest: float = MIN_TIME_STEP, longest: float = MAX_TIME_STEP
) -> float:
    """Upper end [s] of the lowest stable interval; 0 without one, ∞ where no edge is found."""
    return stable_set(stable, shortest, longest).largest


def _intervals(
    stable: Callable[[float], bool],
    grid: Sequence[float],
    middle: Callable[[float, float], float | None],
) -> tuple[tuple[float, float], ...]:
    """Intervals between the edges, each edge on its stable side."""
    flags = [stable(number) for number in grid]
    edges = [grid[0]] if flags[0] else []
    for k in range(1, len(grid)):
        if flags[k] == flags[k - 1]:
            continue
        inside, outside = (grid[k], grid[k - 1]) if flags[k] else (grid[k - 1], grid[k])
        while (between := middle(min(inside, outside), max(inside, outside))) is not None:
            inside, outside = (between, outside) if stable(between) else (inside, between)
        edges.append(inside)
    if flags[-1]:
        edges.append(grid[-1])
    return tuple(zip(edges[::2], edges[1::2], strict=True))
