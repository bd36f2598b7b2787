"""Identification of an arm of position servos from positions and target positions alone.

The servos' position loops, motors, gears, friction and bodies are simulated along the recorded
targets (``ServoSimulation``). The parameters minimize the difference to the recorded positions:

½ Σ ((q - q_sim(θ)) / σ_i)² / c + ½ |θ|²

θ are relative deviations from the nominal model (``ServoVariation``), σ_i is the residual of joint
i, c the correlation time of the residuals in samples. Both are renewed with θ: they are large at
the start, where the residuals are errors of the model. Friction, losses and a payload that the
nominal model does not have stay 0 unless the motion determines them.

References
----------
L. Ljung, System Identification (1999), sections 7.2 (output error) and 10.2 (Gauss-Newton). M.
Duclusaud et al., Extended friction models for the physics simulation of servo actuators,
arXiv:2410.08650 (2024).

"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.identification.parameters.dynamic_parameters import nominal_parameters
from arm_dynamics.identification.results.fit_summary import (
    FitSummary,
    JointFit,
    ParameterFit,
    worse_joints,
)
from arm_dynamics.identification.results.identification_result import PredictedResult, today
from arm_dynamics.identification.servos.position_loops import servo_loops, with_servo_gains
from arm_dynamics.identification.servos.servo_backlash import fit_backlash, scan_backlash
from arm_dynamics.identification.servos.servo_fit import (
    DIFFERENCE,
    LAST_TURNS,
    UNDETERMINED,
    PositionPrediction,
    ServoFit,
    servo_windows,
)
from arm_dynamics.identification.servos.servo_variation import (
    DELAY,
    TOLERANCES,
    ServoVariation,
)
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import (
    check_targets,
    require_speeds,
)
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.recording.motions.training_split import training_and_validation

FITTED_TIME = 120.0
"""Longest time [s] that is fitted; the windows are distributed over all recordings."""
DELAYS = tuple(0.002 * k for k in range(75))
"""Delays [s] that are compared for a model without unknowns."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ServoIdentification(PredictedResult):
    """Identified arm of servos and the position errors on validation data.

    Infinite deviations mark what the motion does not determine. ``loop_gain`` (nv,) [V/rad] of the
    servos, ``delay`` [s] from a target to its effect. ``quantities``: all fitted quantities with
    the nominal values and deviations. ``before`` predicts the validation data with the nominal
    model, a common factor of the loop gains and the delay, ``after`` with the identified values.
    """

    loop_gain: Vector
    delay: float
    quantities: tuple[ParameterFit, ...]
    condition: float
    before: PositionPrediction
    after: PositionPrediction

    def summary(self, date: datetime.date | None = None) -> FitSummary:
        """Return the values of the report, dated today by default."""
        undetermined = [one.name for one in self.quantities if not one.is_determined]
        groups = {
            name: [x.rpartition(".")[0] for x in undetermined if x.endswith(f".{name}")]
            for name in TOLERANCES
        }
        return FitSummary(
            arm=self.arm.name,
            date=(date or today()).isoformat(),
            sources=self.sources,
            held_out=self.held_out,
            joints=self.joints,
            parameters=self.quantities,
            condition=self.condition,
            groups=tuple(f"{name}: {', '.join(names)}" for name, names in groups.items() if names),
            notes=self.notes,
            quantity="position",
        )

    def urdf_text(self, date: datetime.date | None = None) -> str:
        """Return the text of the URDF with the gains of the position loops."""
        text = PredictedResult.urdf_text(self, date)
        return with_servo_gains(text, self.identified, self.loop_gain)


def _joint_fits(
    arm: ArmModel, before: PositionPrediction, after: PositionPrediction
) -> tuple[JointFit, ...]:
    """Return rows of the report; positions in mrad (mm of a prismatic joint)."""
    return tuple(
        JointFit(
            name=joint.name,
            unit=f"m{joint.unit}",
            rms_before=1e3 * float(before.rms[i]),
            rms_after=1e3 * float(after.rms[i]),
            error_before=float(before.relative_error[i]),
            error_after=float(after.relative_error[i]),
            time=after.time,
            measured=1e3 * after.measured[:, i],
            before=1e3 * before.predicted[:, i],
            after=1e3 * after.predicted[:, i],
        )
        for i, joint in enumerate(arm.joints)
    )


@requires_arm
@with_one_blas_thread
def identify_servos(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData] = (),
    *,
    servos: Sequence[str] = (),
) -> ServoIdentification:
    """Return the arm of position servos whose simulated positions agree with recorded ones.

    Parameters
    ----------
    arm : ArmModel
        Nominal model, with the actuator ``dc_motor`` in every joint.
    motions : Sequence[MotionData]
        Motions to fit, with ``command_position``.
    held_out : Sequence[MotionData]
        Motions that check the result; by default the last 30 % of each of ``motions``, which then
        are not fitted.
    servos : Sequence[str]
        Names of the servos as for ``servo_loops`` (default: those of the URDF).

    Returns
    -------
    ServoIdentification
        The identified arm, parameters with standard deviations, and errors before and after.

    Raises
    ------
    InvalidValue
        For motions without targets, with targets that are not those of the joints, given twice,
        too short, or with one speed only.
    ConfigError, UnknownName
        As ``servo_loops``.

    """
    for motion in (*motions, *held_out):
        check_targets(motion)
    loops = servo_loops(arm, servos)
    training, validation = training_and_validation(motions, held_out)
    require_speeds(training)
    windows, tests = servo_windows(training, FITTED_TIME), servo_windows(validation)
    nominal, first = _nominal_fit(ServoVariation.of(arm, loops), windows)
    fit, note = _fit(ServoVariation.of(arm, loops), first, windows, tests)
    before, after = (
        ServoFit(variation, tests).prediction(theta)
        for variation, theta in ((nominal, first), (fit.problem.variation, fit.theta))
    )
    factor = np.exp(first[0] * TOLERANCES["loop_gain"])
    fitted, time = (sum(float(np.ptp(m.time)) for m in x) for x in (windows, training))
    notes = (
        *(note for motion in training for note in motion.notes),
        f"before: nominal values, {factor:g} times the loop gains of the factory, delay"
        f" {1e3 * DELAY * first[-1]:.0f} ms",
        f"simulated: {fitted:.0f} s of {time:.0f} s in {len(windows)} windows; condition"
        f" number of the sensitivities = {fit.condition:.3g}",
        note,
    )
    sources, held_out_sources = (tuple(x.source for x in data) for data in (training, validation))
    result = _result(arm, fit, before, after)
    return replace(result, sources=sources, held_out=held_out_sources, notes=notes)


def _result(
    arm: ArmModel, fit: _Minimum, before: PositionPrediction, after: PositionPrediction
) -> ServoIdentification:
    """Return the identified arm and its errors on the validation data, without sources."""
    variation, theta, covariance = fit.problem.variation, fit.theta, fit.problem.covariance
    deviation, values = np.sqrt(np.diag(covariance)), variation.values(theta[None])[0]
    quantities = _quantities(variation, values, deviation)
    identified, joints = variation.arm_of(theta), _joint_fits(arm, before, after)
    return ServoIdentification(
        arm=arm,
        identified=identified,
        parameters=nominal_parameters(identified),
        deviation=as_readonly(_spread(variation, theta, deviation, covariance)),
        warnings=tuple(worse_joints(joints)),
        constant_deviations={x.name: x.deviation for x in quantities if x.is_determined},
        loop_gain=as_readonly(variation.quantity("loop_gain", theta)),
        delay=float(values[-1]),
        quantities=quantities,
        condition=fit.condition,
        before=before,
        after=after,
        joints=joints,
        held_out=(),
    )


class _Minimum(NamedTuple):
    """Problem at its minimum θ (p,), and the condition number of the sensitivities."""

    problem: ServoFit
    theta: Vector
    condition: float


def _nominal_fit(
    variation: ServoVariation, windows: Sequence[MotionData]
) -> tuple[ServoVariation, Vector]:
    """Return the nominal model with a free common factor of the loop gains and delay, and its θ."""
    only_gain = np.array([name.endswith(("loop_gain", "delay")) for name in variation.names])
    nominal = variation.with_free(only_gain)
    return nominal, ServoFit(nominal, windows).first_guess()


def _fit(
    variation: ServoVariation,
    first: Vector,
    windows: Sequence[MotionData],
    tests: Sequence[MotionData],
) -> tuple[_Minimum, str]:
    """Return the fit from θ ``first`` (p,) and a sentence about the backlash.

    Typical values that the motion does not determine are 0, and backlash is part of the fit where
    it predicts ``tests`` better.
    """
    problem = ServoFit(variation, windows)
    theta = problem.minimum(problem.with_best_payload(first))
    deviation, condition = problem.deviations(theta)
    invented = variation.is_typical & (deviation > UNDETERMINED)
    if invented.any():
        problem = ServoFit(variation.with_free(~invented), windows)
        earlier = theta
        theta = problem.minimum(np.where(invented, 0.0, earlier), LAST_TURNS)
        _, condition = problem.deviations(theta, earlier)
    scan = scan_backlash(problem, theta, windows)
    with_backlash = fit_backlash(
        problem.variation, (theta, first), list(scan.backlash), windows, tests
    )
    fit = _Minimum(*(with_backlash or (problem, theta, condition)))
    joints = np.flatnonzero(fit.problem.variation.quantity("backlash", fit.theta)).tolist()
    return fit, scan.note(variation.arm.joint_names, joints)


@requires_arm
@with_one_blas_thread
def compare_servos(
    arm: ArmModel, motion: MotionData, *, servos: Sequence[str] = ()
) -> PositionPrediction:
    """Return measured positions and those that the arm's own parameters predict.

    The delay of the targets is estimated.

    Parameters
    ----------
    arm : ArmModel
        The arm, with the actuator ``dc_motor`` in every joint.
    motion : MotionData
        Recorded motion with ``command_position``.
    servos : Sequence[str]
        Names of the servos as for ``servo_loops`` (default: those of the URDF).

    Returns
    -------
    PositionPrediction
        Positions with their errors per joint.

    Raises
    ------
    InvalidValue, ConfigError, UnknownName
        As ``identify_servos``.

    """
    check_targets(motion)
    variation = ServoVariation.of(arm, servo_loops(arm, servos))
    nothing = np.zeros(len(variation.names), dtype=bool)
    nothing[-1] = True  # the delay
    problem = ServoFit(variation.with_free(nothing), servo_windows([motion]))
    return problem.prediction(problem.first_guess((1.0,), DELAYS))


def _quantities(
    variation: ServoVariation, values: Vector, deviation: Vector
) -> tuple[ParameterFit, ...]:
    """Return the fitted quantities; the deviation of a quantity that is not free is infinite.

    The prior of a current limit or backlash that the nominal model does not have is NaN.
    """
    relative = 100 * variation.sigma * deviation
    relative[-1] /= max(abs(values[-1]), 1e-12)
    left = ~variation.free | (deviation > UNDETERMINED)
    relative[left] = np.inf
    prior = np.where(variation.exists, variation.nominal, np.nan)
    rows = zip(
        variation.names, variation.units, prior.tolist(), values.tolist(),
        relative.tolist(), strict=True,
    )  # fmt: skip
    shown = variation.exists | ~left
    return tuple(ParameterFit(*row) for row, own in zip(rows, shown, strict=True) if own)


def _spread(
    variation: ServoVariation, theta: Vector, deviation: Vector, covariance: Matrix
) -> Vector:
    """Return the standard deviations (14 nv,) of the dynamic parameters; else infinite."""
    free = np.flatnonzero(variation.free & (deviation <= UNDETERMINED))
    center = nominal_parameters(variation.arm_of(theta))
    jacobian = np.array(
        [
            nominal_parameters(variation.arm_of(theta + DIFFERENCE * row)) - center
            for row in np.eye(theta.size)[free]
        ]
    )
    jacobian = jacobian.reshape(free.size, center.size) / DIFFERENCE
    found = np.sqrt(np.einsum("ai,ab,bi->i", jacobian, covariance[np.ix_(free, free)], jacobian))
    return np.where(found > 0, found, np.inf)
