"""Which cases a control law holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.batch.rollout import RolloutResult
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector

BOUND = 0.05
"""Largest error [rad or m] in the last fifth of the time that counts as held."""


@dataclass(frozen=True, eq=False)
class ValidationResult:
    """By case: held (n,), Σ_j ∫|e_j| dt (n,) [rad s], largest late error (n,) [rad]; NaN: lost."""

    passed: NDArray[np.bool_]
    iae: Vector
    residual_error: Vector

    @property
    def count(self) -> int:
        """Cases that are held."""
        return int(self.passed.sum())

    @property
    def lost(self) -> int:
        """Cases in which the arm left the finite numbers."""
        return int(np.isnan(self.residual_error).sum())

    @property
    def text(self) -> str:
        """In words, such as "held 200 of 200"."""
        lost = f", {self.lost} of the others lost altogether" if self.lost else ""
        return f"held {self.count} of {len(self.passed)}{lost}"


def validate(
    cases: Cases, law: Controller, gains: Mapping[str, Vector] | None = None
) -> ValidationResult:
    """Every case with the law's own gains, or with one candidate's of ``Cases.run``.

    Held: finite throughout, and |e_j| <= BOUND for every joint in the last fifth of the time.
    """
    return evaluate_cases(cases.run(law, gains), range(cases.arm.nv))


def evaluate_cases(batch: RolloutResult, joints: Sequence[int]) -> ValidationResult:
    """As ``validate`` says, of the ``joints`` alone that are controlled."""
    late = batch.metrics["settled_error"][:, joints].max(axis=1)
    late = np.where(batch.failed_step >= 0, np.nan, late)
    iae = np.where(batch.failed_step >= 0, np.nan, batch.metrics["iae"][:, joints].sum(axis=1))
    with np.errstate(invalid="ignore"):
        return ValidationResult(late <= BOUND, iae, late)


def concatenate(parts: Sequence[ValidationResult], order: Vector) -> ValidationResult:
    """Several as one, the cases numbered by ``order`` in their own order again."""
    back = np.argsort(order)
    names = ("passed", "iae", "residual_error")
    return ValidationResult(
        *(np.concatenate([getattr(p, name) for p in parts])[back] for name in names)
    )
