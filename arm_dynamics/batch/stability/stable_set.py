"""The set of parameters with which a loop is stable: a scan, then bisection of its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from arm_dynamics.core.errors import InvalidValue

MIN_TIME_STEP, MAX_TIME_STEP = 1e-6, 1.0
"""Range of tried time steps [s]."""
PER_DECADE = 24
"""Tried values per decade."""
BOUND_TOLERANCE = 1e-9
"""Relative accuracy of a bound."""


@dataclass(frozen=True)
class StableSet:
    """Intervals in which a loop is stable.

    Attributes
    ----------
    intervals : tuple of (float, float)
        Ascending intervals (low, high) of the tried values.
    open : bool
        Whether the last one reaches the largest tried value, without a bound.

    """

    intervals: tuple[tuple[float, float], ...]
    open: bool

    @property
    def largest(self) -> float:
        """Upper bound of the lowest interval; 0 if nothing is stable, ∞ without a bound."""
        if not self.intervals:
            return 0.0
        return inf if self.open and len(self.intervals) == 1 else self.intervals[0][1]


def stable_set(
    stable: Callable[[float], bool], lowest: float = MIN_TIME_STEP, highest: float = MAX_TIME_STEP
) -> StableSet:
    """Return all intervals in which ``stable`` holds, scanned at 24 values per decade.

    Parameters
    ----------
    stable : callable
        Whether the loop is stable with a value.
    lowest, highest : float
        Range.

    Raises
    ------
    InvalidValue
        Unless 0 < lowest < highest.

    """
    if not 0 < lowest < highest:
        raise InvalidValue(
            f"stable set: range = {lowest:g} to {highest:g}; expected 0 < lowest < highest"
        )
    count = max(2, round(PER_DECADE * np.log10(highest / lowest)) + 1)
    grid = np.geomspace(lowest, highest, count).tolist()

    def middle(low: float, high: float) -> float | None:
        return sqrt(low * high) if high / low > 1 + BOUND_TOLERANCE else None

    intervals = _intervals(stable, grid, middle)
    return StableSet(intervals, bool(intervals) and intervals[-1][1] == grid[-1])


def stable_parts(
    stable: Callable[[float], bool], whole: float, shortest: float = MIN_TIME_STEP
) -> StableSet:
    """Return intervals of dt = whole / m >= shortest, m = 1, 2, ..., with a stable loop."""
    limit = max(2, round(whole / shortest))
    count = round(PER_DECADE * np.log10(limit)) + 2
    grid = sorted({round(m) for m in np.geomspace(1, limit, count).tolist()})

    def middle(low: float, high: float) -> float | None:
        return (low + high) // 2 if high - low > 1 else None

    found = _intervals(lambda m: stable(whole / m), [float(m) for m in grid], middle)
    intervals = tuple((whole / high, whole / low) for low, high in reversed(found))
    return StableSet(intervals, bool(found) and found[0][0] == 1)


def largest_stable_dt(
    stable: Callable[[float], bool], shortest: float = MIN_TIME_STEP, longest: float = MAX_TIME_STEP
) -> float:
    """Return the upper bound [s] of the lowest stable interval; 0: none, ∞: no bound found."""
    return stable_set(stable, shortest, longest).largest


def _intervals(
    stable: Callable[[float], bool],
    grid: Sequence[float],
    middle: Callable[[float, float], float | None],
) -> tuple[tuple[float, float], ...]:
    """Intervals between the bounds, each bound on its stable side."""
    flags = [stable(number) for number in grid]
    bounds = [grid[0]] if flags[0] else []
    for k in range(1, len(grid)):
        if flags[k] == flags[k - 1]:
            continue
        inside, outside = (grid[k], grid[k - 1]) if flags[k] else (grid[k - 1], grid[k])
        while (between := middle(min(inside, outside), max(inside, outside))) is not None:
            inside, outside = (between, outside) if stable(between) else (inside, between)
        bounds.append(inside)
    if flags[-1]:
        bounds.append(grid[-1])
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))
