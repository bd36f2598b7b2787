"""Memory layout of a kernel: named blocks of rows, one column per rollout; an arm's constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Vector

CACHE_LINE = 64
"""Bytes of a cache line, and of the widest vector register."""


@dataclass(frozen=True)
class Layout:
    """Named blocks of consecutive rows.

    Attributes
    ----------
    first, sizes : Mapping[str, int]
        Block name to its first row, and to its number of rows.

    """

    first: Mapping[str, int]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Layout:
        """Return the layout of blocks with these sizes, in this order."""
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return cls(dict(zip(sizes, ends, strict=False)), dict(sizes))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.sizes.values())

    def block(self, name: str) -> slice:
        """Return the rows of ``name``."""
        return slice(self.first[name], self.first[name] + self.sizes[name])


def with_constant_rows(layout: Layout, lanes: int, count: int) -> Layout:
    """Return ``layout`` and after it, across the lanes of further rows, ``count`` constants."""
    return Layout.of({**layout.sizes, "constants": -(-count // lanes)})


class ModuleSource(NamedTuple):
    """Source text of a module, and the constants of an arm in the last rows of a block."""

    text: str
    constants: tuple[float, ...]


def aligned_zeros(size: int, dtype: np.dtype[Any]) -> Vector:
    """Return ``size`` zeros, aligned to a cache line."""
    memory = np.zeros(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    zeros: Vector = memory[start : start + size * dtype.itemsize].view(dtype)
    return zeros


def filled_block(
    layout: Layout,
    lanes: int,
    dtype: np.dtype[Any],
    constants: Vector,
    values: Mapping[str, FloatArray],
) -> Vector:
    """Return a block (rows * lanes,) of ``layout``, aligned to a cache line.

    Parameters
    ----------
    layout : Layout
        Rows of the block.
    lanes : int
        SIMD lanes: rollouts side by side.
    dtype : numpy.dtype
        Precision.
    constants : Vector
        Constants of the arm, see ``with_constant_rows``.
    values : Mapping[str, FloatArray]
        Block name to its values, shape (size,) for all lanes or (lanes, size); others are zero.

    """
    x = aligned_zeros(layout.rows * lanes, dtype)
    rows = x.reshape(layout.rows, lanes)
    for name, entries in values.items():
        rows[layout.block(name)] = np.atleast_2d(entries).T
    first = layout.first["constants"] * lanes
    x[first : first + constants.size] = constants
    return x
