"""The laws of the package on symbols: the same source, other words.

A law marked ``@compiled`` is a plain function of numbers that calls the vocabulary of
``scalar.py``. Here its text is run again with the vocabulary's symbolic counterparts, so that
an equation has one definition for the plant, the kernels and their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics import scalar
from arm_dynamics.integrators import relaxation
from arm_dynamics.integrators.relaxation import TERMS
from arm_dynamics.rollout.symbol import Symbol


def where(condition: Any, first: Any, second: Any) -> Any:
    """``first`` where ``condition`` holds, else ``second``; decided now where it can be."""
    known = condition.constant if isinstance(condition, Symbol) else condition
    if known is not None:
        return first if known else second
    return Symbol(ca.if_else(condition.sx, Symbol(first).sx, Symbol(second).sx))


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two numbers."""
    return _bounded(x, y, ca.fmin, float("inf"))


def maximum(x: Any, y: Any) -> Any:
    """The larger of two numbers."""
    return _bounded(x, y, ca.fmax, float("-inf"))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    """``x`` held within [lower, upper]."""
    return minimum(maximum(x, lower), upper)


def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def exp(x: Any) -> Any:
    """e to the power ``x``."""
    return Symbol(ca.exp(Symbol(x).sx))


VOCABULARY: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (where, minimum, maximum, clip, sign, exp)
}


def phi(x: Any) -> Any:
    """φ₁, φ₂, φ₃ (3, n) at -x, as ``integrators.relaxation.phi``: series below 1, else direct."""
    values = np.empty((3, len(x)), dtype=object)
    for i, entry in enumerate(x):
        near = minimum(entry, 1.0)
        third: Any = 0.0
        for j in range(TERMS, 3, -1):
            third = (1.0 - near * third) / j
        third = (1.0 - near * third) / 6.0
        second = 0.5 - near * third
        far = maximum(entry, 1.0)
        first_far = (1.0 - exp(-far)) / far
        second_far = (1.0 - first_far) / far
        small = entry < 1.0
        values[0, i] = where(small, 1.0 - near * second, first_far)
        values[1, i] = where(small, second, second_far)
        values[2, i] = where(small, third, (0.5 - second_far) / far)
    return values


SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {relaxation.phi: phi}
"""Laws with branches or loops on numbers, and what says the same without."""


@cache
def traced(law: Callable[..., Any]) -> Callable[..., Any]:
    """``law``, made for numbers, for symbols; what it calls in turn is translated likewise."""
    function = getattr(law, "py_func", law)
    if law in SUBSTITUTES:
        return SUBSTITUTES[law]
    if function.__module__ == scalar.__name__:
        return VOCABULARY[function.__name__]
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = scope.get(name)
        if _ours(value):
            scope[name] = traced(value)
    again = FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
    again.__kwdefaults__ = function.__kwdefaults__
    return again


def _ours(value: Any) -> bool:
    """Whether ``value`` is a function of this package."""
    function = getattr(value, "py_func", value)
    return isinstance(function, FunctionType) and function.__module__.startswith("arm_dynamics.")


def _bounded(x: Any, y: Any, pick: Callable[..., Any], neutral: float) -> Any:
    for value, other in ((x, y), (y, x)):
        known = value.constant if isinstance(value, Symbol) else float(value)
        if known == neutral:
            return other
    return Symbol(pick(Symbol(x).sx, Symbol(y).sx))
