"""Tolerances of an identified arm, for Monte Carlo analysis and gain search."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from arm_dynamics.batch.tuning.tolerance import SIGMAS, variable_values
from arm_dynamics.batch.variation import variable_names
from arm_dynamics.core.arrays import Vector, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    with_parameters,
)
from arm_dynamics.identification.parameters.identified_urdf import NO_DEVIATIONS, checked_parameters
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

TERM_NAMES = {
    "armature": ("motor.armature", "motor.rotor_inertia"),
    "viscous": ("joint.damping", "motor.viscous_friction"),
    "coulomb": ("joint.friction", "motor.coulomb_friction", "motor.stiction"),
}
"""Quantities of ``variable_names`` that one identified term of a joint determines."""
MAX_FRACTION = 0.95
"""Largest tolerance; a fraction is below 1."""
PRIOR = 0.1
"""Tolerance of parameters that the motion does not determine: that of data sheets."""


@requires_arm
def uncertainty_yaml(
    arm: ArmModel,
    values: Vector,
    deviations: Vector,
    *,
    prior: float = PRIOR,
    nominal: Vector | None = None,
    constant_deviations: Mapping[str, float] = NO_DEVIATIONS,
) -> str:
    """Return tolerances of an identified arm as a file for ``--tolerance-file``.

    fraction = 3 σ / |value|, at most 0.95

    ``arm-dynamics montecarlo`` and ``arm-dynamics tune`` read the file together with the
    identified URDF. The tolerance of a link's inertia is that of its tensor about the joint
    frame's origin, 3 |σ_I| / |I| in the Frobenius norm. Centers of mass do not vary there.

    Parameters
    ----------
    arm : ArmModel
        The nominal arm, with the fitted motor constants.
    values : Vector
        Identified parameters (14 nv,) in the order of ``parameter_names``.
    deviations : Vector
        Standard deviations (14 nv,) in the units of ``values``; NaN or infinite for parameters
        that the motion does not determine.
    prior : float
        Tolerance of those parameters, a fraction.
    nominal : Vector, optional
        Parameters (14 nv,) of the nominal model: the tolerance of a parameter that the motion does
        not determine contains its value there.
    constant_deviations : Mapping[str, float]
        Standard deviations of fitted motor constants [%], for example of "J1.backlash".

    Returns
    -------
    str
        YAML text: quantity to fraction by joint, normal distributions.

    Raises
    ------
    InvalidValue
        For a wrong size, and for values of no arm (``with_parameters``).

    """
    values, spread = checked_parameters(arm, values, deviations)
    assert spread is not None
    if check_float("prior", prior, lower=0) >= 1:
        raise InvalidValue(f"prior = {prior:g}; expected below 1")
    before = values if nominal is None else check_vector("nominal", nominal, values.size)
    identified = with_parameters(arm, values)
    lines = [
        "# Tolerances of identified parameters: 3 standard deviations, relative; normal.",
        f"# At least {prior:g} for parameters that the motion does not determine.",
    ]
    for name, fractions in _fractions(values, spread, before, prior):
        lines += _lines(identified, name, fractions)
    for name, fractions in _constant_fractions(arm, constant_deviations):
        lines += _lines(identified, name, fractions)
    return "\n".join(lines) + "\n"


def _lines(arm: ArmModel, name: str, fractions: Vector) -> list[str]:
    """Return the lines of the joints (nv,) that have the quantity and a tolerance."""
    sizes = variable_values(arm, name) if name in variable_names(arm) else np.zeros(arm.nv)
    entries = [
        f"    {json.dumps(joint, ensure_ascii=False)}: {fraction:.3g}"  # quoted: maybe a number
        for joint, fraction, value in zip(arm.joint_names, fractions, sizes, strict=True)
        if value and fraction
    ]
    return entries and [f"{name}:", "  distribution: normal", "  fraction:", *entries]


def _constant_fractions(
    arm: ArmModel, deviations: Mapping[str, float]
) -> Iterator[tuple[str, Vector]]:
    """Yield fitted motor constants that are not among the parameters, and their tolerances."""
    for name in dict.fromkeys(key.rpartition(".")[2] for key in deviations):
        if name not in TERM_NAMES:
            percent = [deviations.get(f"{joint}.{name}", 0.0) for joint in arm.joint_names]
            yield f"motor.{name}", np.minimum(0.01 * SIGMAS * np.array(percent), MAX_FRACTION)


def _fractions(
    values: Vector, spread: Vector, before: Vector, prior: float
) -> Iterator[tuple[str, Vector]]:
    """Yield quantities and their tolerances (nv,)."""
    layout = ParameterLayout(values.size // 14)
    bodies, errors, changes = map(layout.bodies, (values, spread, values - before))
    double = np.array([1, 2, 1, 2, 2, 1])  # Ixx Ixy Iyy Ixz Iyz Izz: products occur twice
    norm, change = (np.sqrt(rows[:, 4:] ** 2 @ double) for rows in (bodies, changes))
    yield "link.mass", _relative(errors[:, 0], bodies[:, 0], changes[:, 0], prior)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.sqrt(errors[:, 4:] ** 2 @ double)
    yield "link.inertia", _relative(error, norm, change, prior)
    for term, names in TERM_NAMES.items():
        at = getattr(layout, term)
        for name in names:
            yield name, _relative(spread[at], values[at], (values - before)[at], prior)


def _relative(error: Vector, value: Vector, change: Vector, prior: float) -> Vector:
    """Return 3 σ / |value|, or the larger of prior and change where σ is not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = SIGMAS * np.abs(error) / np.abs(value)
        unknown = np.maximum(prior, np.abs(change) / np.abs(value))
    fraction = np.where(np.isfinite(error), fraction, unknown)
    limited: Vector = np.minimum(np.where(value != 0, fraction, prior), MAX_FRACTION)
    return limited
