"""Arrays as arguments of compiled code: checked and read in place, without numba's conversion.

numba's own conversion takes 50 ns for each array: it determines the type, chooses a version of the
function and allocates a record that owns the array. A control law has ten arrays. Here machine
code compares type, dtype, dimensions and flags of the object, and reads pointer, shape and strides
from it, in 5 ns. Raises TypeError for anything else.

References
----------
NumPy C-API, Array structures and data types, ``PyArrayObject``.

"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import ArrayModel
from numba.core.imputils import lower_cast
from numba.extending import NativeValue, register_model, unbox
from numba.np.arrayobj import make_array, populate_array

CLASS, DATA, DIMENSIONS, SHAPE, STRIDES, DTYPE, FLAGS = 8, 16, 24, 32, 40, 56, 64
"""Offsets [bytes] in an array object of 64-bit Python."""
LETTERS = 24
"""Offset in a dtype of its kind, character and byte order: equal dtypes need not be one object."""
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
WORD, INT, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
NDARRAY = "arm_dynamics_ndarray"
# Machine code that is loaded from disk finds the class of this process by its name.
llvmlite.binding.add_symbol(NDARRAY, id(np.ndarray))


def _letters(dtype: np.dtype[Any]) -> int:
    """Return what the three bytes at LETTERS are as one number."""
    return int.from_bytes((dtype.kind + dtype.char + dtype.byteorder).encode(), "little")


class ArrayArgument(types.Array):  # type: ignore[misc]
    """numba's type of an argument: as ``numba.types.Array``, without an owner of the memory.

    A function must not return it: nothing would keep the memory.
    """

    def __init__(self, dtype: Any, dimensions: int, layout: str, readonly: bool) -> None:
        access = "read" if readonly else "written"
        name = f"argument({dtype}, {dimensions}d, {layout}, {access})"
        super().__init__(dtype, dimensions, layout, readonly=readonly, name=name)


def is_readable() -> bool:
    """Return whether arrays of this Python and numpy have their fields at these offsets."""
    probe = np.zeros((2, 3))

    def field(kind: Any, place: int) -> int:
        return int(kind.from_address(place).value)

    start, dtype = id(probe), id(probe.dtype)
    words = [field(ctypes.c_uint64, start + offset) for offset in (CLASS, DATA, DTYPE)]
    ints = [field(ctypes.c_uint32, start + offset) for offset in (DIMENSIONS, FLAGS)]
    letters = field(ctypes.c_uint32, dtype + LETTERS) & 0xFFFFFF
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and words == [id(np.ndarray), probe.ctypes.data, dtype]
        and [*ints, letters] == [2, probe.flags.num, _letters(probe.dtype)]
    )


register_model(ArrayArgument)(ArrayModel)


@lower_cast(types.Array, ArrayArgument)  # type: ignore[untyped-decorator]
@lower_cast(ArrayArgument, types.Array)  # type: ignore[untyped-decorator]
def _cast(_context: Any, _builder: Any, _given: Any, _needed: Any, value: Any) -> Any:
    return value


@unbox(ArrayArgument)  # type: ignore[untyped-decorator]
def _read(kind: ArrayArgument, given: Any, c: Any) -> NativeValue:
    """Read an array object; an error if it is not of this ``kind``."""
    b, dtype = c.builder, np.dtype(str(kind.dtype))
    start = b.bitcast(given, BYTE.as_pointer())

    def field(offset: int, of: Any) -> Any:
        return b.load(b.bitcast(b.gep(start, [WORD(offset)]), of.as_pointer()))

    def words(offset: int) -> list[Any]:
        first = field(offset, WORD.as_pointer())
        return [b.load(b.gep(first, [WORD(k)])) for k in range(kind.ndim)]

    array = make_array(kind)(c.context, b)
    found = cgutils.alloca_once_value(b, cgutils.get_null_value(array._getvalue().type))
    failed = cgutils.alloca_once_value(b, cgutils.true_bit)
    ndarray = b.module.globals.get(NDARRAY) or ir.GlobalVariable(b.module, BYTE, NDARRAY)
    is_array = b.icmp_unsigned("==", field(CLASS, WORD), b.ptrtoint(ndarray, WORD))
    with b.if_then(is_array, likely=True):
        needed = ALIGNED | WRITEABLE * kind.mutable | CONTIGUOUS * (kind.layout == "C")
        dtype_of = b.gep(field(DTYPE, BYTE.as_pointer()), [WORD(LETTERS)])
        letters = b.bitcast(dtype_of, INT.as_pointer())
        matches = b.icmp_signed("==", field(DIMENSIONS, INT), INT(kind.ndim))
        for number, mask, equal in (
            (field(FLAGS, INT), needed, needed), (b.load(letters), 0xFFFFFF, _letters(dtype)),
        ):  # fmt: skip
            same = b.icmp_unsigned("==", b.and_(number, INT(mask)), INT(equal))
            matches = b.and_(matches, same)
        with b.if_then(matches, likely=True):
            data = field(DATA, c.context.get_data_type(kind.dtype).as_pointer())
            size = c.context.get_constant(types.intp, dtype.itemsize)
            populate_array(array, data, words(SHAPE), words(STRIDES), size, None)
            b.store(array._getvalue(), found)
            b.store(cgutils.false_bit, failed)
    is_error = b.load(failed)
    with b.if_then(is_error, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"expected a numpy array: {kind.name}")
    return NativeValue(b.load(found), is_error=is_error)
