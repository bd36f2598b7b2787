"""One symbolic number, as every law of the package takes it in place of a float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np


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
