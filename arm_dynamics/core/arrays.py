"""Array types, and read-only float vectors that are checked where they enter the package."""

from __future__ import annotations

import operator
from math import isfinite
from numbers import Real
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.core.errors import InvalidValue

Vector = NDArray[np.float64]
"""Shape (n,)."""
Matrix = NDArray[np.float64]
"""Shape (m, n)."""
FloatArray = NDArray[np.float64]
"""Any other shape."""
IntArray = NDArray[np.int64]
"""Indices."""
BoolArray = NDArray[np.bool_]
"""Masks."""
FEW = 30
"""Size up to which Python checks the entries faster than numpy."""


def as_readonly(value: ArrayLike) -> Vector:
    """Return a read-only float64 copy of ``value``; itself when it is one already.

    Raises InvalidValue for anything but real numbers: text, booleans, complex numbers.
    """
    if (
        type(value) is np.ndarray
        and value.base is None
        and not value.flags.writeable
        and value.dtype == np.float64
    ):
        return value
    try:
        given = np.array(value)
        if given.dtype.kind not in "fiu" and not _real_objects(given):
            raise TypeError(given.dtype)  # numpy would drop an imaginary part, and parse text
        array = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"{short(value)}: real numbers are expected") from error
    array.flags.writeable = False
    return array


def check_vector(name: str, value: ArrayLike, size: int | None = None) -> Vector:
    """Return ``value`` as a read-only, finite float64 vector of ``size`` entries, or of any.

    Raises InvalidValue naming ``name`` and the first offending entry.
    """
    array = _numbers(value)
    if array is None or array.ndim == 0:
        count = "" if size is None else f"{check_int(f'{name}: size', size)} "
        raise InvalidValue(f"{name}: {value!r} is not a list of {count}numbers")
    if array.ndim != 1 or size not in (None, array.size):
        expected = "(n,)" if size is None else f"({check_int(f'{name}: size', size)},)"
        raise InvalidValue(f"{name}: shape {array.shape} given, {expected} expected")
    if not (all(map(isfinite, array.tolist())) if array.size < FEW else np.isfinite(array).all()):
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidValue(f"{name}[{index}] = {array[index]}: a finite number is expected")
    return array


def _real_objects(array: NDArray[Any]) -> bool:
    """Return whether these are numbers without a numpy type: fractions, large integers."""
    return array.dtype.kind == "O" and all(isinstance(x, Real) for x in array.flat)


def _numbers(value: ArrayLike) -> Vector | None:
    try:
        return as_readonly(value)
    except InvalidValue:
        return None


def _number(name: str, value: float) -> float:
    array = _numbers(value)
    if array is None or array.ndim > 0:
        raise InvalidValue(f"{name} = {value!r}: a number is expected")
    return float(array)


def check_int(name: str, value: int, *, lower: int = 0) -> int:
    """Return ``value`` as an int of at least ``lower``.

    Raises InvalidValue naming ``name`` and the value.
    """
    try:
        number = lower - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = lower - 1
    if number < lower:
        message = f"{name} = {short(value)}: a whole number of at least {lower} is expected"
        raise InvalidValue(message)
    return number


def check_float(
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
    number = float(value) if isinstance(value, float) else _number(name, value)
    if not isfinite(number):
        raise InvalidValue(f"{name} = {number}: a finite number is expected")
    if above is not None and number <= above:
        raise InvalidValue(f"{name} = {number}: must be above {above}")
    if lower is not None and number < lower:
        raise InvalidValue(f"{name} = {number}: must be at least {lower}")
    if upper is not None and number > upper:
        raise InvalidValue(f"{name} = {number}: must be at most {upper}")
    return number
