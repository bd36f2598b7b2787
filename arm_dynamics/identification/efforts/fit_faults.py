"""Poor results of an identification, with their likely causes in the recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector
from arm_dynamics.identification.efforts.effort_equations import joined_equations
from arm_dynamics.identification.efforts.motion_preparation import prepare_motion
from arm_dynamics.identification.parameters.dynamic_parameters import (
    JOINT_TERMS,
    ParameterLayout,
    nominal_parameters,
)
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

POOR_PREDICTION, LEAST_ERROR = 0.3, 0.01
"""Held-out error of efforts relative to their RMS, and relative to the effort limit, up to either
of which a fit predicts the efforts of a joint."""
GROWTH, LEAST_GROWN = 1.2, 0.05
"""Held-out error over that of the description above which a fit is worse, and relative error below
which it is not reported."""
OPPOSITE, LEAST_EQUATIONS = -0.5, 20
"""Signed energy of the explained efforts over that of the measured ones below which the sign is
opposite, and number of samples of a joint from which on that is evaluated."""
TILTED, LEAST_GAIN = np.deg2rad(30), 0.5
"""Angle of two directions of gravity above which they differ, and the sum of squared residuals that
another direction has to reach at least, relative to that of the described direction."""
ALIGNED = np.deg2rad(5)
"""Angle up to which a direction of gravity counts as an axis of the base frame."""


def fit_faults(
    arm: ArmModel,
    motions: Sequence[MotionData],
    summary: FitSummary,
    cutoff: float | None = None,
) -> list[str]:
    """Return sentences about joints that the fit does not predict, with the likely causes.

    Parameters
    ----------
    arm : ArmModel
        The arm of the description.
    motions : Sequence[MotionData]
        The fitted recordings.
    summary : FitSummary
        The result.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz] (default: from the spectrum of the positions).

    Returns
    -------
    list of str
        Sentences; empty for a usable fit.

    """
    joints, found = list(summary.joints), []
    if summary.quantity == "effort":
        limits = zip(joints, np.where(arm.effort_limit > 0, arm.effort_limit, 0.0), strict=True)
        joints = [x for x, limit in limits if not x.rms_after < LEAST_ERROR * limit < np.inf]
        found = _effort_faults(arm, motions, joints, cutoff)
    worse = [
        f"{x.name} {100 * x.error_before:.3g} to {100 * x.error_after:.3g} %"
        for x in joints
        if x.rms_after > GROWTH * x.rms_before and x.error_after > LEAST_GROWN
    ]
    if worse:
        found.append(
            f"held-out error of joints {', '.join(worse)}: larger than that of the description;"
            " expected a smaller one; the fitted recordings are too short, or another motion than"
            " the held-out one: fit more of them, and keep the description until then"
        )
    return found


def _effort_faults(
    arm: ArmModel,
    motions: Sequence[MotionData],
    joints: Sequence[JointFit],
    cutoff: float | None,
) -> list[str]:
    """Return a sentence about the ``joints`` whose efforts are not predicted."""
    poor = [x for x in joints if x.error_after > POOR_PREDICTION]
    if not poor:
        return []
    has_efforts = all(motion.effort is not None for motion in motions)
    opposite = np.zeros(arm.nv, dtype=bool)
    if has_efforts:
        opposite = opposite_joints(arm, motions, cutoff)
    if 2 * opposite.sum() > arm.nv and fitted_gravity(arm, motions, cutoff)[0] @ arm.gravity < 0:
        opposite[:] = True  # lightly loaded joints too
    if opposite.any():
        names = np.array(arm.joint_names)[opposite].tolist()
        which = "all joints" if opposite.all() else f"joints {', '.join(names)}"
        return [
            f"efforts of {which}: sign = opposite to those of the description or of friction;"
            " expected positive efforts that accelerate in the positive direction; change the sign"
        ]
    mounting = _mounting(arm, motions, cutoff) if has_efforts else None
    if mounting:
        return [mounting]
    targets = [motion.command_position for motion in motions]
    suits_servos = all(joint.actuator == "dc_motor" for joint in arm.joints) and all(
        target is not None and np.isfinite(target).any(axis=0).all() for target in targets
    )
    remedy = (
        "the recordings contain target positions: fit these with --servo NAME (--servo sts3215)"
        if suits_servos
        else "check order, sign and units of the efforts, and whether a drive measures small ones"
    )
    listed = ", ".join(f"{x.name} {100 * x.error_after:.3g} %" for x in poor)
    return [
        f"held-out error of the efforts of joints {listed}: expected at most"
        f" {100 * POOR_PREDICTION:g} % of their RMS, or {100 * LEAST_ERROR:g} % of the effort"
        f" limit; {remedy}"
    ]


def opposite_joints(
    arm: ArmModel, motions: Sequence[MotionData], cutoff: float | None = None
) -> BoolArray:
    """Return the joints (nv,) whose efforts have the opposite sign.

    The effort of each joint is fitted by that of the described bodies times a factor, friction,
    rotor inertia and an offset. The sign is opposite if a negative factor and negative friction
    explain more than half of the effort's energy, less what positive ones explain.

    Parameters
    ----------
    arm : ArmModel
        The arm of the description.
    motions : Sequence[MotionData]
        Motions with efforts.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz].

    """
    prepared = [prepare_motion(arm, motion, cutoff) for motion in motions]
    equations = joined_equations([motion.equations for motion in prepared])
    nv, described = arm.nv, nominal_parameters(arm)
    rows = equations.rows(np.zeros(nv, dtype=int))
    layout = ParameterLayout(nv)
    found = np.zeros(nv, dtype=bool)
    for i in range(nv):
        used = equations.valid[:, i]
        if used.sum() < LEAST_EQUATIONS:
            continue
        effort = equations.effort[used, i]
        terms = rows[used, i][:, layout.joint_terms(i)]
        bodies = rows[used, i][:, layout.inertial] @ described[layout.inertial]
        columns = np.column_stack((bodies, terms))
        factors = np.linalg.lstsq(columns, effort, rcond=None)[0]
        v, slides = (terms[:, JOINT_TERMS.index(name)] for name in ("viscous", "coulomb"))
        own = dict(zip(JOINT_TERMS, factors[1:], strict=True))
        friction = own["viscous"] * v + own["coulomb"] * slides
        score = factors[0] * abs(factors[0]) * np.sum(bodies**2)
        score += np.sign(friction @ v) * np.sum(friction**2)
        found[i] = score < OPPOSITE * np.sum((effort - own["offset"]) ** 2)
    return found


def fitted_gravity(
    arm: ArmModel, motions: Sequence[MotionData], cutoff: float | None = None
) -> tuple[Vector, float]:
    """Return the gravity in the base frame that explains recorded efforts best.

    τ = τ(q, v, a) + Σ g_k ∂τ/∂g_k + friction, with the bodies of the description without gravity in
    the first term. Rotor inertia, friction and offset of each joint are fitted too.

    Parameters
    ----------
    arm : ArmModel
        The arm of the description.
    motions : Sequence[MotionData]
        Motions with efforts.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz].

    Returns
    -------
    tuple of Vector and float
        Gravity (3,) [m/s²], and the weighted sum of squared residuals over that with the gravity of
        the description.

    """
    bodies, described = ParameterLayout(arm.nv).inertial, nominal_parameters(arm)
    parts = []
    for motion in motions:
        free = prepare_motion(arm.with_gravity(np.zeros(3)), motion, cutoff)
        rows = free.equations.rows(np.zeros(arm.nv, dtype=int))
        inertial = rows[..., bodies] @ described[bodies]
        gravity = []
        for axis in np.eye(3):
            tilted = prepare_motion(arm.with_gravity(axis), motion, free.cutoff, free.delay)
            gravity.append(tilted.equations.regressor[..., bodies] @ described[bodies] - inertial)
        friction = rows[..., bodies.stop :]
        effort = free.equations.effort - inertial
        parts.append((effort, np.stack(gravity, axis=-1), friction, free.equations.valid))
    effort, slopes, friction, valid = (np.concatenate(part) for part in zip(*parts, strict=True))
    both = np.concatenate([slopes, friction], axis=-1)
    with_described, weight = effort - slopes @ arm.gravity, valid.astype(float)
    _, before = _least_squares(friction, with_described, weight)
    weight = valid / np.maximum(np.sqrt(np.mean(before**2, axis=0)), 1e-9)
    _, before = _least_squares(friction, with_described, weight)
    values, after = _least_squares(both, effort, weight)
    return values[:3], float(np.sum((weight * after) ** 2) / np.sum((weight * before) ** 2))


def _least_squares(rows: FloatArray, effort: Matrix, weight: Matrix) -> tuple[Vector, Matrix]:
    """Return the weighted least squares solution and the residuals (n, nv)."""
    weighted = (rows * weight[..., None]).reshape(-1, rows.shape[-1])
    values = np.asarray(np.linalg.lstsq(weighted, (weight * effort).ravel(), rcond=None)[0], float)
    return values, np.asarray(effort - rows @ values, float)


def _mounting(arm: ArmModel, motions: Sequence[MotionData], cutoff: float | None) -> str | None:
    """Return a sentence about a base that is mounted in another orientation, if it is."""
    gravity, gain = fitted_gravity(arm, motions, cutoff)
    size = float(np.linalg.norm(gravity))
    cosine = gravity @ arm.gravity / max(size * float(np.linalg.norm(arm.gravity)), 1e-9)
    if gain > LEAST_GAIN or cosine > np.cos(TILTED):
        return None
    found, expected = (", ".join(f"{x:.3g}" for x in g) for g in (gravity, arm.gravity))
    axis = int(np.argmax(np.abs(gravity)))
    if abs(gravity[axis]) > np.cos(ALIGNED) * size:
        gravity = np.sign(gravity[axis]) * np.eye(3)[axis]
    upright = pin.Quaternion.FromTwoVectors(gravity, np.array([0.0, 0.0, -1.0])).matrix()
    rpy = " ".join(f"{x + 0.0:.4g}" for x in pin.rpy.matrixToRpy(upright).round(4))
    return (
        f"gravity in the frame of the base = {found} m/s² fits the efforts, and the masses of the"
        f" description; expected {expected} m/s²; if the base is not mounted upright, put a fixed"
        f' joint with rpy="{rpy}" between a new root link and the base into'
        " the URDF; if it is upright, check the sign of the efforts and the zero positions"
    )
