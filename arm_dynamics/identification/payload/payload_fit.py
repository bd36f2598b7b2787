"""Payload of an arm from measured efforts: mass, center of mass and inertia.

τ - W π = W_t φ,  minimize  ½ Σ w ((τ - W π - W_t φ) / σ_i)² / c + d(P(φ) ‖ P₀)

φ are the ten inertial parameters of the payload in the joint frame of the tool's link, W_t their
columns of the regressor W, π the parameters of the arm without payload: those of its description,
or those fitted to recordings without the payload. The payload's pseudo-inertia P is positive
definite; d is the divergence from a body of P₀ at the tool. Weights as in ``fit_torque``.

Errors of the arm's parameters δπ, and of the logarithms δl of drive gains if the efforts follow
from currents, change the estimate linearly:

δφ = (W_tᵀ w W_t + D)⁻¹ W_tᵀ w ((diag(τ) - W ∂π/∂l) δl - W δπ)

Errors that differ between joints, such as those of torque constants, show in the residuals r_i of
the joints, which change the estimate by δφ_i = (W_tᵀ w W_t + D)⁻¹ W_tᵀ w r_i. The variance of a
quantity is the larger one of nv / (nv - 1) Σ δφ_i δφ_iᵀ and of that of the blocks.

D is the Hessian of d. The covariance of δπ is (A + γ D_π)⁻¹ of the fit to the recordings without
the payload, with γ at least 1, that of δl and the slopes ∂π/∂l those of ``DriveGains``. Errors of
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

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.arm_identification import (
    Prediction,
    fitted_and_held_out,
    predicted_efforts,
)
from arm_dynamics.identification.efforts.drive_gain_fit import (
    DriveGains,
    recorded_gains,
    with_described_efforts,
)
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.friction_terms import (
    JointFriction,
    with_friction_terms,
    without_gear_loss,
)
from arm_dynamics.identification.efforts.motion_preparation import prepare_motion
from arm_dynamics.identification.efforts.torque_fit import TorqueFit, fit_torque
from arm_dynamics.identification.efforts.torque_problem import TorqueProblem
from arm_dynamics.identification.parameters.consistent_least_squares import (
    UNDETERMINED,
    DescriptionPrior,
    positive_inverse,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
    with_parameters,
)
from arm_dynamics.identification.parameters.payload_body import payload_ball, tool_link
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

LEAST_MASS = 0.05
"""Smallest mass of the prior body, relative to the mean mass of the links."""
QUANTITIES = (
    "mass", "center.x", "center.y", "center.z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz",
)  # fmt: skip
"""Names of the entries of ``PayloadFit.values``."""
STEP = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PayloadFit:
    """Result of ``identify_payload``.

    ``values`` and ``deviation`` (10,), in the order of QUANTITIES: mass [kg], center of mass [m]
    and inertia about it [kg·m²], along the axes of the tool frame. Deviations contain those of the
    arm and of its drive gains if these were fitted to motions without the payload; an arm of the
    description counts as exact. ``undetermined`` names the quantities that the motion does
    not reveal. ``parameters`` and ``parameter_deviation`` (14 nv,) are those of the arm with its
    payload; the deviations of parameters that are those of the description are NaN. ``before`` and
    ``after`` predict held-out motion without and with the payload. ``loaded`` is the arm of
    ``parameters``, with the friction of its motors.
    """

    arm: ArmModel
    loaded: ArmModel
    values: Vector
    deviation: Vector
    undetermined: tuple[str, ...]
    parameters: Vector
    parameter_deviation: Vector
    before: Prediction
    after: Prediction
    notes: tuple[str, ...]

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.values[0])

    @property
    def center(self) -> Vector:
        """Center of mass in the tool frame (3,) [m]."""
        found: Vector = self.values[1:4]
        return found


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
        The arm without the payload; without ``without``, its parameters count as known.
    motions : Sequence[MotionData]
        Motions with the payload fixed to the link of the tool frame. Efforts of motions with
        currents only follow from the torque constants of the arm, or from drive gains that are
        fitted to ``without``.
    held_out : Sequence[MotionData]
        Motions with the payload that check the result (default: the last 30 % of ``motions``).
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
    gains = recorded_gains(arm, without, (), None, cutoff) if without else None
    motions, held_out, without = (
        [_with_efforts(arm, gains, motion) for motion in part]
        for part in (motions, held_out, without)
    )
    fitted, checks = fitted_and_held_out(motions, held_out, without)
    prepared = [prepare_motion(arm, motion, cutoff) for motion in fitted]
    frequency = max(motion.cutoff for motion in prepared)
    notes = [note for motion in prepared for note in motion.notes]
    friction, known = JointFriction.of(arm), nominal_parameters(arm)
    simulated, spread = known, np.full(known.size, np.nan)
    errors = np.zeros((known.size, 0))
    if without:
        parts = [prepare_motion(arm, motion, cutoff) for motion in without]
        alone = fit_torque(arm, joined_equations([part.equations for part in parts]))
        known, errors = alone.parameters, _parameter_errors(alone)
        spread = np.array((gains.with_deviations(alone) if gains else alone).deviation)
        simulated = alone.simulated
        friction = alone.friction
        notes += [note for part in parts for note in part.notes]
        notes += gains.notes() if gains else []
    else:
        notes.append(
            "the arm counts as exact: the deviations of the payload do not contain its errors;"
            " record the motion without the payload too (--without)"
        )
    equations = joined_equations([motion.equations for motion in prepared])
    loaded = _loaded(equations, known, friction, link)
    prior = DescriptionPrior(_prior_body(arm, loaded)[None], np.zeros(0), np.zeros(0))
    problem = TorqueProblem(loaded, prior)
    found = problem.estimate(1.0)
    changes = problem.changes(1.0, found, -_efforts_of(equations, friction, errors))
    if gains:
        steps = _root(gains.covariance)
        own_errors = gains.slopes @ steps
        efforts = equations.effort * steps.T[:, None, :]
        efforts = efforts - _efforts_of(equations, friction, own_errors)
        errors = np.hstack((errors, own_errors))
        changes = np.hstack((changes, problem.changes(1.0, found, efforts)))
    noise = _noise_covariances(problem, loaded, found)
    values, slopes = _in_tool_frame(arm, link, found)
    own_noise = np.einsum("ij,cjk,ik->ci", slopes, noise, slopes).max(axis=0)
    deviation = np.sqrt(np.sum((slopes @ changes) ** 2, axis=1) + own_noise)
    free = slopes @ positive_inverse(prior.slopes(prior.start)[1]) @ slopes.T
    vague = deviation > UNDETERMINED * np.sqrt(np.diag(free))
    own = ParameterLayout(arm.nv).body(link)
    total, total_spread, written = np.array(known), spread.copy(), np.array(simulated)
    total[own] += found
    written[own] += found
    together = np.sum((errors[own] + changes) ** 2, axis=1)
    total_spread[own] = np.sqrt(together + np.einsum("cii->ci", noise).max(axis=0))
    late = float(np.median([motion.delay for motion in prepared]))
    tests = [prepare_motion(arm, motion, frequency, late) for motion in checks]
    carrying = with_friction_terms(with_parameters(arm, written), friction)
    return PayloadFit(
        arm,
        gains.applied(carrying) if gains else carrying,
        as_readonly(values),
        as_readonly(deviation),
        tuple(name for name, unknown in zip(QUANTITIES, vague, strict=True) if unknown),
        as_readonly(written),
        as_readonly(total_spread),
        predicted_efforts(tests, known, friction, friction.presliding),
        predicted_efforts(tests, total, friction, friction.presliding),
        tuple(notes),
    )


def _with_efforts(arm: ArmModel, gains: DriveGains | None, motion: MotionData) -> MotionData:
    """Return a motion with the efforts of its currents, of fitted gains or of the description."""
    if gains is None:
        return with_described_efforts(arm, motion)
    if motion.effort is not None or motion.current is None:
        raise InvalidValue(
            f"{motion.source}: efforts = {'none' if motion.effort is None else 'recorded'};"
            " expected currents without efforts, as in the motions without the payload"
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
    found: Matrix = sizes[:, None] * axes * np.sqrt(np.maximum(values, 0.0))
    return found


def _efforts_of(equations: EffortEquations, friction: JointFriction, changes: Matrix) -> FloatArray:
    """Return the efforts (k, n, nv) of changes (14 nv, k) of the parameters."""
    found: FloatArray = np.moveaxis(equations.rows(friction.presliding) @ changes, 2, 0)
    return found


def _loaded(
    equations: EffortEquations, known: Vector, friction: JointFriction, link: int
) -> EffortEquations:
    """Return the equations of the payload alone: W_t φ = τ - W π."""
    rows = equations.rows(friction.presliding)
    effort = without_gear_loss(equations.effort, equations.states(friction), friction.loss)
    own = ParameterLayout(equations.effort.shape[1]).body(link)
    return replace(
        equations,
        regressor=equations.regressor[:, :, own],
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
    return payload_ball(arm, max(mass, LEAST_MASS * float(np.mean(links)), 1e-3))


def _in_tool_frame(arm: ArmModel, link: int, found: Vector) -> tuple[Vector, Matrix]:
    """Return QUANTITIES (10,) of φ (10,) in the joint frame, and their derivatives (10, 10)."""
    tool = arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)].placement

    def quantities(parameters: Vector) -> Vector:
        body = tool.actInv(pin.Inertia.FromDynamicParameters(parameters))
        inertia = body.inertia
        order = [inertia[i, j] for j in range(3) for i in range(j + 1)]
        return np.array([body.mass, *body.lever, *order])

    slopes = np.empty((10, 10))
    for i in range(10):
        step = STEP * max(abs(found[i]), found[0] * 1e-3) * np.eye(10)[i]
        slopes[:, i] = (quantities(found + step) - quantities(found - step)) / (2 * step[i])
    return quantities(found), slopes
