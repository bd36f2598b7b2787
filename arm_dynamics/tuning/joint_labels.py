"""Names of joints in a picture, long ones without covering each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONG = 6
"""Letters beyond which names stand aslant, and numbers stand for them in legends."""


def _are_long(names: Sequence[str]) -> bool:
    return max(map(len, names)) > LONG


def in_legend(names: Sequence[str]) -> tuple[str, ...]:
    """Names, or the numbers that ``under`` gives to long ones."""
    return tuple(map(str, range(1, len(names) + 1))) if _are_long(names) else tuple(names)


def under(axis: Any, names: Sequence[str]) -> None:
    """Names below the places 0, 1 ... of an axis; long ones aslant, with their numbers."""
    if not _are_long(names):
        axis.set_xticks(range(len(names)), names)
        return
    told = [f"{k} {name}" for k, name in enumerate(names, 1)]
    axis.set_xticks(range(len(names)), told, rotation=30, ha="right", rotation_mode="anchor")
