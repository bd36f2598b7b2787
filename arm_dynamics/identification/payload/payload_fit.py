"""Payload of an arm from measured efforts: mass, center of mass and inertia.

τ - W π = W_t φ,  minimize  ½ Σ w ((τ - W π - W_t φ) / σ_i)² / c + d(P(φ) ‖ P₀)

φ are the ten inertial parameters of the payload in the joint frame of the tool's link, W_t their
columns of the regressor W, π the parameters of the arm without payload: those of its nominal model,
or those fitted to recordings without the payload. The payload's pseudo-inertia P is positive
definite; d is the divergence from a body of P₀ at the tool. Weights as in ``fit_torque``.

Errors of the arm's parameters δπ, and of the logarithms δl of drive gains if the efforts follow
from currents, change the estimate linearly:

δφ = (W_tᵀ w W_t + D)⁻¹ W_tᵀ w ((diag(τ) - W ∂π/∂l) δl - W δπ)

Errors that differ between joints, such as those of torque constants, show in the residuals r_i of
the joints, which change the estimate by δφ_i = (W_tᵀ w W_t + D)⁻¹ W_tᵀ w r_i. The variance of a
quantity is the larger one of nv / (nv - 1) Σ δφ_i δφ_iᵀ and of that of the blocks.

D is the Hessian of d. The covariance of δπ is (A + γ D_π)⁻¹ of the fit to the recordings without
the payload, with γ at least 1, that of δl and ∂π/∂l those of ``DriveGains``. Errors of
Stribeck friction and of gear losses are not propagated.

References
----------
W. Khalil, M. Gautier, P. Lemoine, Identification of the payload inertial parameters of industrial
manipulators, IEEE Int. Conf. Robotics and Automation (2007), section III. P. Wensing, S. Kim, J.-J.
Slotine, Linear matrix inequalities for physically consistent inertial parameter identification,
IEEE RA-L 3 (2018), section III.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
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
from arm_dynamics.identification.efforts.friction_terms import (
    JointFriction,
    with_friction_terms,
    without_gear_loss,
)
from arm_dynamics.identification.efforts.motion_preparation import (
    prepare_validation,
    recorded_efforts,
)
from arm_dynamics.identification.efforts.torque_fit import TorqueFit, fit_torque
from arm_dynamics.identification.efforts.torque_problem import TorqueProblem
from arm_dynamics.identification.parameters.consistent_least_squares import (
    UNDETERMINED,
    NominalPrior,
    positive_inverse,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.identification.parameters.payload_body import payload_ball, tool_link
from arm_dynamics.identification.results.fit_report import UNDETERMINED as UNDETERMINED_CELL
from arm_dynamics.identification.results.fit_report import FitTable
from arm_dynamics.identification.results.fit_summary import worse_joints
from arm_dynamics.identification.results.identification_result import IdentificationResult, Report
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.recording.motions.training_split import training_and_validation

MIN_MASS = 0.05
"""Smallest mass of the prior body, relative to the mean mass of the links."""
QUANTITIES = (
    "mass", "center.x", "center.y", "center.z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz",
)  # fmt: skip
"""Names of the entries of ``PayloadFit.values``."""
STEP = 1e-6


UNITS = ("kg", "m", "m", "m") + 6 * ("kg·m²",)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PayloadFit(IdentificationResult):
    """Result of ``identify_payload``.

    ``payload`` and ``payload_deviation`` (10,), in the order of QUANTITIES: mass [kg], center of
    mass [m] and inertia about it [kg·m²], along the axes of the tool frame. Deviations contain
    those of the arm and of its drive gains if these were fitted to motions without the payload; a
    nominal model is assumed exact. ``undetermined`` names the quantities that are not identifiable
    from the motion. ``identified`` is the arm with its payload; the deviations of its nominal
    parameters are NaN. ``before`` and ``after`` predict validation data without and with the
    payload.
    """

    payload: Vector
    payload_deviation: Vector
    undetermined: tuple[str, ...]
    before: Prediction
    after: Prediction

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.payload[0])

    @property
    def center(self) -> Vector:
        """Center of mass in the tool frame (3,) [m]."""
        return self.payload[1:4]

    def report(self) -> Report:
        """Return the payload in the tool frame, and the errors on validation data."""
        rows = zip(QUANTITIES, UNITS, self.payload, self.payload_deviation, strict=True)
        payload = FitTable(
            f"Payload in the tool frame '{self.arm.tool_frame}'",
            ("quantity", "unit", "value", "standard deviation"),
            tuple(
                (
                    name,
                    unit,
                    f"{value:.4g}",
                    UNDETERMINED_CELL if name in self.undetermined else f"{deviation:.2g}",
                )
                for name, unit, value, deviation in rows
            ),
        )
        errors = zip(
            self.arm.joints, self.before.rms, self.after.rms, self.after.relative_error, strict=True
        )
        joints = FitTable(
            "Prediction on held-out motion",
            ("joint", "unit", "RMS without payload", "RMS with payload", "error with payload"),
            tuple(
                (x.name, x.effort_unit, f"{b:.4g}", f"{a:.4g}", f"{100 * relative:.3g} %")
                for x, b, a, relative in errors
            ),
        )
        return Report((payload, joints), (*self.notes, *self.warnings))


@with_one_blas_thread
@requires_masses
def identify_payload(
    arm: ArmModel,
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData] = (),
    *,
    without: Sequence[MotionData] = (),
    cutoff: float | None = None,
) -> PayloadFit:
    """Return the payload that explains the efforts of an arm.

    Parameters
    ----------
    arm : ArmModel
        The arm without the payload; without ``without``, its parameters are assumed exact.
    motions : Sequence[MotionData]
        Motions with the payload fixed to the link of the tool frame. Efforts of motions with
        currents only follow from the torque constants of the arm, or from drive gains that are
        fitted to ``without``.
    held_out : Sequence[MotionData]
        Validation data with the payload (default: the last 30 % of ``motions``).
    without : Sequence[MotionData]
        Motions without the payload, to which the parameters of the arm itself are fitted.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz] (default: from the spectrum of the positions).

    Returns
    -------
    PayloadFit
        Mass, center of mass and inertia with standard deviations.

    Raises
    ------
    InvalidValue
        For motions without efforts, given twice or too short, for a tool frame that no joint
        moves, and for efforts of ``motions`` if ``without`` has currents only.

    """
    link = tool_link(arm)
    known = _fitted_arm(arm, without, cutoff) if without else _nominal_arm(arm)
    motions, held_out = (
        [_with_efforts(arm, known.gains, motion) for motion in data] for data in (motions, held_out)
    )
    training, validation = training_and_validation(motions, held_out, without)
    prepared, _ = prepare_training(arm, training, cutoff=cutoff)
    tests = prepare_validation(arm, validation, prepared)
    equations = joined_equations([motion.equations for motion in prepared])
    body = _fit_body(arm, equations, known, link)
    total, written, deviation = _with_body(known, body, ParameterLayout(arm.nv).body(link))
    payload, payload_deviation, undetermined = _in_tool_frame(arm, link, body)
    identified = with_friction_terms(with_parameters(arm, written), known.friction)
    before, after = (
        predicted_efforts(tests, values, known.friction, known.friction.presliding)
        for values in (known.values, total)
    )
    return PayloadFit(
        arm=arm,
        identified=known.gains.applied(identified) if known.gains else identified,
        parameters=as_readonly(written),
        deviation=as_readonly(deviation),
        sources=tuple(motion.source for motion in (*motions, *without)),
        notes=(*(note for motion in prepared for note in motion.notes), *known.notes),
        warnings=tuple(worse_joints(joint_fits(arm, before, after, after))),
        payload=as_readonly(payload),
        payload_deviation=as_readonly(payload_deviation),
        undetermined=undetermined,
        before=before,
        after=after,
    )


class _Arm(NamedTuple):
    """Arm without the payload.

    ``values`` and ``deviation`` (14 nv,), ``errors`` L (14 nv, k) with the covariance L Lᵀ;
    ``simulated`` (14 nv,) are the parameters of an arm in simulation.
    """

    values: Vector
    simulated: Vector
    deviation: Vector
    errors: Matrix
    friction: JointFriction
    gains: DriveGains | None
    notes: tuple[str, ...]


def _nominal_arm(arm: ArmModel) -> _Arm:
    """Return the nominal model, which is assumed exact."""
    values = nominal_parameters(arm)
    deviation, errors = np.full(values.size, np.nan), np.zeros((values.size, 0))
    note = (
        "the arm is assumed exact: the deviations of the payload do not contain its errors;"
        " record the motion without the payload too (--without)"
    )
    return _Arm(values, values, deviation, errors, JointFriction.of(arm), None, (note,))


def _fitted_arm(arm: ArmModel, motions: Sequence[MotionData], cutoff: float | None) -> _Arm:
    """Return the fit to motions without the payload, whose currents determine drive gains."""
    has_currents = all(motion.effort is None and motion.current is not None for motion in motions)
    data = motions if has_currents else [with_nominal_efforts(arm, x) for x in motions]
    prepared, gains = prepare_training(arm, data, cutoff=cutoff)
    fit = fit_torque(arm, joined_equations([motion.equations for motion in prepared]))
    notes = [note for motion in prepared for note in motion.notes]
    return _Arm(
        values=fit.parameters,
        simulated=fit.simulated,
        deviation=(gains.with_deviations(fit) if gains else fit).deviation,
        errors=_parameter_errors(fit),
        friction=fit.friction,
        gains=gains,
        notes=(*notes, *(gains.notes() if gains else ())),
    )


class _Body(NamedTuple):
    """Payload in the joint frame: φ (10,), and its errors.

    ``changes`` (10, k) by errors of the arm; ``noise`` (2, 10, 10): covariances by the residuals of
    blocks and of joints; ``prior`` (10, 10): covariance of the prior; ``joined_deviation`` (10,) of
    the link with its payload.
    """

    values: Vector
    changes: Matrix
    noise: FloatArray
    prior: Matrix
    joined_deviation: Vector


def _fit_body(arm: ArmModel, equations: EffortEquations, known: _Arm, link: int) -> _Body:
    """Return the payload that explains the efforts beyond those of the known arm."""
    loaded = _loaded(equations, known.values, known.friction, link)
    prior = NominalPrior(_prior_body(arm, loaded)[None], np.zeros(0), np.zeros(0))
    problem = TorqueProblem(loaded, prior)
    values, errors = problem.estimate(1.0), known.errors
    efforts = -_efforts_of(equations, known.friction, errors)
    changes = problem.changes(1.0, values, efforts)
    if known.gains:
        steps = _root(known.gains.covariance)
        gain_errors = known.gains.jacobian @ steps
        efforts = equations.effort * steps.T[:, None, :]
        efforts = efforts - _efforts_of(equations, known.friction, gain_errors)
        errors = np.hstack((errors, gain_errors))
        changes = np.hstack((changes, problem.changes(1.0, values, efforts)))
    noise = _noise_covariances(problem, loaded, values)
    variance = np.einsum("cii->ci", noise).max(axis=0)
    together = np.sum((errors[ParameterLayout(arm.nv).body(link)] + changes) ** 2, axis=1)
    inverse = positive_inverse(prior.derivatives(prior.start)[1])
    return _Body(values, changes, noise, inverse, np.sqrt(together + variance))


def _with_body(known: _Arm, body: _Body, at: slice) -> tuple[Vector, Vector, Vector]:
    """Return parameters, those in simulation, and deviations (14 nv,) with the payload."""
    total, written, deviation = map(np.array, (known.values, known.simulated, known.deviation))
    total[at] += body.values
    written[at] += body.values
    deviation[at] = body.joined_deviation
    return total, written, deviation


def _with_efforts(arm: ArmModel, gains: DriveGains | None, motion: MotionData) -> MotionData:
    """Return a motion with the efforts of its currents, of fitted gains or of the nominal ones."""
    if gains is None:
        motion = with_nominal_efforts(arm, motion)
        recorded_efforts(arm, motion)
        return motion
    if motion.effort is not None or motion.current is None:
        raise InvalidValue(
            f"{motion.source}: {'no joint' if motion.effort is None else 'joint'} efforts in the"
            " recording; expected currents without efforts, as in the motions without the payload"
        )
    return gains.efforts(motion)


def _parameter_errors(fit: TorqueFit) -> Matrix:
    """Return L (p, p) with the covariance L Lᵀ of a fit, (A + γ D)⁻¹ (A + γ² D) (A + γ D)⁻¹."""
    inverse = positive_inverse(fit.information + fit.prior_information)
    middle = fit.information + fit.prior_weight * fit.prior_information
    return _root(inverse @ middle @ inverse)


def _noise_covariances(
    problem: TorqueProblem, loaded: EffortEquations, found: Vector
) -> FloatArray:
    """Return the covariances (2, 10, 10) of φ by the residuals of blocks and by those of joints."""
    residual, nv = loaded.effort - loaded.regressor @ found, loaded.effort.shape[1]
    by_joint = problem.changes(1.0, found, residual * np.eye(nv)[:, None, :])
    few = nv / max(nv - 1, 1)
    return np.stack((problem.covariance(1.0, found), few * by_joint @ by_joint.T))


def _root(covariance: Matrix) -> Matrix:
    """Return L (p, p) with L Lᵀ = the covariance, whose rows may differ in size."""
    sizes = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, axes = np.linalg.eigh(covariance / sizes / sizes[:, None])
    root: Matrix = sizes[:, None] * axes * np.sqrt(np.maximum(values, 0.0))
    return root


def _efforts_of(equations: EffortEquations, friction: JointFriction, changes: Matrix) -> FloatArray:
    """Return the efforts (k, n, nv) of changes (14 nv, k) of the parameters."""
    efforts: FloatArray = np.moveaxis(equations.rows(friction.presliding) @ changes, 2, 0)
    return efforts


def _loaded(
    equations: EffortEquations, known: Vector, friction: JointFriction, link: int
) -> EffortEquations:
    """Return the equations of the payload alone: W_t φ = τ - W π."""
    rows = equations.rows(friction.presliding)
    effort = without_gear_loss(equations.effort, equations.states(friction), friction.loss)
    at = ParameterLayout(equations.effort.shape[1]).body(link)
    return replace(
        equations,
        regressor=equations.regressor[:, :, at],
        effort=effort - equations.stribeck(friction) - rows @ known,
        valid=equations.counted(friction.presliding),
    )


def _prior_body(arm: ArmModel, equations: EffortEquations) -> Vector:
    """Return φ₀ (10,) of a ball at the tool frame, with the mass of least squares."""
    per_kilogram = equations.regressor @ payload_ball(arm, 1.0)
    counted = equations.valid
    mass = float(np.sum(counted * per_kilogram * equations.effort))
    mass /= max(float(np.sum(counted * per_kilogram**2)), 1e-12)
    links = [inertia.mass for inertia in list(arm.links.inertias)[1:]]
    return payload_ball(arm, max(mass, MIN_MASS * float(np.mean(links)), 1e-3))


def _in_tool_frame(arm: ArmModel, link: int, body: _Body) -> tuple[Vector, Vector, tuple[str, ...]]:
    """Return QUANTITIES (10,), their deviations (10,) and the names of undetermined ones."""
    tool = arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)].placement

    def quantities(parameters: Vector) -> Vector:
        body = tool.actInv(pin.Inertia.FromDynamicParameters(parameters))
        inertia = body.inertia
        order = [inertia[i, j] for j in range(3) for i in range(j + 1)]
        return np.array([body.mass, *body.lever, *order])

    values, jacobian = body.values, np.empty((10, 10))
    for i in range(10):
        step = STEP * max(abs(values[i]), values[0] * 1e-3) * np.eye(10)[i]
        jacobian[:, i] = (quantities(values + step) - quantities(values - step)) / (2 * step[i])
    noise = np.einsum("ij,cjk,ik->ci", jacobian, body.noise, jacobian).max(axis=0)
    deviation = np.sqrt(np.sum((jacobian @ body.changes) ** 2, axis=1) + noise)
    prior = np.sqrt(np.diag(jacobian @ body.prior @ jacobian.T))
    is_vague = deviation > UNDETERMINED * prior
    names = tuple(name for name, x in zip(QUANTITIES, is_vague, strict=True) if x)
    return quantities(values), deviation, names
