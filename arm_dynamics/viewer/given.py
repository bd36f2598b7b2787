"""What a page is given, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue


def reported(name: str, values: ArrayLike, size: int) -> Vector:
    """Return ``values`` (size,) read-only; NaN stands for a motor that reports none."""
    given = as_readonly(values)
    check_vector(name, np.where(np.isnan(given), 0.0, given), size)
    return given


def checked_limits(
    names: Sequence[str], limits: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    """Return one pair of limits a joint, lower at most upper."""
    ranges = tuple((float(lower), float(upper)) for lower, upper in limits)
    if len(ranges) != len(names):
        raise InvalidValue(f"limits: {len(ranges)} given for {len(names)} joints")
    for name, (lower, upper) in zip(names, ranges, strict=True):
        if not lower <= upper:
            raise InvalidValue(f"limits of {name}: lower {lower} must be at most upper {upper}")
    return ranges
