"""Validation: which cases a controller passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import BoolArray, IntArray, Matrix, Vector

MAX_RESIDUAL_ERROR = 0.05
"""Largest error [rad or m] in the last fifth of the time of a passed case."""


@dataclass(frozen=True, eq=False)
class ValidationResult:
    """Results by case; NaN: diverged.

    Attributes
    ----------
    passed : BoolArray
        Whether the case is passed, shape (n,).
    iae : Vector
        Σ_j ∫|e_j| dt [rad s], shape (n,).
    residual_error : Vector
        Largest error of all joints in the last fifth of the time [rad], shape (n,).

    """

    passed: BoolArray
    iae: Vector
    residual_error: Vector

    @property
    def count(self) -> int:
        """Number of passed cases."""
        return int(self.passed.sum())

    @property
    def diverged(self) -> int:
        """Number of cases in which the simulation diverged."""
        return int(np.isnan(self.residual_error).sum())

    @property
    def text(self) -> str:
        """Summary, such as "200 of 200 cases passed"."""
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        return f"{self.count} of {len(self.passed)} cases passed{diverged}"


def validate(
    cases: Cases, controller: Controller, gains: Mapping[str, Matrix] | None = None
) -> ValidationResult:
    """Run all cases with the controller's gains, or with one candidate's.

    A case is passed if the simulation does not diverge and |e_j| <= MAX_RESIDUAL_ERROR for every
    joint in the last fifth of the time.

    Parameters
    ----------
    cases : Cases
        Cases.
    controller : Controller
        Controller.
    gains : Mapping[str, Matrix], optional
        Gains of one candidate, see ``Cases.run``.

    """
    return evaluate_cases(cases.run(controller, gains), range(cases.arm.nv))


def evaluate_cases(result: RolloutResult, joints: Sequence[int]) -> ValidationResult:
    """Return the results of ``validate`` of a rollout, of the controlled ``joints`` only."""
    diverged = result.failed_step >= 0
    residual = result.metrics["residual_error"][:, joints].max(axis=1)
    residual = np.where(diverged, np.nan, residual)
    iae = np.where(diverged, np.nan, result.metrics["iae"][:, joints].sum(axis=1))
    with np.errstate(invalid="ignore"):
        return ValidationResult(residual <= MAX_RESIDUAL_ERROR, iae, residual)


def concatenate(parts: Sequence[ValidationResult], order: IntArray) -> ValidationResult:
    """Join results; ``order`` (n,) are the case numbers of their rows."""
    back = np.argsort(order)
    names = ("passed", "iae", "residual_error")
    return ValidationResult(
        *(np.concatenate([getattr(part, name) for part in parts])[back] for name in names)
    )
