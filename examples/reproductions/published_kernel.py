"""The objective of the published gain search for many gains together, by generated code."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.kernel_cache import (
    KernelRejected,
    cached_module,
    casadi_required,
    fingerprint,
)
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, filled_block
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import CONTROLLED, DRY, LOST, ROTOR, Dynamechs, objective

LANES = 4
"""Gains evaluated side by side: one vector register; more are not faster per gain."""
AGREEMENT = 1e-9
"""Allowed relative difference from ``dynamechs.objective`` over TRIAL_CALLS calls."""
TRIAL_CALLS = 200
TRIAL_GAINS = ((6.0, 0.1), (300.0, 1.0), (1500.0, 0.0), (20000.0, 0.1))
"""P and I [V/rad] of the check, the same for every joint."""


class PublishedKernel:
    """``dynamechs.objective`` of an arm for rows of gains; no row depends on the others."""

    def __init__(self, arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> None:
        """Load the kernel, or generate it and check it against ``dynamechs.objective``.

        Parameters
        ----------
        arm : ArmModel
            Arm.
        joints : sequence of str
            Controlled joints.

        Raises
        ------
        KernelRejected
            If the kernel does not agree, or the arm has dry friction or rotor inertia.
        ConfigError
            If it has to be generated and CasADi is missing.
        InvalidValue
            If the arm has no published step.

        """
        rows = Dynamechs(arm).rows  # raises InvalidValue
        if rows[[DRY, ROTOR]].any():
            raise KernelRejected(
                f"published kernel of arm '{arm.name}': dry friction or rotor inertia = above 0;"
                " expected 0"
            )
        self.arm, self.joints = arm, tuple(joints)
        source = Path(__file__).with_name("published_trace.py").read_bytes()
        key = fingerprint(arm, (source, arm.configuration("initial").tobytes(), self.joints, LANES))
        self._module = cached_module(key, self._source, self._check)

    def objectives(
        self, p: Matrix, i: Matrix, *, duration: float = 3.0, dt: float = 1e-4
    ) -> Vector:
        """Return the objectives as ``dynamechs.objective``.

        A joint without gains may lock at a torque of exactly 0, which the kernel does not model:
        such rows are evaluated by the function itself.

        Parameters
        ----------
        p, i : Matrix
            Gains [V/rad], shape (m, joints).
        duration, dt : float
            Simulated time and time step [s].

        Returns
        -------
        Vector
            Objectives [rad], shape (m,).

        """
        calls, totals = round(duration / dt), np.empty(len(p))
        may_lock = ((p == 0) & (i == 0)).any(axis=1)
        for k in np.flatnonzero(may_lock):
            totals[k] = objective(
                self.arm, p[k], i[k], joints=self.joints, duration=duration, dt=dt
            )
        others = np.flatnonzero(~may_lock)
        for first in range(0, len(others), LANES):
            rows = others[first : first + LANES]
            totals[rows] = self._totals(self._module, p[rows], i[rows], calls, dt)
        return totals

    def _source(self) -> ModuleSource:
        with casadi_required("published kernel"):
            from published_trace import published_source  # noqa: PLC0415
        return published_source(self.arm, self.joints, LANES)

    def _check(self, module: Any) -> None:
        """Raise KernelRejected unless the kernel agrees with ``dynamechs.objective``."""
        gains, dt = np.array(TRIAL_GAINS), 1e-4
        p, i = (np.repeat(gains[:, k : k + 1], len(self.joints), axis=1) for k in (0, 1))
        totals = self._totals(module, p[:LANES], i[:LANES], TRIAL_CALLS, dt)
        for k, total in enumerate(totals):
            expected = objective(
                self.arm, p[k], i[k], joints=self.joints, duration=TRIAL_CALLS * dt, dt=dt
            )
            if not abs(total - expected) <= AGREEMENT * expected:
                raise KernelRejected(
                    f"published kernel of arm '{self.arm.name}', P, I = {TRIAL_GAINS[k]}:"
                    f" objective = {total!r} rad; expected {expected!r} rad within {AGREEMENT:g}"
                )

    def _totals(self, module: Any, p: Matrix, i: Matrix, calls: int, dt: float) -> Vector:
        """Return the objectives of at most LANES rows; the last row fills the other lanes."""
        lanes = np.minimum(np.arange(LANES), len(p) - 1)
        q, columns = (
            self.arm.configuration("initial"),
            [self.arm.index(joint) for joint in self.joints],
        )
        start = {"q": q[module.MOVING], "target": q[columns], "dt": np.array([dt])}
        layout = Layout.of(module.LAYOUT)
        gains = {"gain_p": p[lanes], "gain_i": i[lanes]}
        x = filled_block(layout, LANES, np.dtype(float), module.CONSTANTS, {**start, **gains})
        module.score(x, calls)
        totals = x.reshape(layout.rows, LANES)[layout.first["total"], : len(p)]
        return np.where(totals < inf, totals, LOST)
