"""One symbolic number, as every law of the package takes it in place of a float.

The laws of the package on symbols: the same source, other words.

A law marked ``@compiled`` is a plain function of numbers that calls the vocabulary of
``compiled_math.py``. Here its text is run again with the vocabulary's symbolic counterparts, so
that an equation has one definition for the plant, the kernels and their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.core import compiled_math
from arm_dynamics.simulation.integrators import exponential_step
from arm_dynamics.simulation.integrators.exponential_step import TERMS


class Symbol:
    """A CasADi SX scalar that numpy leaves alone: object arrays of symbols behave as vectors.

    Comparisons give symbols too; asking one for its truth raises TypeError, as the path of a
    trace must not depend on a value.
    """

    __slots__ = ("sx",)
    sx: Any

    def __init__(self, value: Any) -> None:
        self.sx = value.sx if isinstance(value, Symbol) else ca.SX(value)

    @property
    def constant(self) -> float | None:
        """Its value, where that is known already."""
        return float(self.sx) if self.sx.is_constant() else None

    def __bool__(self) -> bool:
        if self.constant is None:
            raise TypeError(f"the trace would branch on {self.sx}: use where()")
        return bool(self.constant)

    def __float__(self) -> float:
        if self.constant is None:
            raise TypeError(f"{self.sx} has no value yet")
        return self.constant

    def __repr__(self) -> str:
        return f"Symbol({self.sx})"

    def __add__(self, other: Any) -> Any:
        return _of(lambda x, y: x + y, self, other)

    def __radd__(self, other: Any) -> Any:
        return _of(lambda x, y: y + x, self, other)

    def __sub__(self, other: Any) -> Any:
        return _of(lambda x, y: x - y, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _of(lambda x, y: y - x, self, other)

    def __mul__(self, other: Any) -> Any:
        return _of(lambda x, y: x * y, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _of(lambda x, y: y * x, self, other)

    def __truediv__(self, other: Any) -> Any:
        return _of(lambda x, y: x / y, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _of(lambda x, y: y / x, self, other)

    def __rpow__(self, other: Any) -> Symbol:
        """Base to this power, as e^(x ln base): exponentials vectorise, powers do not."""
        return Symbol(ca.exp(self.sx * ca.log(_sx(other))))

    def __neg__(self) -> Symbol:
        return Symbol(-self.sx)

    def __abs__(self) -> Symbol:
        return Symbol(ca.fabs(self.sx))

    def __lt__(self, other: Any) -> Symbol:
        return Symbol(self.sx < _sx(other))

    def __le__(self, other: Any) -> Symbol:
        return Symbol(self.sx <= _sx(other))

    def __gt__(self, other: Any) -> Symbol:
        return Symbol(_sx(other) < self.sx)

    def __ge__(self, other: Any) -> Symbol:
        return Symbol(_sx(other) <= self.sx)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return Symbol(self.sx == _sx(other))

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return Symbol(self.sx != _sx(other))

    __hash__ = None  # type: ignore[assignment]

    def exp(self) -> Symbol:
        """e to this power; the name numpy looks for."""
        return Symbol(ca.exp(self.sx))


def _of(operation: Callable[[Any, Any], Any], symbol: Symbol, other: Any) -> Any:
    """The operation's result; numpy is left to go through an array's entries."""
    return (
        NotImplemented
        if isinstance(other, np.ndarray)
        else Symbol(operation(symbol.sx, _sx(other)))
    )


def _sx(value: Any) -> Any:
    return value.sx if isinstance(value, Symbol) else ca.SX(float(value))


def symbols(name: str, size: int) -> np.ndarray[Any, Any]:
    """Vector of ``size`` symbols name0, name1 ..."""
    array = np.empty(size, dtype=object)
    array[:] = [Symbol(ca.SX.sym(f"{name}{i}")) for i in range(size)]
    return array


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


SYMBOLIC_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (where, minimum, maximum, clip, sign, exp)
}


def phi_functions(x: Any) -> Any:
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


SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {
    exponential_step.phi_functions: phi_functions
}
"""Laws with branches or loops on numbers, and what says the same without."""


@cache
def traced(law: Callable[..., Any]) -> Callable[..., Any]:
    """``law``, made for numbers, for symbols; what it calls in turn is translated likewise."""
    function = getattr(law, "py_func", law)
    if law in SUBSTITUTES:
        return SUBSTITUTES[law]
    if function.__module__ == compiled_math.__name__:
        return SYMBOLIC_FUNCTIONS[function.__name__]
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
