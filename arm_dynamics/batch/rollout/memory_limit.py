"""How much memory a batch's records take, said before any is taken."""

from __future__ import annotations

import os

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue

MEMORY_FRACTION = 0.5
"""Of the machine's memory, taken at most without a limit of the user's."""


def require_memory_limit(need: int, limit: float | None, what: str) -> None:
    """Refuse records of ``need`` bytes above ``limit`` (default: half of the machine's memory).

    Raises InvalidValue with both numbers, what takes it, and what makes it less.
    """
    most = (
        MEMORY_FRACTION * _machine()
        if limit is None
        else check_float("memory_limit", limit, lower=0)
    )
    if need > most:
        raise InvalidValue(
            f"the records take {need} bytes ({what}) and {int(most)} are allowed: take a larger"
            " stride, fewer outputs, fewer lanes at a time or precision 'float32', or raise"
            " memory_limit"
        )


def _machine() -> float:
    """Bytes of memory of this machine."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
