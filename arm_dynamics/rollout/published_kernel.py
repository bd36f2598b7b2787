"""The objective of the published gain search for many gains at once, by generated code."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamechs import CONTROLLED, DRY, LOST, ROTOR, Dynamechs, objective
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.requirements import to_install
from arm_dynamics.rollout.kernel import KernelRejected, filled
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.store import fingerprint, module

LANES = 4
"""Gains judged side by side: a vector of the processor; more would not be faster each."""
AGREEMENT = 1e-9
"""Largest difference from ``dynamechs.objective`` over TRIAL_CALLS, relative."""
TRIAL_CALLS = 200
TRIAL_GAINS = ((6.0, 0.1), (300.0, 1.0), (1500.0, 0.0), (20000.0, 0.1))
"""P and I [V/rad] that the check is made with, the same at every joint."""


class PublishedKernel:
    """``dynamechs.objective`` of an arm for rows of gains; no lane's numbers depend on others'."""

    def __init__(self, arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> None:
        """Load the kernel, or make it and hold it to ``dynamechs.objective``.

        Raises KernelRejected when it does not agree, ConfigError without CasADi when it has to
        be made, InvalidValue for an arm that has no published step.
        """
        rows = Dynamechs(arm).rows  # raises where there is no such step
        if rows[[DRY, ROTOR]].any():
            raise KernelRejected(
                f"published objective of arm '{arm.name}': dry friction and rotor inertia have no"
                " kernel"
            )
        self.arm, self.joints = arm, tuple(joints)
        key = fingerprint(arm, ("published", arm.pose("initial").tobytes(), self.joints, LANES))
        self._module = module(key, self._text, self._check)

    def objectives(
        self, p: Vector, i: Vector, *, duration: float = 3.0, dt: float = 1e-4
    ) -> Vector:
        """Objectives (m,) of gains p, i (m, joints), as ``dynamechs.objective``.

        A joint without gains may lock at a torque of exactly 0, which the kernel does not model.
        """
        calls, totals = round(duration / dt), np.empty(len(p))
        may_lock = ((p == 0) & (i == 0)).any(axis=1)
        for k in np.flatnonzero(may_lock):
            totals[k] = objective(
                self.arm, p[k], i[k], joints=self.joints, duration=duration, dt=dt
            )
        traced = np.flatnonzero(~may_lock)
        for first in range(0, len(traced), LANES):
            lanes = traced[first : first + LANES]
            totals[lanes] = self._totals(self._module, p[lanes], i[lanes], calls, dt)
        return totals

    def _text(self) -> str:
        try:
            from arm_dynamics.rollout.published_trace import published_text  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name != "casadi":
                raise
            raise ConfigError(
                f"a kernel has to be made and CasADi is missing: {to_install('rollout')}"
            ) from error
        return published_text(self.arm, self.joints, LANES)

    def _check(self, made: Any) -> None:
        gains, dt = np.array(TRIAL_GAINS), 1e-4
        p, i = (np.repeat(gains[:, k : k + 1], len(self.joints), axis=1) for k in (0, 1))
        found = self._totals(made, p[:LANES], i[:LANES], TRIAL_CALLS, dt)
        for lane, total in enumerate(found):
            expected = objective(
                self.arm, p[lane], i[lane], joints=self.joints, duration=TRIAL_CALLS * dt, dt=dt
            )
            if not abs(total - expected) <= AGREEMENT * expected:
                raise KernelRejected(
                    f"kernel of the published objective of arm '{self.arm.name}': {total!r} with"
                    f" P, I = {TRIAL_GAINS[lane]}, {expected!r} +- {AGREEMENT:g} is expected"
                )

    def _totals(self, made: Any, p: Vector, i: Vector, calls: int, dt: float) -> Vector:
        """Objectives of at most LANES gains; the last one fills the lanes that are left."""
        lanes = np.minimum(np.arange(LANES), len(p) - 1)
        pose, columns = self.arm.pose("initial"), [self.arm.index(joint) for joint in self.joints]
        start = {"q": pose[made.MOVING], "target": pose[columns], "dt": np.array([dt])}
        layout = Layout.of(made.LAYOUT)
        gains = {"gain_p": p[lanes], "gain_i": i[lanes]}
        x = filled(layout, LANES, np.dtype(float), {**start, **gains})
        made.score(x, calls)
        totals = x.reshape(layout.rows, LANES)[layout.first["total"], : len(p)]
        return np.where(totals < inf, totals, LOST)
