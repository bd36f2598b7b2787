"""Identification of an arm from recorded motions, and comparison of a model with a recording."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import BoolArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.drive_gain_fit import (
    DriveGains,
    recorded_gains,
    with_described_efforts,
)
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.friction_terms import (
    JointFriction,
    friction_notes,
    friction_parameters,
    with_friction_terms,
)
from arm_dynamics.identification.efforts.motion_preparation import PreparedMotion, prepare_motion
from arm_dynamics.identification.efforts.motor_constants import MotorConstants, recorded_motors
from arm_dynamics.identification.efforts.output_error_refinement import refine
from arm_dynamics.identification.efforts.torque_fit import TorqueFit, fit_torque, validation_error
from arm_dynamics.identification.parameters.coupled_motors import coupling_factors
from arm_dynamics.identification.parameters.dynamic_parameters import (
    INERTIAL,
    JOINT_TERMS,
    ParameterLayout,
    nominal_parameters,
    parameter_names,
    with_parameters,
)
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit, ParameterFit
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import require_different, require_speeds
from arm_dynamics.recording.motions.motion_data import MotionData

HELD_OUT = 0.3
"""Part at the end of a single recording that checks the result."""
FITTED_PART = f"first {100 * (1 - HELD_OUT):.0f} %"
HELD_OUT_PART = f"last {100 * HELD_OUT:.0f} %"
"""Names of the parts in messages and reports."""
URDF_LOSS = 1.1
"""Error of the URDF over that of the fit above which the reason is stated."""
INERTIAL_UNITS = ("kg", *["kg·m"] * 3, *["kg·m²"] * 6)
TERM_UNITS = ("kg·m²", "N·m·s/rad", "N·m", "N·m")
UNITS = dict(zip((*INERTIAL, *JOINT_TERMS), (*INERTIAL_UNITS, *TERM_UNITS), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Efforts of a model along a recorded motion.

    ``time`` (n,) [s]; ``measured`` and ``predicted`` (n, nv) [N·m or N]; ``counted`` (n, nv): the
    samples without saturation and without stops of the joint.
    """

    time: Vector
    measured: Matrix
    predicted: Matrix
    counted: BoolArray

    @property
    def rms(self) -> Vector:
        """RMS of measured minus predicted efforts (nv,) [N·m or N]; NaN without samples."""
        return self._rms(self.measured - self.predicted)

    @property
    def relative_error(self) -> Vector:
        """``rms`` over the RMS of the measured efforts (nv,); NaN if these are 0."""
        return self._relative(self.rms)

    @property
    def relative_error_without_offset(self) -> Vector:
        """``relative_error`` without ``offset`` (nv,)."""
        return self._relative(np.sqrt(np.maximum(self.rms**2 - self.offset**2, 0.0)))

    @property
    def measured_rms(self) -> Vector:
        """RMS of the measured efforts (nv,) [N·m or N]; NaN without samples."""
        return self._rms(self.measured)

    @property
    def offset(self) -> Vector:
        """Mean of measured minus predicted efforts (nv,) [N·m or N]; NaN without samples."""
        count = self.counted.sum(axis=0)
        total = np.sum(self.counted * (self.measured - self.predicted), axis=0)
        found: Vector = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return found

    def _relative(self, errors: Vector) -> Vector:
        size = self.measured_rms
        return errors / np.where(size > 0, size, np.nan)

    def _rms(self, values: Matrix) -> Vector:
        count = self.counted.sum(axis=0)
        squares = np.sum(self.counted * values**2, axis=0) / np.maximum(count, 1)
        found: Vector = np.sqrt(np.where(count > 0, squares, np.nan))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """Identified arm, its parameters, and the errors on motion that was not fitted.

    ``before`` and ``after`` predict the held-out motion with the parameters of the description and
    with the identified ones, ``urdf`` with those that a URDF contains. ``notes`` are sentences for
    the user. ``motors``: constants of the motors, if voltages and currents were recorded.
    ``gains``: those of the drives, if currents were recorded without efforts.
    """

    arm: ArmModel
    identified: ArmModel
    fit: TorqueFit
    before: Prediction
    after: Prediction
    urdf: Prediction
    sources: tuple[str, ...]
    held_out: tuple[str, ...]
    notes: tuple[str, ...]
    motors: MotorConstants | None = None
    gains: DriveGains | None = None

    @property
    def constant_deviations(self) -> dict[str, float]:
        """Standard deviations of the fitted motor constants [%], for example of "J1.kt"."""
        found = {}
        if self.gains is not None:
            for i, (joint, motor) in enumerate(
                zip(self.arm.joint_names, self.arm.actuators, strict=True)
            ):
                if "kt" in motor.constants and joint not in self.gains.undetermined:
                    found[f"{joint}.kt"] = 100 * float(self.gains.deviation[i])
        for one in self.motors.parameters() if self.motors is not None else ():
            found[one.name] = one.deviation
        return found

    def summary(self, date: datetime.date) -> FitSummary:
        """Return the values of the report."""
        arm, fit = self.arm, self.fit
        joints = tuple(
            JointFit(
                joint.name,
                "N" if joint.kind == "prismatic" else "N·m",
                float(self.before.rms[i]),
                float(self.after.rms[i]),
                float(self.before.relative_error[i]),
                float(self.after.relative_error[i]),
                self.after.time,
                self.after.measured[:, i],
                self.before.predicted[:, i],
                self.after.predicted[:, i],
                float(self.urdf.relative_error[i]),
            )
            for i, joint in enumerate(arm.joints)
        )
        relative = 100 * fit.deviation / np.maximum(np.abs(fit.parameters), 1e-12)
        relative[[name in fit.undetermined for name in parameter_names(arm)]] = np.nan
        values = zip(
            parameter_names(arm),
            nominal_parameters(arm).tolist(),
            fit.parameters.tolist(),
            relative.tolist(),
            strict=True,
        )
        parameters = tuple(
            ParameterFit(name, UNITS[name.rpartition(".")[2]], prior, value, deviation)
            for name, prior, value, deviation in values
        )
        parameters += friction_parameters(arm, fit.friction)
        parameters += fit.friction.coupled.parameters(arm.joint_names)
        parameters += self.motors.parameters() if self.motors else ()
        parameters += self.gains.parameters() if self.gains else ()
        left = {
            joint: [n.rpartition(".")[2] for n in fit.undetermined if n.startswith(f"{joint}.")]
            for joint in arm.joint_names
        }
        return FitSummary(
            arm.name,
            date.isoformat(),
            self.sources,
            self.held_out,
            joints,
            parameters,
            fit.condition,
            tuple(f"{joint}: {', '.join(names)}" for joint, names in left.items() if names),
            self.notes,
            tuple(
                fit.base.describe(i)
                for i in range(fit.base.size)
                if np.count_nonzero(fit.base.combinations[i]) > 1
            ),
        )


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
        The arm of the description.
    motions : Sequence[MotionData]
        Motions to fit.
    held_out : Sequence[MotionData]
        Motions that check the result; by default the last 30 % of each of ``motions``, which then
        are not fitted.
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
        The identified arm, parameters with standard deviations, and errors before and after.

    Raises
    ------
    InvalidValue
        For motions without efforts, given twice, too short, with one speed only, or too similar to
        determine the parameters; for coupled motors of unknown joints or without efforts.

    """
    begin = stage or (lambda _: None)
    factors = coupling_factors(arm, coupled) if coupled else None
    # 1. Motions to fit, and motions that check the result.
    recorded, checks = fitted_and_held_out(motions, held_out, loaded)
    require_speeds(recorded)
    # 2. Efforts of motions with currents only.
    begin("fitting the drive gains")
    motions, gains = recorded, recorded_gains(arm, recorded, loaded, payload_mass, cutoff)
    if gains and coupled:
        raise InvalidValue(
            "coupled motors: recordings = currents without efforts; expected efforts; multiply the"
            " currents by gear ratio and torque constant"
        )
    if gains:
        motions, checks = ([gains.efforts(x) for x in part] for part in (recorded, checks))
    # 3. Equations of the efforts.
    begin("preparing the motions")
    prepared = [prepare_motion(arm, motion, cutoff, None, factors) for motion in motions]
    equations = joined_equations([motion.equations for motion in prepared])
    # 4. Efforts of the held-out motion, filtered and delayed as the fitted ones.
    frequency = max(motion.cutoff for motion in prepared)
    late = float(np.median([motion.delay for motion in prepared]))
    tests = [prepare_motion(arm, motion, frequency, late, factors) for motion in checks]
    validation = joined_equations([motion.equations for motion in tests])
    # 5. Parameters from efforts, refined by simulation unless a simpler fit predicts better.
    begin("fitting the efforts")
    fit, refinement = fit_torque(arm, equations, factors, validation), ""
    if simulate:
        begin("simulating the motions")
        refined, refinement = refine(arm, motions, prepared, fit)
        error = validation_error(validation, refined.parameters, refined.friction)
        if error <= fit.simpler_error:
            fit = refined
        else:
            refinement += "; not used: a simpler fit predicts the held-out motion better"
    # 6. Constants of drives and motors, and the identified arm.
    begin("predicting the held-out motions")
    motors, motor_notes = recorded_motors(arm, recorded, checks, gains)
    identified = with_friction_terms(with_parameters(arm, fit.simulated), fit.friction)
    if gains:
        fit, identified = gains.with_deviations(fit), gains.applied(identified)
    if motors:
        identified = motors.applied(identified)
    models, written = fit.friction.presliding, JointFriction.of(identified)
    # 7. Report.
    after = predicted_efforts(tests, fit.parameters, fit.friction, models)
    in_urdf = predicted_efforts(tests, nominal_parameters(identified), written, models)
    notes = [
        *(note for motion in prepared for note in motion.notes),
        *friction_notes(arm, fit.presliding, fit.friction),
        *fit.friction.coupled.notes(arm.joint_names),
        *motor_notes,
        *(gains.notes() if gains else ()),
        *resting_notes(arm, equations),
        *urdf_notes(after, in_urdf),
        *simpler_notes(arm, fit),
        f"condition number = {fit.condition:.3g}; weight of the description ="
        f" {np.inf if fit.has_nominal_bodies else fit.prior_weight:g}",
        *filter(None, [refinement]),
    ]
    return Identification(
        arm,
        identified,
        fit,
        predicted_efforts(tests, nominal_parameters(arm), JointFriction.of(arm), models),
        after,
        in_urdf,
        tuple(motion.source for motion in motions),
        tuple(motion.source for motion in checks),
        tuple(notes),
        motors,
        gains,
    )


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
    prepared = prepare_motion(arm, with_described_efforts(arm, motion), cutoff)
    friction = JointFriction.of(arm)
    return predicted_efforts([prepared], nominal_parameters(arm), friction, friction.presliding)


def fitted_and_held_out(
    motions: Sequence[MotionData], held_out: Sequence[MotionData], others: Sequence[MotionData]
) -> tuple[list[MotionData], list[MotionData]]:
    """Return the motions to fit and those that check: by default the end of each motion.

    No motion may occur twice, nor among ``others``.
    """
    require_different([*motions, *held_out, *others])
    if not motions:
        raise InvalidValue("motions = 0; expected at least one recording")
    if held_out:
        return list(motions), list(held_out)
    fitted, checks = [], []
    for motion in motions:
        k = int((1 - HELD_OUT) * len(motion.time))
        is_whole = motion.effort is None and motion.current is None  # rejected later
        fitted.append(motion if is_whole else motion.part(slice(None, k), FITTED_PART))
        checks.append(motion if is_whole else motion.part(slice(k, None), HELD_OUT_PART))
    return fitted, checks


def resting_notes(arm: ArmModel, equations: EffortEquations) -> list[str]:
    """Return a sentence about joints that have no equations, if there are any."""
    resting = np.array(arm.joint_names)[~equations.valid.any(axis=0)].tolist()
    what = f"joints {', '.join(resting)}: at rest or saturated in all samples; not identified"
    return [what] if resting else []


def simpler_notes(arm: ArmModel, fit: TorqueFit) -> list[str]:
    """Return sentences about bodies and effort offsets that are not fitted."""
    found = []
    if fit.has_nominal_bodies:
        found.append("bodies = those of the description: fitted ones do not predict better")
    without = np.array(arm.joint_names)[~fit.free[ParameterLayout(arm.nv).offset]].tolist()
    if without:
        found.append(f"effort offsets of joints {', '.join(without)} = 0: none predicts better")
    return found


def urdf_notes(after: Prediction, urdf: Prediction) -> list[str]:
    """Return a sentence if a URDF predicts the efforts less exactly than the fit."""
    if not (urdf.rms > URDF_LOSS * after.rms).any():
        return []
    return [
        "error of the URDF: a URDF contains no effort offsets, and the friction that its actuators"
        " represent; compare prints the errors without an offset too"
    ]


def predicted_efforts(
    motions: Sequence[PreparedMotion],
    parameters: Vector,
    friction: JointFriction,
    counted: IntArray,
) -> Prediction:
    """Return the efforts of ``parameters`` (14 nv,) and ``friction``.

    ``counted`` (nv,) are the presliding models that decide which samples count.
    """
    times, first = [], 0.0
    for motion in motions:  # one after the other
        times.append(motion.time - motion.time[0] + first)
        first = float(times[-1][-1]) + float(motion.time[1] - motion.time[0])
    equations = joined_equations([motion.equations for motion in motions])
    return Prediction(
        as_readonly(np.concatenate(times)),
        as_readonly(equations.effort),
        as_readonly(equations.predicted(parameters, friction)),
        equations.counted(counted),
    )
