"""Which row of a lane holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """Named blocks of rows, one after the other: name → first row, name → how many."""

    first: Mapping[str, int]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Layout:
        """Rows for the named blocks."""
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return cls(dict(zip(sizes, ends, strict=False)), dict(sizes))

    @property
    def rows(self) -> int:
        """Rows in all."""
        return sum(self.sizes.values())

    def block(self, name: str) -> slice:
        """The rows of ``name``."""
        return slice(self.first[name], self.first[name] + self.sizes[name])
