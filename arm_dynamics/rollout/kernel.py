"""A compiled step for many arms at once: its options, its rows, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.rollout.law import Law
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.store import fingerprint, module, numbers_of
from arm_dynamics.state import Command, State

AGREEMENT = {"float64": 1e-12, "float32": 1e-4}
"""Largest difference from the plant, of the change in a step, relative to the largest change."""
TRIAL_STEP = 1e-4
LINE = 64
"""Bytes of a cache line, and of the widest vector."""


class KernelRejected(ArmDynamicsError):
    """A kernel that does not agree with the plant."""


@dataclass(frozen=True, eq=False)
class Options:
    """What a kernel is made for: everything else is an input of its lanes."""

    method: str = "semi_implicit_euler"
    interface: str = "effort"
    vary: tuple[str, ...] = ()
    precision: str = "float64"
    lanes: int = 32
    law: Law | None = None

    def __post_init__(self) -> None:
        if self.precision not in AGREEMENT:
            raise InvalidValue(f"precision '{self.precision}': one of {', '.join(AGREEMENT)}")
        if self.lanes < 1:
            raise InvalidValue(f"lanes = {self.lanes}: at least 1")

    @property
    def key(self) -> tuple[Any, ...]:
        """All of it, for a hash."""
        law = None if self.law is None else (*self.law.key, numbers_of(self.law.arm))
        return self.method, self.interface, self.vary, self.precision, self.lanes, law


class Kernel:
    """Blocks of ``lanes`` arms in one flat array (rows, lanes), advanced by generated code."""

    def __init__(self, arm: ArmModel, options: Options) -> None:
        """Load the kernel, or make it and hold it to the plant (``AGREEMENT``).

        Raises KernelRejected when it does not agree, ConfigError without CasADi when it has
        to be made, InvalidValue for an arm or options that have none.
        """
        self.arm, self.options = arm, options
        key = fingerprint(arm, options.key)
        self._module = module(key, self._text, self._check)
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
        from arm_dynamics.rollout.generate import kernel_text  # noqa: PLC0415 - CasADi if needed

        return kernel_text(self.arm, self.options)

    def _check(self, made: Any) -> None:
        """One step of random states within the limits, beside the plant's."""
        layout, options, n = Layout.of(made.LAYOUT), self.options, self.arm.nv
        lower, upper = np.maximum(self.arm.lower, -np.pi), np.minimum(self.arm.upper, np.pi)
        random, shape = np.random.default_rng(1), (options.lanes, n)
        q, v = random.uniform(lower, upper, shape), random.uniform(-1, 1, shape)
        told = random.uniform(-1, 1, shape)
        nominal = {name: _nominal(self.arm, name) for name in options.vary}
        start = {
            "q": q,
            "v": v,
            "z": self.arm.initial_act,
            "told": told,
            "dt": np.array([TRIAL_STEP]),
        }
        x = filled(layout, options.lanes, np.dtype(options.precision), {**start, **nominal})
        made.step(x)
        after = x.reshape(layout.rows, -1)[layout.block("v")].T
        plant = Plant(self.arm, options.method)
        for lane in range(min(options.lanes, 8)):
            command = Command.checked(options.interface, told[lane], n)
            expected = plant.step(State.of(q[lane], v[lane]), command, TRIAL_STEP).v
            change = np.abs(expected - v[lane]).max() + TRIAL_STEP
            miss = np.abs(after[lane] - expected).max() / change
            bound = max(AGREEMENT[options.precision], 4 * np.finfo(x.dtype).eps / change)
            if not miss <= bound:
                raise KernelRejected(
                    f"kernel of arm '{self.arm.name}' ({options.key}) misses the plant's step by"
                    f" {miss:.2g} of its change; at most {bound:.2g} is allowed"
                )


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


def _nominal(arm: ArmModel, name: str) -> Vector:
    """The arm's own numbers for a variation."""
    kind, _, field = name.partition(".")
    if kind == "payload":
        return np.array([arm.payload.mass])
    if kind == "joint":
        return np.array([getattr(joint, field) for joint in arm.joints])
    if kind == "motor":
        return np.array([a.constants.get(field, 0.0) for a in arm.actuators])
    if field == "inertia":
        return np.ones(arm.nv)
    return np.array([inertia.mass for inertia in list(arm.links.inertias)[1:]])
