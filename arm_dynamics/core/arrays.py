"""Array types, and read-only float vectors that are checked where they enter the package."""

from __future__ import annotations

import operator
from math import isfinite
from numbers import Real
from reprlib import repr as short

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


def as_readonly(value: ArrayLike) -> FloatArray:
    """Return a read-only float64 copy of ``value``, or ``value`` if it already is one.

    Parameters
    ----------
    value : ArrayLike
        Real numbers of any shape.

    Returns
    -------
    FloatArray
        Array of the same shape, not writeable.

    Raises
    ------
    InvalidValue
        For values other than real numbers: text, booleans, complex numbers.

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
        numbers = given.dtype.kind in "fiu" or (  # fractions and large integers are objects
            given.dtype.kind == "O" and all(isinstance(x, Real) for x in given.flat)
        )
        if not numbers:
            raise TypeError(given.dtype)  # numpy would drop an imaginary part, and parse text
        array = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"value = {short(value)}; expected real numbers") from error
    array.flags.writeable = False
    return array


def check_vector(name: str, value: ArrayLike, size: int | None = None) -> Vector:
    """Return ``value`` as a read-only, finite float64 vector.

    Parameters
    ----------
    name : str
        Name of the quantity in messages.
    value : ArrayLike
        Real numbers (n,).
    size : int, optional
        Required n; any by default.

    Returns
    -------
    Vector
        Shape (n,), not writeable.

    Raises
    ------
    InvalidValue
        For another shape, and for a non-finite entry, with its index.

    """
    array = _numbers(value)
    if array is None or array.ndim == 0:
        count = "" if size is None else f"{check_int(f'{name}: size', size)} "
        raise InvalidValue(f"{name} = {value!r}; expected a list of {count}numbers")
    if array.ndim != 1 or size not in (None, array.size):
        expected = "(n,)" if size is None else f"({check_int(f'{name}: size', size)},)"
        raise InvalidValue(f"{name}: shape = {array.shape}; expected {expected}")
    if not (all(map(isfinite, array.tolist())) if array.size < FEW else np.isfinite(array).all()):
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidValue(f"{name}[{index}] = {array[index]}; expected a finite number")
    return array


def _numbers(value: ArrayLike) -> FloatArray | None:
    try:
        return as_readonly(value)
    except InvalidValue:
        return None


def _number(name: str, value: float) -> float:
    """Return a number of another type, for example of numpy, as a float."""
    array = _numbers(value)
    if array is None or array.ndim > 0:
        raise InvalidValue(f"{name} = {value!r}; expected a number")
    return float(array)


def check_int(name: str, value: int, *, lower: int = 0) -> int:
    """Return ``value`` as an int of at least ``lower``; raises InvalidValue with ``name``."""
    try:
        number = lower - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = lower - 1
    if number < lower:
        message = f"{name} = {short(value)}; expected an integer of at least {lower}"
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
    """Return ``value`` as a finite float with ``above`` < value, ``lower`` <= value <= ``upper``.

    Raises InvalidValue with ``name`` and the value.
    """
    number = float(value) if isinstance(value, float) else _number(name, value)
    expected = ""
    if not isfinite(number):
        expected = "a finite number"
    elif above is not None and number <= above:
        expected = f"above {above}"
    elif lower is not None and number < lower:
        expected = f"at least {lower}"
    elif upper is not None and number > upper:
        expected = f"at most {upper}"
    if expected:
        raise InvalidValue(f"{name} = {number}; expected {expected}")
    return number
