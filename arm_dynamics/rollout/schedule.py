"""The order of a kernel's lines: what the longest chain waits for comes first."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence

NAME = re.compile(r"\b[a-z]\w*\b")
SLOW, SERIES, PLAIN = 17, 30, 4
"""Cycles until a quotient, a series or another result can be used, on today's processors."""


def by_longest_chain(lines: Sequence[str]) -> list[str]:
    """``lines``, one assignment each, so that those with the longest way to the end come first.

    A processor looks some hundred instructions ahead: chains that do not depend on each other
    then run side by side. List scheduling by critical path: T. C. Hu, Operations Research 9
    (1961), 841.
    """
    needs = _needs(lines)
    users: list[list[int]] = [[] for _ in lines]
    for i, sources in enumerate(needs):
        for j in sources:
            users[j].append(i)
    height = [0] * len(lines)
    for i in reversed(range(len(lines))):
        height[i] = _delay(lines[i]) + max((height[k] for k in users[i]), default=0)
    waiting = [len(sources) for sources in needs]
    ready = [(-height[i], i) for i, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(lines[i])
        for k in users[i]:
            waiting[k] -= 1
            if not waiting[k]:
                heapq.heappush(ready, (-height[k], k))
    return order


def _needs(lines: Sequence[str]) -> list[set[int]]:
    """For each line the lines that make what it reads."""
    made: dict[str, int] = {}
    needs = []
    for i, line in enumerate(lines):
        name, _, text = line.partition(" = ")
        needs.append({made[word] for word in NAME.findall(text) if word in made})
        made[name] = i
    return needs


def _delay(line: str) -> int:
    if " / " in line:
        return SLOW
    return SERIES if "_series(" in line else PLAIN
