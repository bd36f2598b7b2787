"""Functions by their address: compiled code that calls what it did not know when compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.compiled_math import compiled

try:
    import numba
    from llvmlite import ir
except ImportError:  # pragma: no cover - exercised in a separate process
    numba = None

_KEPT: list[Any] = []
"""Compiled functions: their code stays as long as the process lives."""


def column_function(function: Callable[[int, Any, int, int], None]) -> int | None:
    """Compile ``function`` and return its address; None where nothing is compiled.

    Parameters
    ----------
    function : callable
        (operation, data, columns, column) -> None. ``data`` points to a C-contiguous array of
        floats with so many columns, see ``numba.carray``.

    Returns
    -------
    int or None
        Address for ``call_address``.

    """
    if numba is None or numba.config.DISABLE_JIT:
        return None
    number, data = numba.types.int64, numba.types.CPointer(numba.types.float64)
    code = numba.cfunc(numba.types.void(number, data, number, number))(function)
    _KEPT.append(code)
    address: int = code.address
    return address


@compiled
def call_address(address: int, operation: int, table: Matrix, column: int) -> None:
    """Call the ``column_function`` at ``address`` for a column of ``table``, C-contiguous."""
    _call(address, operation, table, column)


if numba is not None:

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def _call(_: Any, address: Any, operation: Any, table: Any, column: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = context.make_array(signature.args[2])(context, builder, values[2])
            columns = builder.extract_value(array.shape, 1)
            number, pointer = ir.IntType(64), array.data.type
            kind = ir.FunctionType(ir.VoidType(), (number, pointer, number, number))
            function = builder.inttoptr(values[0], kind.as_pointer())
            builder.call(function, (values[1], array.data, columns, values[3]))
            return context.get_dummy_value()

        number = numba.types.int64
        return numba.types.void(number, number, table, number), generate
