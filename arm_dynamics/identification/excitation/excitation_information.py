"""Identifiable parameters of an excitation trajectory, and the efforts that it requires."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.dynamics.rigid_body import rnea_batch
from arm_dynamics.identification.excitation.excitation import Excitation
from arm_dynamics.identification.parameters.base_parameter_set import (
    BaseParameters,
    base_parameters,
    structural_rows,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    parameter_names,
    regressor,
)
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

NOISE = 0.01
"""Assumed standard deviation of a measured effort, relative to its weight."""
RATE = 100.0
"""Assumed rate [Hz] of independent measurements."""
LARGE_DEVIATION = 0.3
"""Relative standard deviation from which on a parameter is not identifiable."""
INSEPARABLE = 100.0
"""Relative standard deviation from which on a parameter is not distinguishable from others."""
NOTICEABLE = 0.05
"""Rms effort of a parameter, relative to the weight, that a motion has to determine at least."""
TERMS = 3
"""Terms of a base parameter that a message contains."""


@dataclass(frozen=True, slots=True, eq=False)
class ExcitationQuality:
    """Information of an excitation trajectory about the base parameters of an arm.

    Parameters
    ----------
    base : BaseParameters
        All nb combinations that some motion determines.
    condition : float
        Condition number of the weighted base regressor with columns of norm 1; infinite if a base
        parameter has no effect.
    deviations : (nb,) array
        Expected standard deviations, relative to the size of each base parameter: the largest of
        its prior value, the sum of its prior terms, and the value that changes the rms effort by
        NOTICEABLE.

    """

    base: BaseParameters
    condition: float
    deviations: Vector

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Base parameters that are not identifiable from the motion, in words."""
        found = []
        for i in np.flatnonzero(~(self.deviations <= LARGE_DEVIATION)).tolist():
            deviation = float(self.deviations[i])
            reason = f"standard deviation {deviation:.0%} of its size"
            if deviation > INSEPARABLE:
                reason = "not distinguishable from other parameters"
            if not np.isfinite(deviation):
                reason = "no effect on an effort"
            found.append(f"{_shortened(self.base.describe(i))}: {reason}")
        return tuple(found)


@requires_arm
def effort_weights(arm: ArmModel) -> Vector:
    """Return the efforts (nv,) [N·m or N] by which rows are divided.

    They are the effort limits, or for a joint without a limit its largest prior effort at random
    states within the position limits.
    """
    limit = np.array(arm.effort_limit)
    if not np.isfinite(limit).all() or not (limit > 0).all():
        rows = structural_rows(arm).reshape(-1, arm.nv, ParameterLayout(arm.nv).size)
        largest = np.abs(rows @ nominal_parameters(arm)).max(axis=0)
        usable = np.isfinite(limit) & (limit > 0)
        limit = np.where(usable, limit, np.where(largest > 1e-9, largest, 1.0))
    return limit


@requires_arm
def planned_effort(arm: ArmModel, q: Matrix, v: Matrix, a: Matrix) -> Matrix:
    """Return τ = M a + C v + g + b v + f sign(v) (n, nv) [N·m or N] of the prior model.

    Parameters
    ----------
    arm : ArmModel
        Prior model.
    q, v, a : (n, nv) arrays
        Positions, velocities and accelerations [rad, rad/s, rad/s²; m].

    """
    layout, nominal = ParameterLayout(arm.nv), nominal_parameters(arm)
    viscous, coulomb = nominal[layout.viscous], nominal[layout.coulomb]
    effort: Matrix = rnea_batch(arm, q, v, a) + viscous * v + coulomb * np.sign(v)
    return effort


@requires_arm
def excitation_quality(
    arm: ArmModel, excitation: Excitation, *, noise: float = NOISE, rate: float = RATE
) -> ExcitationQuality:
    """Return how well a trajectory identifies an arm's parameters, before it is run.

    cov β = σ² (Wᵀ W)⁻¹ of the base regressor W, rows divided by ``effort_weights``

    Parameters
    ----------
    arm : ArmModel
        Prior model.
    excitation : Excitation
        Trajectory of this arm.
    noise : float
        σ: standard deviation of a measured effort, relative to its weight.
    rate : float
        Rate of independent measurements [Hz].

    Raises
    ------
    InvalidValue
        If the joints differ.

    References
    ----------
    M. Gautier, W. Khalil, Exciting trajectories for the identification of base inertial parameters
    of robots, Int. J. Robotics Research 11 (1992), section 3.

    """
    excitation.require_joints(arm)
    base = base_parameters(structural_rows(arm), parameter_names(arm))
    count = max(int(excitation.duration * rate), 10)
    times = (np.arange(count) + 0.5) * excitation.duration / count
    rows = regressor(arm, *excitation.sample(times))[:, :, base.independent]
    rows = (rows / effort_weights(arm)[:, None]).reshape(-1, base.size)
    norms = np.linalg.norm(rows, axis=0)
    seen = norms > 1e-9 * norms.max(initial=1e-300)
    _, values, vectors = np.linalg.svd(rows[:, seen] / norms[seen], full_matrices=False)
    condition = np.inf if not seen.all() or values[-1] <= 0 else float(values[0] / values[-1])
    prior = nominal_parameters(arm)
    sizes = np.abs(base.combinations) @ np.abs(prior)
    deviations = np.full(base.size, np.inf)
    spread = np.linalg.norm(vectors.T / np.maximum(values, 1e-300), axis=1)
    noticeable = NOTICEABLE * np.sqrt(len(rows)) / norms[seen]
    deviations[seen] = noise * spread / norms[seen] / np.maximum(sizes[seen], noticeable)
    return ExcitationQuality(base, condition, deviations)


def unidentifiable(arm: ArmModel, excitation: Excitation) -> tuple[str, ...]:
    """Return the base parameters that are not identifiable from a trajectory, in words.

    These are the ones without effect on an effort, or with an expected standard deviation above
    LARGE_DEVIATION of their size. ``excitation_quality`` has the numbers.
    """
    return excitation_quality(arm, excitation).unidentifiable


def _shortened(text: str) -> str:
    """Return the first TERMS terms of a sum in words."""
    words = text.replace(" + ", "\n+ ").replace(" - ", "\n- ").split("\n")
    more = len(words) - TERMS
    return " ".join(words[:TERMS]) + (f" ... ({more} more terms)" if more > 0 else "")
