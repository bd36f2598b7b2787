"""Which points a simplex is likely to ask for next: they are judged beside the one it asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush

from arm_dynamics.tuning.simplex import OUTCOMES, Point, Simplex

LOOKS = 4
"""Futures looked at for each point that is wanted."""


class Foresight:
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
        while futures and len(chosen) < width and looked < LOOKS * width:
            weight, _, future, guess = heappop(futures)
            looked += 1
            if guess is not None:
                future = future.told((guess,))
            chosen.update(dict.fromkeys(p for p in future.asked if p not in known))
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
        costs = [known.get(p) for p in future.asked]
        if None not in costs:
            after = future.told([known[p] for p in future.asked])
            heappush(futures, (weight, 10 * looked, after, None))
        elif future.stage in OUTCOMES:
            for k, (name, share) in enumerate(self.odds(future).items()):
                guess = OUTCOMES[future.stage][name](future)
                heappush(futures, (weight * share, 10 * looked + k, future, guess))
