"""Result of an identification as plain values: joints, parameters and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, nan

import numpy as np

from arm_dynamics.core.arrays import Vector

NO_CURVE = np.empty(0)
GROWTH, MIN_GROWN = 1.2, 0.05
"""Held-out error over that of the nominal model above which a fit is worse, and relative error
below which it is not reported."""


@dataclass(frozen=True, slots=True, eq=False)
class JointFit:
    """Prediction of one joint's effort or position, on motion that was not used for the fit.

    Attributes
    ----------
    name, unit : str
        Joint, and unit of its effort or position: "N·m", "N", "mrad" or "mm".
    rms_before, rms_after : float
        RMS of measured minus predicted value, with the URDF's values and with the identified
        ones [unit].
    error_before, error_after : float
        The same relative to the RMS of the measured effort, a fraction; for positions relative to
        their standard deviation; NaN without motion.
    time : Vector
        Times (n,) of the curves [s]; empty without curves.
    measured, before, after : Vector
        Measured value and both predictions (n,) [unit].
    error_urdf : float
        Relative error of the written URDF, without effort offsets and other terms that a URDF does
        not contain; NaN if it is ``error_after``.

    """

    name: str
    unit: str
    rms_before: float
    rms_after: float
    error_before: float
    error_after: float
    time: Vector = field(default_factory=lambda: NO_CURVE)
    measured: Vector = field(default_factory=lambda: NO_CURVE)
    before: Vector = field(default_factory=lambda: NO_CURVE)
    after: Vector = field(default_factory=lambda: NO_CURVE)
    error_urdf: float = nan


def worse_joints(joints: Sequence[JointFit]) -> list[str]:
    """Return a sentence about joints that the fit predicts worse than the nominal model, if any."""
    errors = [
        f"{x.name} {100 * x.error_before:.3g} to {100 * x.error_after:.3g} %"
        for x in joints
        if x.rms_after > GROWTH * x.rms_before and x.error_after > MIN_GROWN
    ]
    return errors and [
        f"held-out error of joints {', '.join(errors)}: larger than that of the nominal model;"
        " expected a smaller one; the fitted recordings are too short, or another motion than"
        " the held-out one: fit more of them, and keep the nominal model until then"
    ]


@dataclass(frozen=True, slots=True)
class ParameterFit:
    """An identified parameter: ``deviation`` is its standard deviation in per cent of ``value``.

    NaN or infinity marks a parameter that the motion does not determine; its value is the prior.
    ``prior`` is NaN where the model has none.
    """

    name: str
    unit: str
    prior: float
    value: float
    deviation: float

    @property
    def is_determined(self) -> bool:
        """Whether the motion determines the parameter."""
        return isfinite(self.deviation)


@dataclass(frozen=True, slots=True, eq=False)
class FitSummary:
    """Result of an identification, as plain values.

    Attributes
    ----------
    arm, date : str
        Name of the arm and date of the identification.
    sources, held_out : tuple of str
        Names of the recordings that were fitted, and of those that check the result.
    joints : tuple of JointFit
        Prediction by joint.
    parameters : tuple of ParameterFit
        Parameters in the order of the table.
    condition : float
        Condition number of the weighted regressor of the base parameters.
    groups : tuple of str
        Parameters that this motion does not distinguish, in words.
    notes : tuple of str
        Remarks: filter, delay, friction model, warnings.
    combinations : tuple of str
        Combinations of several parameters that efforts determine, in words.
    quantity : str
        Predicted quantity: "effort" or "position".

    """

    arm: str
    date: str
    sources: tuple[str, ...]
    held_out: tuple[str, ...]
    joints: tuple[JointFit, ...]
    parameters: tuple[ParameterFit, ...]
    condition: float
    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    combinations: tuple[str, ...] = ()
    quantity: str = "effort"
