"""Identification of an arm from recorded efforts, and comparison of a model with a recording.

recording → checked motion → prepared motion → equations → fit → diagnosis → result
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Matrix, as_readonly
from arm_dynamics.identification.efforts.coupled_motors import coupling_factors
from arm_dynamics.identification.efforts.drive_gain_fit import (
    DriveGains,
    prepare_training,
    with_nominal_efforts,
)
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.effort_prediction import (
    Prediction,
    joint_fits,
    predicted_efforts,
)
from arm_dynamics.identification.efforts.fit_faults import fit_faults
from arm_dynamics.identification.efforts.friction_terms import (
    JointFriction,
    friction_notes,
    friction_parameters,
    with_friction_terms,
)
from arm_dynamics.identification.efforts.motion_preparation import (
    PreparedMotion,
    prepare_motion,
    prepare_validation,
    recorded_efforts,
)
from arm_dynamics.identification.efforts.motor_constants import MotorConstants, recorded_motors
from arm_dynamics.identification.efforts.output_error_refinement import refine
from arm_dynamics.identification.efforts.torque_fit import TorqueFit, fit_torque, validation_error
from arm_dynamics.identification.parameters.dynamic_parameters import (
    INERTIAL,
    JOINT_TERMS,
    ParameterLayout,
    nominal_parameters,
    parameter_names,
    with_parameters,
)
from arm_dynamics.identification.results.fit_summary import FitSummary, ParameterFit
from arm_dynamics.identification.results.identification_result import PredictedResult, today
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import effort_scale_warning, require_speeds
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.recording.motions.training_split import training_and_validation

URDF_LOSS = 1.1
"""Error of the URDF over that of the fit above which the reason is stated."""
INERTIAL_UNITS = ("kg", *["kg·m"] * 3, *["kg·m²"] * 6)
TERM_UNITS = ("kg·m²", "N·m·s/rad", "N·m", "N·m")
UNITS = dict(zip((*INERTIAL, *JOINT_TERMS), (*INERTIAL_UNITS, *TERM_UNITS), strict=True))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Identification(PredictedResult):
    """Identified arm, its parameters, and the errors on validation data.

    ``before``, ``after`` and ``urdf`` predict the validation data with the nominal parameters, the
    identified ones and those that a URDF contains. ``parameters`` are those of the arm in
    simulation, ``fit.simulated``.
    ``motors``: constants of the motors, if voltages and currents were recorded. ``gains``: those of
    the drives, if currents were recorded without efforts.
    """

    fit: TorqueFit
    before: Prediction
    after: Prediction
    urdf: Prediction
    motors: MotorConstants | None = None
    gains: DriveGains | None = None

    def summary(self, date: datetime.date | None = None) -> FitSummary:
        """Return the values of the report, dated today by default."""
        arm, fit = self.arm, self.fit
        unidentified = {
            joint: [n.rpartition(".")[2] for n in fit.undetermined if n.startswith(f"{joint}.")]
            for joint in arm.joint_names
        }
        return FitSummary(
            arm=arm.name,
            date=(date or today()).isoformat(),
            sources=self.sources,
            held_out=self.held_out,
            joints=self.joints,
            parameters=(
                *_parameter_rows(arm, fit),
                *friction_parameters(arm, fit.friction),
                *fit.friction.coupled.parameters(arm.joint_names),
                *(self.motors.parameters() if self.motors else ()),
                *(self.gains.parameters() if self.gains else ()),
            ),
            condition=fit.condition,
            groups=tuple(f"{joint}: {', '.join(x)}" for joint, x in unidentified.items() if x),
            notes=self.notes,
            combinations=tuple(
                fit.base.describe(i)
                for i in range(fit.base.size)
                if np.count_nonzero(fit.base.combinations[i]) > 1
            ),
        )

    def _remarks(self) -> tuple[str, ...]:
        return (*self.fit.friction.coupled.notes(self.arm.joint_names), *self.warnings)


@requires_masses
def identify(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData] = (),
    *,
    cutoff: float | None = None,
    loaded: Sequence[MotionData] = (),
    payload_mass: float | None = None,
    coupled: Sequence[Mapping[str, float]] = (),
    simulate: bool = True,
    stage: Callable[[str], None] | None = None,
) -> Identification:
    """Return the arm whose efforts agree with recorded motions.

    The efforts are linear in the parameters, tau = W π; ``fit_torque`` states the criterion. Then
    ``refine`` simulates the motions. Motions with motor currents instead of efforts determine drive
    gains too (``drive_gains``).

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    motions : Sequence[MotionData]
        Motions to fit.
    held_out : Sequence[MotionData]
        Validation data; by default the last 30 % of each of ``motions``, which then are not fitted.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz] (default: from the spectrum of the positions).
    loaded : Sequence[MotionData]
        Motions with currents and a payload, which determine the scale of the drive gains.
    payload_mass : float, optional
        Mass of this payload [kg].
    coupled : Sequence[Mapping[str, float]]
        Coupled motors: factors of the joint velocities by joint name (``coupled_motors``).
    simulate : bool
        Refine the parameters by simulation of the motions; the first one of an arm compiles.
    stage : callable, optional
        Called with a text at the begin of each stage.

    Returns
    -------
    Identification
        The identified arm, parameters with standard deviations, errors before and after, warnings.

    Raises
    ------
    InvalidValue
        For motions without efforts, given twice, too short, with one speed only, or too similar to
        determine the parameters; for coupled motors of unknown joints or without efforts.

    """
    begin = stage or (lambda _: None)
    begin("preparing the motions")
    data = _checked_data(arm, motions, held_out, loaded, coupling_factors(arm, coupled))
    prepared = _prepare(arm, data, payload_mass, cutoff)
    begin("fitting the efforts")
    equations = joined_equations([motion.equations for motion in prepared.training])
    unseen = joined_equations([motion.equations for motion in prepared.validation])
    fit, refinement = fit_torque(arm, equations, data.factors, unseen), ""
    if simulate:
        begin("simulating the motions")
        fit, refinement = _refined(arm, prepared.training, fit, unseen)
    begin("predicting the held-out motions")
    notes = (*_fit_notes(arm, fit, equations), *filter(None, (refinement,)))
    return _result(arm, data, prepared, fit, notes)


@requires_masses
def compare(arm: ArmModel, motion: MotionData, *, cutoff: float | None = None) -> Prediction:
    """Return measured efforts and those that the arm's own parameters predict.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    motion : MotionData
        Recorded motion; without efforts they follow from currents and the arm's torque constants.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz] (default: from the spectrum of the positions).

    Returns
    -------
    Prediction
        Efforts after the filter, with their errors per joint.

    Raises
    ------
    InvalidValue
        For a motion without efforts, without motion, or too short.

    """
    prepared = prepare_motion(arm, with_nominal_efforts(arm, motion), cutoff)
    return _model_prediction(arm, [prepared], JointFriction.of(arm))


class _Data(NamedTuple):
    """Checked motions: training and validation data, and motions with a payload.

    ``factors`` (nc, nv) of coupled motors; None without any.
    """

    training: Sequence[MotionData]
    validation: Sequence[MotionData]
    loaded: Sequence[MotionData]
    factors: Matrix | None


class _Prepared(NamedTuple):
    """Prepared training and validation data, and the drive gains of currents."""

    training: Sequence[PreparedMotion]
    validation: Sequence[PreparedMotion]
    gains: DriveGains | None


def _checked_data(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData],
    loaded: Sequence[MotionData],
    factors: Matrix,
) -> _Data:
    """Return the motions; raises InvalidValue for those that determine nothing."""
    for motion in (*motions, *held_out):
        if motion.current is None:
            recorded_efforts(arm, motion)
    training, validation = training_and_validation(motions, held_out, loaded)
    require_speeds(training)
    return _Data(training, validation, loaded, factors if len(factors) else None)


def _prepare(
    arm: ArmModel, data: _Data, payload_mass: float | None, cutoff: float | None
) -> _Prepared:
    """Return the motions after the filter; efforts of currents follow from drive gains."""
    training, gains = prepare_training(
        arm, data.training, data.loaded,
        payload_mass=payload_mass, cutoff=cutoff, coupled=data.factors,
    )  # fmt: skip
    checks = [gains.efforts(x) for x in data.validation] if gains else data.validation
    return _Prepared(training, prepare_validation(arm, checks, training, data.factors), gains)


def _result(
    arm: ArmModel, data: _Data, prepared: _Prepared, fit: TorqueFit, notes: Sequence[str]
) -> Identification:
    """Return the identified arm, its errors on the validation data, and the diagnosis."""
    gains, tests = prepared.gains, prepared.validation
    checks = [motion.data for motion in tests]
    motors, motor_notes = recorded_motors(arm, data.training, checks, gains)
    identified = with_friction_terms(with_parameters(arm, fit.simulated), fit.friction)
    if gains:
        fit, identified = gains.with_deviations(fit), gains.applied(identified)
    if motors:
        identified = motors.applied(identified)
    before, urdf = (_model_prediction(x, tests, fit.friction) for x in (arm, identified))
    after = predicted_efforts(tests, fit.parameters, fit.friction, fit.friction.presliding)
    joints = joint_fits(arm, before, after, urdf)
    scale = effort_scale_warning(arm.joint_names, after.measured, before.predicted)
    more = (*(gains.notes() if gains else ()), *urdf_notes(after, urdf), *filter(None, (scale,)))
    filters = [note for motion in prepared.training for note in motion.notes]
    faults = fit_faults(arm, prepared.training, joints, has_efforts=gains is None)
    return Identification(
        arm=arm,
        identified=identified,
        parameters=fit.simulated,
        deviation=fit.deviation,
        sources=tuple(motion.source for motion in data.training),
        notes=(*filters, *notes, *motor_notes, *more),
        warnings=tuple(faults),
        constant_deviations=_constant_deviations(arm, gains, motors),
        fit=fit,
        before=before,
        after=after,
        urdf=urdf,
        joints=joints,
        held_out=tuple(motion.source for motion in data.validation),
        motors=motors,
        gains=gains,
    )


def _refined(
    arm: ArmModel, motions: Sequence[PreparedMotion], fit: TorqueFit, validation: EffortEquations
) -> tuple[TorqueFit, str]:
    """Return ``refine``, unless a simpler fit predicts the validation data better, and a note."""
    refined, note = refine(arm, motions, fit)
    if validation_error(validation, refined.parameters, refined.friction) <= fit.simpler_error:
        return refined, note
    return fit, f"{note}; not used: a simpler fit predicts the held-out motion better"


def _model_prediction(
    arm: ArmModel, motions: Sequence[PreparedMotion], counted: JointFriction
) -> Prediction:
    """Return the efforts of an arm's own parameters; ``counted`` selects the samples."""
    friction = JointFriction.of(arm)
    return predicted_efforts(motions, nominal_parameters(arm), friction, counted.presliding)


def _parameter_rows(arm: ArmModel, fit: TorqueFit) -> tuple[ParameterFit, ...]:
    """Return rows of the report: the dynamic parameters."""
    names = parameter_names(arm)
    relative = 100 * fit.deviation / np.maximum(np.abs(fit.parameters), 1e-12)
    relative[[name in fit.undetermined for name in names]] = np.nan
    columns = (as_readonly(x).tolist() for x in (nominal_parameters(arm), fit.parameters, relative))
    return tuple(
        ParameterFit(name, UNITS[name.rpartition(".")[2]], *row)
        for name, *row in zip(names, *columns, strict=True)
    )


def _constant_deviations(
    arm: ArmModel, gains: DriveGains | None, motors: MotorConstants | None
) -> dict[str, float]:
    """Return the standard deviations of the fitted motor constants [%], for example of "J1.kt"."""
    deviations = {}
    if gains is not None:
        for i, (joint, motor) in enumerate(zip(arm.joint_names, arm.actuators, strict=True)):
            if "kt" in motor.constants and joint not in gains.undetermined:
                deviations[f"{joint}.kt"] = 100 * float(gains.deviation[i])
    for row in motors.parameters() if motors is not None else ():
        deviations[row.name] = row.deviation
    return deviations


def _fit_notes(arm: ArmModel, fit: TorqueFit, equations: EffortEquations) -> list[str]:
    """Return sentences about the friction, and about parameters that are not fitted."""
    notes = friction_notes(arm, fit.presliding, fit.friction)
    notes += fit.friction.coupled.notes(arm.joint_names)
    resting = np.array(arm.joint_names)[~equations.valid.any(axis=0)].tolist()
    if resting:
        notes.append(
            f"joints {', '.join(resting)}: at rest or saturated in all samples; not identified"
        )
    if fit.has_nominal_bodies:
        notes.append("bodies = those of the nominal model: fitted ones do not predict better")
    without = np.array(arm.joint_names)[~fit.free[ParameterLayout(arm.nv).offset]].tolist()
    if without:
        notes.append(f"effort offsets of joints {', '.join(without)} = 0: none predicts better")
    weight = np.inf if fit.has_nominal_bodies else fit.prior_weight
    notes.append(f"condition number = {fit.condition:.3g}; weight of the prior = {weight:g}")
    return notes


def urdf_notes(after: Prediction, urdf: Prediction) -> list[str]:
    """Return a sentence if a URDF predicts the efforts less exactly than the fit."""
    if not (urdf.rms > URDF_LOSS * after.rms).any():
        return []
    return [
        "error of the URDF: a URDF contains no effort offsets, and the friction that its actuators"
        " represent; compare prints the errors without an offset too"
    ]
