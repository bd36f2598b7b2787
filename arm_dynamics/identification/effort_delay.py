"""Delay of recorded efforts against positions."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import BoolArray, FloatArray, Vector
from arm_dynamics.identification.base_parameter_set import base_parameters, structural_rows
from arm_dynamics.identification.dynamic_parameters import parameter_names
from arm_dynamics.identification.effort_equations import EffortEquations
from arm_dynamics.model.arm_model import ArmModel

DELAY_RANGE, DELAY_STEP = 0.05, 0.0025
"""Delays of the effort that are compared [s]."""


def effort_delay(
    arm: ArmModel, equations: EffortEquations, efforts: FloatArray
) -> tuple[float, str]:
    """Return the time [s] by which the efforts are late, 0 if it is not certain, and a note.

    The residual of weighted least squares over the base parameters is least at the delay, with the
    friction model that explains the efforts best. A parabola through the three least values gives
    the delay, and its curvature the standard deviation.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    equations : EffortEquations
        Equations of n samples.
    efforts : FloatArray
        Efforts (nd, n, nv) [N·m or N] at the delays from -DELAY_RANGE to DELAY_RANGE.

    Returns
    -------
    tuple[float, str]
        Delay [s] and a sentence with its standard deviation.

    """
    nv = arm.nv
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)

    def cost_of(model: int, valid: BoolArray) -> tuple[float, Vector, int]:
        """Return the logarithm of the residual, the cost of each delay, and degrees of freedom."""
        rows = equations.rows(np.full(nv, model))[:, :, base.independent]
        if equations.coupled is not None:
            rows = np.concatenate((rows, equations.coupled), axis=2)
        scale = np.ones(nv)
        for _ in range(3):
            weights = valid / scale
            weighted = (rows * weights[..., None]).reshape(-1, rows.shape[2])
            targets = (efforts * weights).reshape(len(shifts), -1).T
            squares = weighted.T @ weighted
            squares[np.diag_indices_from(squares)] *= 1 + 1e-12
            values = scipy.linalg.lstsq(squares, weighted.T @ targets)[0]
            cost = np.sum((targets - weighted @ values) ** 2, axis=0)
            k = int(np.argmin(cost))
            residual = np.where(valid, efforts[k] - rows @ values[:, k], 0.0)
            scale = np.maximum(np.sqrt(np.mean(residual**2, axis=0)), 1e-9)
        return float(np.log(scale).sum()), cost, max(int(valid.sum()) - base.size, 1)

    fits = [cost_of(model, equations.valid) for model in range(len(equations.presliding))]
    model = int(np.argmin([fit[0] for fit in fits]))
    _, cost, freedom = cost_of(model, equations.counted(np.full(nv, model)))
    k = int(np.clip(np.argmin(cost), 1, len(shifts) - 2))
    slope = (cost[k + 1] - cost[k - 1]) / (2 * DELAY_STEP)
    curvature = (cost[k - 1] - 2 * cost[k] + cost[k + 1]) / DELAY_STEP**2
    if curvature <= 0:
        return 0.0, "efforts: no delay found"
    late = float(shifts[k] - slope / curvature)
    variance = cost[k] / freedom
    text = f"{1e3 * late:.2f} ± {1e3 * np.sqrt(2 * variance / curvature):.2f} ms"
    if abs(late) < 3 * np.sqrt(2 * variance / curvature) or abs(late) > DELAY_RANGE:
        return 0.0, f"efforts: no delay found ({text})"
    return late, f"efforts: delay = {text}, taken out"
