"""Which row of a lane holds what.

A compiled step for many arms at once: its options, its rows, and how it is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout.kernel_cache import arm_fingerprint, cached_module, fingerprint
from arm_dynamics.batch.rollout.pid_loop import PidSpec
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.model.arm_model import ArmModel


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


AGREEMENT = {"float64": 1e-12, "float32": 1e-4}
"""Largest difference from plant and controller, relative to the largest number, or to the largest
change in a step."""
TRIAL_STEP = 1e-4
LINE = 64
"""Bytes of a cache line, and of the widest vector."""


class KernelRejected(ArmDynamicsError):
    """A kernel that does not agree with the plant, or with the controller."""


@dataclass(frozen=True, eq=False)
class Options:
    """What a kernel is made for: everything else is an input of its lanes."""

    integrator: str = "semi_implicit_euler"
    interface: str = "effort"
    vary: tuple[str, ...] = ()
    precision: str = "float64"
    lanes: int = 32
    law: PidSpec | None = None

    def __post_init__(self) -> None:
        if self.precision not in AGREEMENT:
            raise InvalidValue(f"precision '{self.precision}': one of {', '.join(AGREEMENT)}")
        if self.lanes < 1:
            raise InvalidValue(f"lanes = {self.lanes}: at least 1")

    @property
    def key(self) -> tuple[Any, ...]:
        """All of it, for a hash."""
        law = None if self.law is None else (*self.law.key, arm_fingerprint(self.law.arm))
        return self.integrator, self.interface, self.vary, self.precision, self.lanes, law


class Kernel:
    """Blocks of ``lanes`` arms in one flat array (rows, lanes), advanced by generated code."""

    def __init__(self, arm: ArmModel, options: Options) -> None:
        """Load the kernel, or make it and hold it to plant and controller, see ``kernel_check``.

        Raises KernelRejected when it does not agree, ConfigError without CasADi when it has
        to be made, InvalidValue for an arm or options that have none.
        """
        self.arm, self.options = arm, options
        key = fingerprint(arm, options.key)
        self._module = cached_module(key, self._text, self._check)
        self.layout = Layout.of(self._module.LAYOUT)
        self.dtype = np.dtype(options.precision)

    def block(self, blocks: Mapping[str, Vector]) -> Vector:
        """A block (rows * lanes,) filled with ``blocks``: name → (size,) or (lanes, size)."""
        return filled(self.layout, self.options.lanes, self.dtype, blocks)

    def rows(self, names: Sequence[str]) -> Vector:
        """Numbers of the rows that hold ``names``, in order."""
        every = [np.arange(*self.layout.block(name).indices(self.layout.rows)) for name in names]
        return np.concatenate([*every, np.empty(0, dtype=int)])

    def run(
        self,
        x: Vector,
        given: Vector,
        every: int,
        stride: int,
        chosen: Vector,
        out: Vector,
        count: int = 0,
    ) -> Vector:
        """Advance block ``x``; see ``rollout`` of the generated module. Returns ``failed``."""
        failed = np.full(self.options.lanes, -1)
        self._module.rollout(x, given, every, stride, count, chosen, out, failed)
        return failed

    def step(self, x: Vector) -> bool:
        """One time step of block ``x`` under the commands in it; whether any lane was lost."""
        odd: bool = self._module.step(x)
        return odd

    def _text(self) -> str:
        from arm_dynamics.batch.rollout.kernel_generation import kernel_text  # noqa: PLC0415 - CasADi if needed

        return kernel_text(self.arm, self.options)

    def _check(self, made: Any) -> None:
        from arm_dynamics.batch.rollout.kernel_check import check_kernel  # noqa: PLC0415 - for a new one only

        check_kernel(made, self.arm, self.options)


def filled(
    layout: Layout, lanes: int, dtype: np.dtype[Any], blocks: Mapping[str, Vector]
) -> Vector:
    """A block (rows * lanes,) of ``layout``: name → (size,) or (lanes, size) in its rows."""
    x = _aligned(layout.rows * lanes, dtype)
    rows = x.reshape(layout.rows, lanes)
    for name, values in blocks.items():
        rows[layout.block(name)] = np.atleast_2d(values).T
    return x


def _aligned(size: int, dtype: np.dtype[Any]) -> Vector:
    """Zeros that begin where a line of the processor's cache does."""
    whole = np.zeros(size * dtype.itemsize + LINE, np.uint8)
    start = -whole.ctypes.data % LINE
    return whole[start : start + size * dtype.itemsize].view(dtype)
