"""Read-only float vectors, checked where they enter the package."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.errors import InvalidValue

Vector = NDArray[np.float64]


def frozen(value: ArrayLike) -> Vector:
    """Return a read-only float64 copy of ``value``; itself when it is one already."""
    if (
        type(value) is np.ndarray
        and value.base is None
        and not value.flags.writeable
        and value.dtype == np.float64
    ):
        return value
    array = np.array(value, dtype=np.float64)
    array.flags.writeable = False
    return array


def vector(name: str, value: ArrayLike, size: int) -> Vector:
    """Return ``value`` as a read-only, finite float64 vector of ``size`` entries.

    Raises InvalidValue naming ``name`` and the first offending entry.
    """
    try:
        array = frozen(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"{name}: {value!r} is not a list of {size} numbers") from error
    if array.shape != (size,):
        raise InvalidValue(f"{name}: shape {array.shape} given, ({size},) expected")
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidValue(f"{name}[{index}] = {array[index]}: a finite number is expected")
    return array


def scalar(
    name: str,
    value: float,
    *,
    above: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> float:
    """Return ``value`` as a finite float, ``above`` or ``lower`` <= value <= ``upper``.

    Raises InvalidValue naming ``name`` and the value.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"{name} = {value!r}: a number is expected") from error
    if not np.isfinite(number):
        raise InvalidValue(f"{name} = {number}: a finite number is expected")
    if above is not None and number <= above:
        raise InvalidValue(f"{name} = {number}: must be above {above}")
    if lower is not None and number < lower:
        raise InvalidValue(f"{name} = {number}: must be at least {lower}")
    if upper is not None and number > upper:
        raise InvalidValue(f"{name} = {number}: must be at most {upper}")
    return number
