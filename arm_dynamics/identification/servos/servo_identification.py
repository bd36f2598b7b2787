"""Identification of an arm of position servos from positions and target positions alone.

The servos' position loops, motors, gears, friction and bodies are simulated along the recorded
targets (``ServoSimulation``). The parameters minimize the difference to the recorded positions:

½ Σ ((q - q_sim(θ)) / σ_i)² / c + ½ |θ|²

θ are relative deviations from the description (``ServoVariation``), σ_i is the residual of joint i,
c the correlation time of the residuals in samples. Both are renewed with θ: they are large at the
start, where the residuals are errors of the model. Friction, losses and a payload that the
description does not have stay 0 unless the motion determines them.

References
----------
L. Ljung, System Identification (1999), sections 7.2 (output error) and 10.2 (Gauss-Newton). M.
Duclusaud et al., Extended friction models for the physics simulation of servo actuators,
arXiv:2410.08650 (2024).

"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.arm_identification import (
    FITTED_PART,
    HELD_OUT,
    HELD_OUT_PART,
)
from arm_dynamics.identification.parameters.dynamic_parameters import nominal_parameters
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit, ParameterFit
from arm_dynamics.identification.servos.position_loops import servo_loops
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
    require_different,
    require_speeds,
)
from arm_dynamics.recording.motions.motion_data import MotionData

FITTED_TIME = 120.0
"""Longest time [s] that is fitted; the windows are distributed over all recordings."""
DELAYS = tuple(0.002 * k for k in range(75))
"""Delays [s] that are compared for a model without unknowns."""


@dataclass(frozen=True, slots=True, eq=False)
class ServoIdentification:
    """Identified arm of servos and the position errors on motion that was not fitted.

    ``identified`` is the arm with all values, ``parameters`` (14 nv,) and ``deviation`` (14 nv,)
    are those of ``parameter_names``; infinite deviations mark what the motion does not determine.
    ``loop_gain`` (nv,) [V/rad] of the servos, ``delay`` [s] from a target to its effect.
    ``quantities``: all fitted quantities with the values of the description and deviations.
    ``before`` predicts the held-out motion with the description, a common factor of the loop gains
    and the delay, ``after`` with the identified values.
    """

    arm: ArmModel
    identified: ArmModel
    parameters: Vector
    deviation: Vector
    loop_gain: Vector
    delay: float
    quantities: tuple[ParameterFit, ...]
    condition: float
    before: PositionPrediction
    after: PositionPrediction
    sources: tuple[str, ...]
    held_out: tuple[str, ...]
    notes: tuple[str, ...]

    def summary(self, date: datetime.date) -> FitSummary:
        """Return the values of the report; positions in mrad (mm of a prismatic joint)."""
        joints = tuple(
            JointFit(
                joint.name,
                "mm" if joint.kind == "prismatic" else "mrad",
                1e3 * float(self.before.rms[i]),
                1e3 * float(self.after.rms[i]),
                float(self.before.relative_error[i]),
                float(self.after.relative_error[i]),
                self.after.time,
                1e3 * self.after.measured[:, i],
                1e3 * self.before.predicted[:, i],
                1e3 * self.after.predicted[:, i],
            )
            for i, joint in enumerate(self.arm.joints)
        )
        left = [one.name for one in self.quantities if not one.is_determined]
        groups = {
            name: [own.rpartition(".")[0] for own in left if own.endswith(f".{name}")]
            for name in TOLERANCES
        }
        return FitSummary(
            self.arm.name,
            date.isoformat(),
            self.sources,
            self.held_out,
            joints,
            self.quantities,
            self.condition,
            tuple(f"{name}: {', '.join(names)}" for name, names in groups.items() if names),
            self.notes,
            quantity="position",
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
        The arm of the description, with the actuator ``dc_motor`` in every joint.
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
    if not motions:
        raise InvalidValue("motions = 0; expected at least one recording")
    require_different([*motions, *held_out])
    checks = list(held_out)
    for motion in (*motions, *checks):
        check_targets(motion)
    variation = ServoVariation.of(arm, servo_loops(arm, servos))
    if not checks:
        ends = [round((1 - HELD_OUT) * len(motion.time)) for motion in motions]
        checks = [m.part(slice(k, None), HELD_OUT_PART) for m, k in zip(motions, ends, strict=True)]
        motions = [m.part(slice(k), FITTED_PART) for m, k in zip(motions, ends, strict=True)]
    require_speeds(motions)
    windows, time = servo_windows(motions, FITTED_TIME), sum(float(np.ptp(m.time)) for m in motions)
    only_gain = np.array([name.endswith(("loop_gain", "delay")) for name in variation.names])
    described = variation.with_free(only_gain)
    first = ServoFit(described, windows).first_guess()
    problem = ServoFit(variation, windows)
    theta = problem.minimum(problem.with_best_payload(first))
    deviation, condition = problem.deviations(theta)
    invented = variation.is_typical & (deviation > UNDETERMINED)
    if invented.any():
        problem = ServoFit(variation.with_free(~invented), windows)
        earlier = theta
        theta = problem.minimum(np.where(invented, 0.0, earlier), LAST_TURNS)
        _, condition = problem.deviations(theta, earlier)
    tests = servo_windows(checks)
    scan = scan_backlash(problem, theta, windows)
    starts, joints = (theta, first), list(scan.backlash)
    with_backlash = fit_backlash(problem.variation, starts, joints, windows, tests)
    if with_backlash is not None:
        problem, theta, condition = with_backlash
    deviation = np.sqrt(np.diag(problem.covariance))
    found = problem.variation
    identified = found.arm_of(theta)
    factor = float(np.exp(first[0] * TOLERANCES["loop_gain"]))
    fitted = sum(float(np.ptp(w.time)) for w in windows)
    notes = [note for motion in motions for note in motion.notes]
    notes += [
        f"before: values of the description, {factor:g} times the loop gains of the factory, delay"
        f" {1e3 * DELAY * first[-1]:.0f} ms",
        f"simulated: {fitted:.0f} s of {time:.0f} s in {len(windows)} windows; condition number of"
        f" the sensitivities = {condition:.3g}",
        scan.note(arm.joint_names, np.flatnonzero(found.quantity("backlash", theta)).tolist()),
    ]
    values = found.values(theta[None])[0]
    return ServoIdentification(
        arm,
        identified,
        nominal_parameters(identified),
        as_readonly(_spread(found, theta, deviation, problem.covariance)),
        as_readonly(found.quantity("loop_gain", theta)),
        float(values[-1]),
        _quantities(found, values, deviation),
        condition,
        ServoFit(described, tests).prediction(first),
        ServoFit(found, tests).prediction(theta),
        tuple(motion.source for motion in motions),
        tuple(motion.source for motion in checks),
        tuple(notes),
    )


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

    The prior of a current limit or backlash that the description does not have is NaN.
    """
    relative = 100 * variation.sigma * deviation
    relative[-1] /= max(abs(values[-1]), 1e-12)
    left = ~variation.free | (deviation > UNDETERMINED)
    relative[left] = np.inf
    prior = np.where(variation.exists, variation.described, np.nan)
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
    slopes = np.array(
        [
            nominal_parameters(variation.arm_of(theta + DIFFERENCE * row)) - center
            for row in np.eye(theta.size)[free]
        ]
    )
    slopes = slopes.reshape(free.size, center.size) / DIFFERENCE
    found = np.sqrt(np.einsum("ai,ab,bi->i", slopes, covariance[np.ix_(free, free)], slopes))
    return np.where(found > 0, found, np.inf)
