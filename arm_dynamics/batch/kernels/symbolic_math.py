"""Symbols in place of floats, and the compiled functions of the package evaluated on them.

A function marked ``@compiled`` is a plain function of numbers that calls ``compiled_math``. Here
its code runs again with the symbolic counterparts of these functions. So an equation has one
definition for the plant, the kernels and their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.core import compiled_math
from arm_dynamics.simulation.integrators import exponential_step
from arm_dynamics.simulation.integrators.exponential_step import TERMS

SX = Any
"""A CasADi SX expression."""
SymbolVector = Any
"""Object array of Symbol."""


class Symbol:
    """A CasADi SX scalar; object arrays of symbols behave as numpy vectors.

    Comparisons return symbols. Converting one to bool raises TypeError, because a trace must not
    branch on a value.
    """

    __slots__ = ("sx",)
    sx: SX

    def __init__(self, value: Any) -> None:
        self.sx = value.sx if isinstance(value, Symbol) else ca.SX(value)

    @property
    def constant(self) -> float | None:
        """Value, if it is constant."""
        return float(self.sx) if self.sx.is_constant() else None

    def __bool__(self) -> bool:
        if self.constant is None:
            raise TypeError(f"trace: condition = {self.sx}; expected a constant; use where()")
        return bool(self.constant)

    def __float__(self) -> float:
        if self.constant is None:
            raise TypeError(f"trace: symbol = {self.sx}; expected a constant")
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

    def __pow__(self, other: Any) -> Any:
        return _of(lambda x, y: x**y, self, other)

    def __rpow__(self, other: Any) -> Symbol:
        """Return base to this power as e^(x ln base): exponentials vectorize, powers do not."""
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

    # numpy calls these methods.

    def exp(self) -> Symbol:
        """Return e to this power."""
        return Symbol(ca.exp(self.sx))

    def log(self) -> Symbol:
        """Return the natural logarithm."""
        return Symbol(ca.log(self.sx))

    def sqrt(self) -> Symbol:
        """Return the square root."""
        return Symbol(ca.sqrt(self.sx))

    def sin(self) -> Symbol:
        """Return the sine."""
        return Symbol(ca.sin(self.sx))

    def cos(self) -> Symbol:
        """Return the cosine."""
        return Symbol(ca.cos(self.sx))

    def tan(self) -> Symbol:
        """Return the tangent, sine by cosine: both vectorize."""
        return Symbol(ca.sin(self.sx) / ca.cos(self.sx))

    def tanh(self) -> Symbol:
        """Return the hyperbolic tangent."""
        return Symbol(ca.tanh(self.sx))


def _of(operation: Callable[[Any, Any], Any], symbol: Symbol, other: Any) -> Any:
    """Return the result; for an array, NotImplemented, so that numpy takes its entries."""
    return (
        NotImplemented
        if isinstance(other, np.ndarray)
        else Symbol(operation(symbol.sx, _sx(other)))
    )


def _sx(value: Any) -> Any:
    return value.sx if isinstance(value, Symbol) else ca.SX(float(value))


def symbols(name: str, size: int) -> np.ndarray[Any, Any]:
    """Return a vector of symbols name0, name1 ..."""
    array = np.empty(size, dtype=object)
    array[:] = [Symbol(ca.SX.sym(f"{name}{i}")) for i in range(size)]
    return array


def where(condition: Any, first: Any, second: Any) -> Any:
    """Return ``first`` if ``condition`` holds, else ``second``; evaluated now if constant."""
    known = condition.constant if isinstance(condition, Symbol) else condition
    if known is not None:
        return first if known else second
    return Symbol(ca.if_else(condition.sx, Symbol(first).sx, Symbol(second).sx))


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of two numbers."""
    return _bounded(x, y, ca.fmin, float("inf"))


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of two numbers."""
    return _bounded(x, y, ca.fmax, float("-inf"))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    """Return ``x`` limited to [lower, upper]."""
    return minimum(maximum(x, lower), upper)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def squared(x: Any) -> Any:
    """Return x²; within ``recorded_residuals`` that of a symbol r in place of x."""
    residuals = _RESIDUALS.get()
    if residuals is None or not isinstance(x, Symbol):
        return x * x
    r = Symbol(ca.SX.sym(f"r{len(residuals)}"))
    residuals.append((r.sx, x.sx))
    return r * r


_RESIDUALS: ContextVar[list[tuple[SX, SX]] | None] = ContextVar("residuals", default=None)


@contextmanager
def recorded_residuals() -> Iterator[list[tuple[SX, SX]]]:
    """Return the symbols r and their expressions x of all ``squared(x)`` that are traced."""
    residuals: list[tuple[SX, SX]] = []
    token = _RESIDUALS.set(residuals)
    try:
        yield residuals
    finally:
        _RESIDUALS.reset(token)


def exp(x: Any) -> Any:
    """Return e to the power ``x``."""
    return Symbol(ca.exp(Symbol(x).sx))


SYMBOLIC_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (where, minimum, maximum, clip, sign, squared, exp)
}


def phi_functions(x: Any) -> Any:
    """Return φ₁, φ₂, φ₃ (3, n) at -x, as ``exponential_step.phi_functions``, without branches."""
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


def _by_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``math`` that calls the method of that name for symbols."""

    def evaluate(x: Any) -> Any:
        return getattr(x, function.__name__)() if isinstance(x, Symbol) else function(x)

    return evaluate


MATH_FUNCTIONS = (math.exp, math.log, math.sqrt, math.sin, math.cos, math.tan, math.tanh)
SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {
    exponential_step.phi_functions: phi_functions,
    math.fabs: abs,
    **{function: _by_method(function) for function in MATH_FUNCTIONS},
}
"""Functions that branch or loop on numbers, or convert to floats, and their equivalents."""


TRACED: dict[Callable[..., Any], Callable[..., Any]] = {}
"""Functions on symbols that ``traced`` has made."""


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers as a function of symbols, and all that it calls likewise."""
    if function in SUBSTITUTES:
        return SUBSTITUTES[function]
    if function in TRACED:
        return TRACED[function]
    python = getattr(function, "py_func", function)
    if python.__module__ == compiled_math.__name__:
        return SYMBOLIC_FUNCTIONS[python.__name__]
    scope, closure = dict(python.__globals__), python.__closure__ or ()
    cells = tuple(CellType() for _ in closure)
    copy = FunctionType(python.__code__, scope, python.__name__, python.__defaults__, cells)
    copy.__kwdefaults__ = python.__kwdefaults__
    TRACED[function] = copy  # before its names: a function may call itself
    for name in _names(python.__code__):
        if name in scope:
            scope[name] = _on_symbols(scope[name], python.__module__)
    for cell, original in zip(cells, closure, strict=True):
        cell.cell_contents = _on_symbols(original.cell_contents, python.__module__)
    return copy


class _ModuleOnSymbols:
    """Module whose compiled and mathematical functions are traced."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _on_symbols(getattr(self._module, name))


def _on_symbols(value: Any, module: str | None = "") -> Any:
    """Return the equivalent on symbols of a function or module; other values unchanged.

    Functions are traced if they are compiled, or plain functions of this package or ``module``.
    """
    if isinstance(value, ModuleType):
        return _ModuleOnSymbols(value)
    if isinstance(value, BuiltinFunctionType):
        return SUBSTITUTES.get(value, value)
    compiled = isinstance(getattr(value, "py_func", None), FunctionType)
    plain = isinstance(value, FunctionType) and (
        (value.__module__ or "").startswith("arm_dynamics.") or value.__module__ == module
    )
    return traced(value) if compiled or plain else value


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names of ``code`` and of the comprehensions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _bounded(x: Any, y: Any, pick: Callable[..., Any], neutral: float) -> Any:
    for value, other in ((x, y), (y, x)):
        known = value.constant if isinstance(value, Symbol) else float(value)
        if known == neutral:
            return other
    return Symbol(pick(Symbol(x).sx, Symbol(y).sx))
