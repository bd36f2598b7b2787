"""Delay of recorded efforts against positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Vector
from arm_dynamics.identification.efforts.effort_equations import EffortEquations
from arm_dynamics.identification.efforts.friction_terms import LOSS, FrictionTerm
from arm_dynamics.identification.efforts.torque_problem import correlation_time
from arm_dynamics.identification.parameters.base_parameter_set import (
    base_parameters,
    structural_rows,
)
from arm_dynamics.identification.parameters.dynamic_parameters import parameter_names
from arm_dynamics.model.arm_model import ArmModel

DELAY_RANGE, DELAY_STEP = 0.05, 0.0025
"""Delays of the effort that are compared [s]."""


def effort_delay(
    arm: ArmModel, equations: EffortEquations, efforts: FloatArray
) -> tuple[float, float, str]:
    """Return the time [s] by which the efforts are late, 0 if not certain, its deviation, a note.

    The residual of weighted least squares over the base parameters, Stribeck friction and gear
    losses is least at the delay, with the presliding distance that explains the efforts best.
    Friction that is not part of the equations would change the delay. A parabola through the three
    least values gives the delay; its curvature and the correlation time of the residual give the
    standard deviation.

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
    tuple[float, float, str]
        Delay [s], its standard deviation [s] and a sentence.

    """
    slips = 0 if equations.velocity is None else len(equations.velocity)
    terms = [FrictionTerm(i, k) for i in range(arm.nv) for k in (*range(slips), LOSS)]
    columns = base_parameters(structural_rows(arm), parameter_names(arm)).independent
    shifts = np.arange(-DELAY_RANGE, DELAY_RANGE + DELAY_STEP / 2, DELAY_STEP)

    def cost_of(model: int, valid: BoolArray) -> _Cost:
        return _cost(equations, efforts, np.full(arm.nv, model), columns, terms, valid)

    costs = [cost_of(model, equations.valid) for model in range(len(equations.presliding))]
    model = int(np.argmin([cost.residual for cost in costs]))
    _, cost, freedom = cost_of(model, equations.counted(np.full(arm.nv, model)))
    k = int(np.clip(np.argmin(cost), 1, len(shifts) - 2))
    slope = (cost[k + 1] - cost[k - 1]) / (2 * DELAY_STEP)
    curvature = (cost[k - 1] - 2 * cost[k] + cost[k + 1]) / DELAY_STEP**2
    if curvature <= 0:
        return 0.0, DELAY_RANGE, "efforts: no delay found"
    delay = float(shifts[k] - slope / curvature)
    deviation = float(np.sqrt(2 * cost[k] / freedom / curvature))
    text = f"{1e3 * delay:.2f} ± {1e3 * deviation:.2f} ms"
    if abs(delay) > DELAY_RANGE:
        limit = f"expected at most {1e3 * DELAY_RANGE:g} ms"
        return 0.0, abs(delay), f"efforts: delay = {text}; {limit}; not removed"
    if abs(delay) < 3 * deviation:
        return 0.0, max(deviation, abs(delay)), f"efforts: no delay found ({text})"
    return delay, deviation, f"efforts: delay = {text}, removed"


class _Cost(NamedTuple):
    """Logarithm of the residual, cost of each delay, and degrees of freedom."""

    residual: float
    delays: Vector
    freedom: float


def _cost(
    equations: EffortEquations,
    efforts: FloatArray,
    models: IntArray,
    columns: IntArray,
    terms: Sequence[FrictionTerm],
    valid: BoolArray,
) -> _Cost:
    """Return the cost of each delay with one friction model; correlated samples count as one."""
    linear, effort = equations.rows(models)[:, :, columns], np.zeros_like(valid, float)
    if equations.coupled is not None:
        linear = np.concatenate((linear, equations.coupled), axis=2)
    scale = np.ones(valid.shape[1])
    for _ in range(3):
        rows = np.concatenate((linear, equations.term_rows(models, terms, effort)), axis=2)
        weights = valid / scale
        weighted = (rows * weights[..., None]).reshape(valid.size, -1)
        targets = (efforts * weights).reshape(len(efforts), -1).T
        squares = weighted.T @ weighted
        squares[np.diag_indices_from(squares)] *= 1 + 1e-12
        values = scipy.linalg.lstsq(squares, weighted.T @ targets)[0]
        cost = np.sum((targets - weighted @ values) ** 2, axis=0)
        k = int(np.argmin(cost))
        effort = rows @ values[:, k]
        residual = np.where(valid, efforts[k] - effort, 0.0)
        scale = np.maximum(np.sqrt(np.mean(residual**2, axis=0)), 1e-9)
    freedom = max(int(valid.sum()) - rows.shape[2], 1) / correlation_time(residual / scale)
    return _Cost(float(np.log(scale).sum()), cost, freedom)
