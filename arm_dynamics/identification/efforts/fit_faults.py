"""Poor results of an identification, with their likely causes in the recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector
from arm_dynamics.dynamics.rigid_body import rnea_batch
from arm_dynamics.identification.efforts.effort_equations import joined_equations
from arm_dynamics.identification.efforts.motion_preparation import PreparedMotion
from arm_dynamics.identification.parameters.dynamic_parameters import (
    JOINT_TERMS,
    ParameterLayout,
    nominal_parameters,
)
from arm_dynamics.identification.results.fit_summary import JointFit, worse_joints
from arm_dynamics.model.arm_model import ArmModel

POOR_PREDICTION, MIN_ERROR = 0.3, 0.01
"""Held-out error of efforts relative to their RMS, and relative to the effort limit, up to either
of which a fit predicts the efforts of a joint."""
OPPOSITE, MIN_EQUATIONS = -0.5, 20
"""Signed energy of the explained efforts over that of the measured ones below which the sign is
opposite, and number of samples of a joint from which on that is evaluated."""
TILTED, MAX_RESIDUAL = np.deg2rad(30), 0.5
"""Angle of two directions of gravity above which they differ, and the sum of squared residuals that
another direction has to reach, relative to that of the nominal direction."""
ALIGNED = np.deg2rad(5)
"""Angle up to which a direction of gravity is an axis of the base frame."""


def fit_faults(
    arm: ArmModel,
    motions: Sequence[PreparedMotion],
    joints: Sequence[JointFit],
    *,
    has_efforts: bool = True,
) -> list[str]:
    """Return sentences about joints that the fit does not predict, with the likely causes.

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    motions : Sequence[PreparedMotion]
        The fitted recordings.
    joints : Sequence[JointFit]
        Prediction of the validation data.
    has_efforts : bool
        Efforts were measured; else they follow from currents, whose sign ``drive_gains`` checks.

    Returns
    -------
    list of str
        Sentences; empty for a usable fit.

    """
    limits = zip(joints, np.where(arm.effort_limit > 0, arm.effort_limit, 0.0), strict=True)
    joints = [x for x, limit in limits if not x.rms_after < MIN_ERROR * limit < np.inf]
    faults = worse_joints(joints)
    poor = [x for x in joints if x.error_after > POOR_PREDICTION]
    if poor:
        cause = (
            (_sign_fault(arm, motions) or _mounting_fault(arm, motions)) if has_efforts else None
        )
        faults = [cause or _prediction_fault(arm, motions, poor), *faults]
    return faults


def _sign_fault(arm: ArmModel, motions: Sequence[PreparedMotion]) -> str | None:
    """Return a sentence about joints whose efforts have the opposite sign, if there are any."""
    opposite = opposite_joints(arm, motions)
    if not opposite.any():
        return None
    if 2 * opposite.sum() > arm.nv and fitted_gravity(arm, motions)[0] @ arm.gravity < 0:
        opposite[:] = True  # lightly loaded joints too
    names = np.array(arm.joint_names)[opposite].tolist()
    which = "all joints" if opposite.all() else f"joints {', '.join(names)}"
    return (
        f"efforts of {which}: sign = opposite to those of the nominal model or of friction;"
        " expected positive efforts that accelerate in the positive direction; change the sign"
    )


def _prediction_fault(
    arm: ArmModel, motions: Sequence[PreparedMotion], joints: Sequence[JointFit]
) -> str:
    """Return a sentence about ``joints`` whose efforts are not predicted without a known cause."""
    targets = [motion.data.command_position for motion in motions]
    suits_servos = all(joint.actuator == "dc_motor" for joint in arm.joints) and all(
        target is not None and np.isfinite(target).any(axis=0).all() for target in targets
    )
    remedy = (
        "the recordings contain target positions: fit these with arm-dynamics identify servos"
        " --servo NAME (--servo sts3215)"
        if suits_servos
        else "check order, sign and units of the efforts, and whether a drive measures small ones"
    )
    errors = ", ".join(f"{x.name} {100 * x.error_after:.3g} %" for x in joints)
    return (
        f"held-out error of the efforts of joints {errors}: expected at most"
        f" {100 * POOR_PREDICTION:g} % of their RMS, or {100 * MIN_ERROR:g} % of the effort"
        f" limit; {remedy}"
    )


def opposite_joints(arm: ArmModel, motions: Sequence[PreparedMotion]) -> BoolArray:
    """Return the joints (nv,) whose efforts have the opposite sign.

    The effort of each joint is fitted by that of the nominal bodies times a factor, friction,
    rotor inertia and an offset. The sign is opposite if a negative factor and negative friction
    explain more than half of the effort's energy, less what positive ones explain.

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    motions : Sequence[PreparedMotion]
        Motions with efforts.

    """
    equations = joined_equations([motion.equations for motion in motions])
    layout, nominal = ParameterLayout(arm.nv), nominal_parameters(arm)
    rows = equations.rows(np.zeros(arm.nv, dtype=int))
    is_opposite = np.zeros(arm.nv, dtype=bool)
    for i in range(arm.nv):
        used = equations.valid[:, i]
        if used.sum() < MIN_EQUATIONS:
            continue
        effort = equations.effort[used, i]
        terms = rows[used, i][:, layout.joint_terms(i)]
        bodies = rows[used, i][:, layout.inertial] @ nominal[layout.inertial]
        columns = np.column_stack((bodies, terms))
        factors = np.linalg.lstsq(columns, effort, rcond=None)[0]
        v, slides = (terms[:, JOINT_TERMS.index(name)] for name in ("viscous", "coulomb"))
        values = dict(zip(JOINT_TERMS, factors[1:], strict=True))
        friction = values["viscous"] * v + values["coulomb"] * slides
        score = factors[0] * abs(factors[0]) * np.sum(bodies**2)
        score += np.sign(friction @ v) * np.sum(friction**2)
        is_opposite[i] = score < OPPOSITE * np.sum((effort - values["offset"]) ** 2)
    return is_opposite


def fitted_gravity(arm: ArmModel, motions: Sequence[PreparedMotion]) -> tuple[Vector, float]:
    """Return the gravity in the base frame that explains recorded efforts best.

    τ = τ(q, v, a) + Σ g_k ∂τ/∂g_k + friction, with the nominal bodies without gravity in
    the first term. Rotor inertia, friction and offset of each joint are fitted too.

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    motions : Sequence[PreparedMotion]
        Motions with efforts.

    Returns
    -------
    tuple of Vector and float
        Gravity (3,) [m/s²], and the weighted sum of squared residuals over that with the nominal
        gravity.

    """
    equations = joined_equations([motion.equations for motion in motions])
    layout, axes = ParameterLayout(arm.nv), [arm.with_gravity(axis) for axis in np.eye(3)]
    gravity = np.concatenate(
        [
            motion.terms(
                lambda q, _v, _a: np.stack(
                    [rnea_batch(tilted, q, 0 * q, 0 * q) for tilted in axes], axis=-1
                )
            )
            for motion in motions
        ]
    )
    rows = equations.rows(np.zeros(arm.nv, dtype=int))
    bodies = rows[..., layout.inertial] @ nominal_parameters(arm)[layout.inertial]
    friction = rows[..., layout.inertial.stop :]
    with_nominal = equations.effort - bodies
    both = np.concatenate([gravity, friction], axis=-1)
    weight = equations.valid.astype(float)
    _, before = _least_squares(friction, with_nominal, weight)
    weight = equations.valid / np.maximum(np.sqrt(np.mean(before**2, axis=0)), 1e-9)
    _, before = _least_squares(friction, with_nominal, weight)
    values, after = _least_squares(both, with_nominal + gravity @ arm.gravity, weight)
    return values[:3], float(np.sum((weight * after) ** 2) / np.sum((weight * before) ** 2))


def _least_squares(rows: FloatArray, effort: Matrix, weight: Matrix) -> tuple[Vector, Matrix]:
    """Return the weighted least squares solution and the residuals (n, nv)."""
    weighted = (rows * weight[..., None]).reshape(-1, rows.shape[-1])
    values = np.asarray(np.linalg.lstsq(weighted, (weight * effort).ravel(), rcond=None)[0], float)
    return values, np.asarray(effort - rows @ values, float)


def _mounting_fault(arm: ArmModel, motions: Sequence[PreparedMotion]) -> str | None:
    """Return a sentence about a base that is mounted in another orientation, if it is."""
    gravity, gain = fitted_gravity(arm, motions)
    size = float(np.linalg.norm(gravity))
    cosine = gravity @ arm.gravity / max(size * float(np.linalg.norm(arm.gravity)), 1e-9)
    if gain > MAX_RESIDUAL or cosine > np.cos(TILTED):
        return None
    found, expected = (", ".join(f"{x:.3g}" for x in g) for g in (gravity, arm.gravity))
    axis = int(np.argmax(np.abs(gravity)))
    if abs(gravity[axis]) > np.cos(ALIGNED) * size:
        gravity = np.sign(gravity[axis]) * np.eye(3)[axis]
    upright = pin.Quaternion.FromTwoVectors(gravity, np.array([0.0, 0.0, -1.0])).matrix()
    rpy = " ".join(f"{x + 0.0:.4g}" for x in pin.rpy.matrixToRpy(upright).round(4))
    return (
        f"gravity in the frame of the base = {found} m/s² fits the efforts, and the nominal masses;"
        f" expected {expected} m/s²; if the base is not mounted upright, put a fixed"
        f' joint with rpy="{rpy}" between a new root link and the base into'
        " the URDF; if it is upright, check the sign of the efforts and the zero positions"
    )
