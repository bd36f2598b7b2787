"""Drive gains from motor currents: N·m at the joint per A, together with the dynamic parameters.

minimize  ½ Σ w (K₀ i - e^(-l) W π)² + d(π ‖ π₀) + ½ Σ (l / σ)²

over parameters π and l (nv,), the logarithms of the gains K over the nominal ones K₀.
Currents determine the ratios of gains of coupled joints. They do not determine the scale of all
gains and parameters: it follows from the nominal model, or from a payload of known mass that some
motions carry. Without torque constants the efforts of the nominal bodies determine it: the
divergence d prefers small bodies where centers of mass differ. Friction, rotor inertia and offset
that the nominal model lacks contain no information about the scale: e^(-l) π of these is
estimated, and its prior does not contain l.

References
----------
M. Gautier, S. Briot, Global identification of joint drive gains and dynamic parameters of robots,
J. Dynamic Systems, Measurement, and Control 136 (2014), section 3.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector, as_readonly, check_float
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.effort_equations import (
    EffortEquations,
    joined_equations,
    nominal_prior,
)
from arm_dynamics.identification.efforts.motion_preparation import (
    PreparedMotion,
    missing_torque_constants,
    prepare_motion,
)
from arm_dynamics.identification.efforts.torque_fit import TorqueFit
from arm_dynamics.identification.efforts.torque_problem import robust_weights
from arm_dynamics.identification.parameters.consistent_least_squares import (
    damped_newton,
    rms,
)
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
)
from arm_dynamics.identification.parameters.payload_body import payload_ball, tool_link
from arm_dynamics.identification.results.fit_summary import ParameterFit
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

NOMINAL, GUESSED = 0.3, 1.0
"""Standard deviation σ of the logarithm of a gain with and without a torque constant."""
SCALE = 0.2
"""Standard deviation of the common factor of gains that follow from the nominal bodies only."""
EXPLAINED = 1e-2
"""Least part of the squares of a current that is unexplained."""
NOT_REVEALED = 0.7
"""Deviation of a gain over σ from which on it is named."""
PASSES = 3
"""Fits with efforts of renewed gains."""
MASS_TOLERANCE = 2e-3
"""Standard deviation of a known payload mass, relative."""
TURNS = 5
"""Estimates with renewed robust weights."""


@dataclass(frozen=True, slots=True, eq=False)
class DriveGains:
    """Gains of drives [N·m/A or N/A].

    ``gain`` (nv,), ``prior`` (nv,): the nominal ones, or those of the nominal dynamics without
    torque constants. ``covariance`` (nv, nv) of the logarithms of the gains; ``jacobian``
    (14 nv, nv): the parameters' derivatives by them. ``undetermined``: joints whose gain is not
    identifiable; it stays near its prior. ``payload_mass`` [kg] determined the scale; None: the
    nominal model did.
    """

    arm: ArmModel
    gain: Vector
    prior: Vector
    covariance: Matrix
    jacobian: Matrix
    undetermined: tuple[str, ...]
    payload_mass: float | None

    @property
    def deviation(self) -> Vector:
        """Relative standard deviations of the gains (nv,)."""
        deviation: Vector = np.sqrt(np.diag(self.covariance))
        return deviation

    @property
    def scale_deviation(self) -> float:
        """Relative standard deviation of the mean of all gains."""
        return float(np.sqrt(self.covariance.mean()))

    def efforts(self, motion: MotionData) -> MotionData:
        """Return a motion with the efforts of its currents; itself without currents."""
        return with_efforts(motion, self.gain)

    def with_deviations(self, fit: TorqueFit) -> TorqueFit:
        """Return a fit to these efforts whose deviations contain those of the gains."""
        more = np.einsum("ij,jk,ik->i", self.jacobian, self.covariance, self.jacobian)
        return replace(fit, deviation=as_readonly(np.sqrt(fit.deviation**2 + more)))

    def applied(self, arm: ArmModel) -> ArmModel:
        """Return ``arm`` with the torque constants of the gains, where motors have one."""
        for i, motor in enumerate(self.arm.actuators):
            if "kt" in motor.constants:
                kt = float(self.gain[i] / motor.constants["gear_ratio"])
                arm = arm.with_motor(arm.joint_names[i], kt=kt)
        return arm

    def parameters(self) -> tuple[ParameterFit, ...]:
        """Return rows of the report."""
        return tuple(
            ParameterFit(
                f"{joint.name}.drive_gain",
                "N/A" if joint.unit == "m" else "N·m/A",
                float(self.prior[i]),
                float(self.gain[i]),
                np.nan if joint.name in self.undetermined else 100 * float(self.deviation[i]),
            )
            for i, joint in enumerate(self.arm.joints)
        )

    def notes(self) -> list[str]:
        """Return sentences for the user."""
        percent = f"{100 * self.scale_deviation:.2g} %"
        known = (
            f"efforts from currents; their scale follows from the payload of"
            f" {self.payload_mass:g} kg, standard deviation {percent}"
            if self.payload_mass
            else "efforts from currents, which determine ratios only: their scale follows from the"
            f" nominal masses and torque constants, standard deviation {percent};"
            " record a payload of known mass (--payload-mass)"
        )
        if not self.undetermined:
            return [known]
        left = ", ".join(self.undetermined)
        return [known, f"drive gains not identifiable from this trajectory, near the prior: {left}"]


def prepare_training(
    arm: ArmModel,
    motions: Sequence[MotionData],
    loaded: Sequence[MotionData] = (),
    *,
    payload_mass: float | None = None,
    cutoff: float | None = None,
    coupled: Matrix | None = None,
) -> tuple[list[PreparedMotion], DriveGains | None]:
    """Return prepared motions, and ``drive_gains`` if their efforts follow from currents.

    Raises
    ------
    InvalidValue
        For a motion with efforts, or without currents, among others with currents only, and for
        ``coupled`` motors (``prepare_motion``) with currents.

    """
    has_currents_only = [x.effort is None and x.current is not None for x in (*motions, *loaded)]
    if not loaded and not all(has_currents_only):
        return [prepare_motion(arm, motion, cutoff, None, coupled) for motion in motions], None
    for motion, is_usable in zip((*motions, *loaded), has_currents_only, strict=True):
        if not is_usable:
            what = "no motor currents" if motion.current is None else "joint efforts"
            raise InvalidValue(
                f"{motion.source}: {what} in the recording; expected currents without efforts in"
                " all motions that determine drive gains"
            )
    if coupled is not None:
        raise InvalidValue(
            "coupled motors: no joint efforts in the recordings, only currents; multiply the"
            " currents by gear ratio and torque constant"
        )
    prepared = _prepare_currents(arm, [*motions, *loaded], cutoff)
    gains = _fit(arm, prepared, len(motions), payload_mass)
    unloaded = prepared[: len(motions)]
    return [m.with_efforts(_currents(m.data) * gains.gain) for m in unloaded], gains


def with_efforts(motion: MotionData, gains: Vector) -> MotionData:
    """Return a motion with the efforts K i of gains K (nv,); itself without currents i."""
    if motion.current is None:
        return motion
    return replace(motion, effort=as_readonly(motion.current * gains))


def with_nominal_efforts(arm: ArmModel, motion: MotionData) -> MotionData:
    """Return a motion of currents with the efforts of the arm's torque constants, if it has them.

    A motion with efforts remains as it is.
    """
    gains = nominal_gains(arm)
    if motion.effort is not None or not np.isfinite(gains).all():
        return motion
    return with_efforts(motion, gains)


def nominal_gains(arm: ArmModel) -> Vector:
    """Return N K_t [N·m/A] of the motors (nv,); NaN where the model has none."""
    constants = [motor.constants for motor in arm.actuators]
    return as_readonly([c.get("kt", np.nan) * c.get("gear_ratio", 1.0) for c in constants])


def required_gains(arm: ArmModel, source: str) -> Vector:
    """Return ``nominal_gains`` (nv,) for the currents of ``source``; raises InvalidValue."""
    gains = nominal_gains(arm)
    if not np.isfinite(gains).all():
        raise missing_torque_constants(arm, source)
    return gains


@with_one_blas_thread
def drive_gains(
    arm: ArmModel,
    motions: Sequence[MotionData],
    loaded: Sequence[MotionData] = (),
    *,
    payload_mass: float | None = None,
    cutoff: float | None = None,
) -> DriveGains:
    """Return the gains between motor currents and joint efforts.

    Parameters
    ----------
    arm : ArmModel
        Nominal model; K_t and gear ratio of its motors are the prior of the gains.
    motions : Sequence[MotionData]
        Motions with currents.
    loaded : Sequence[MotionData]
        Motions with currents and a payload at the tool frame.
    payload_mass : float, optional
        Mass of this payload [kg]; its center of mass and inertia are estimated.
    cutoff : float, optional
        Cut-off frequency of the filter [Hz] (default: from the spectrum of the positions).

    Returns
    -------
    DriveGains
        Gains with standard deviations.

    Raises
    ------
    InvalidValue
        For motions without currents, and for currents whose sign is opposite to the efforts.

    """
    check_arm(arm)
    return _fit(
        arm, _prepare_currents(arm, [*motions, *loaded], cutoff), len(motions), payload_mass
    )


def _prepare_currents(
    arm: ArmModel, motions: Sequence[MotionData], cutoff: float | None
) -> list[PreparedMotion]:
    """Return motions with the nominal gains, 1 where the model has none, without a delay."""
    gains = nominal_gains(arm)
    gains = np.where(np.isfinite(gains), gains, 1.0)
    total = np.sum([np.sum(_currents(motion) ** 2, axis=0) for motion in motions], axis=0)
    if (total == 0).any():
        names = np.array(arm.joint_names)[total == 0]
        raise InvalidValue(
            f"currents of joints {', '.join(names)} = 0 in all samples; expected"
            " measured currents; lock these joints"
        )
    return [prepare_motion(arm, with_efforts(motion, gains), cutoff, 0.0) for motion in motions]


def _currents(motion: MotionData) -> Matrix:
    """Return the currents (n, nv) [A] of a motion; raises InvalidValue without any."""
    if motion.current is None:
        raise InvalidValue(
            f"{motion.source}: no motor currents in the recording; record columns current.JOINT [A]"
        )
    return motion.current


def _equations(motions: Sequence[PreparedMotion], gains: Vector) -> EffortEquations:
    """Return the equations of efforts that are currents times ``gains`` (nv,)."""
    scaled = [motion.with_efforts(_currents(motion.data) * gains) for motion in motions]
    return joined_equations([motion.equations for motion in scaled])


def _fit(
    arm: ArmModel, motions: Sequence[PreparedMotion], unloaded: int, payload_mass: float | None
) -> DriveGains:
    """Return the gains; all but the first ``unloaded`` motions carry the payload."""
    _check_payload(payload_mass, len(motions) - unloaded)
    prior, sigma, weight = _prior_gains(arm, motions)
    has_scale = payload_mass is None and weight.any()
    logs = np.zeros(arm.nv)
    count = sum(len(motion.time) for motion in motions[:unloaded])
    for _ in range(PASSES):  # the delay of the efforts is exact only with consistent gains
        equations = _equations(motions, prior * np.exp(logs))
        carrying = np.arange(len(equations.effort)) >= count
        problem = DriveGainProblem(arm, equations, logs, sigma, carrying, payload_mass)
        logs = logs + problem.minimize()
        logs = logs - weight @ logs if has_scale else logs
    covariance, jacobian = problem.covariance()
    if has_scale:
        ratios = np.eye(arm.nv) - weight
        covariance = ratios @ covariance @ ratios.T + SCALE**2
    vague = np.sqrt(np.diag(covariance)) > NOT_REVEALED * sigma
    return DriveGains(
        arm,
        as_readonly(prior * np.exp(logs)),
        as_readonly(prior),
        as_readonly(covariance),
        as_readonly(jacobian),
        tuple(np.array(arm.joint_names)[vague].tolist()),
        payload_mass,
    )


def _check_payload(mass: float | None, motions: int) -> None:
    """Raise InvalidValue unless there is a payload mass exactly if ``motions`` carry it."""
    if (mass is None) != (motions == 0):
        raise InvalidValue(
            f"payload mass = {mass} with {motions} motions that carry it; expected both or none"
        )
    if mass is not None:
        check_float("payload mass [kg]", mass, above=0)


def _prior_gains(arm: ArmModel, motions: Sequence[PreparedMotion]) -> tuple[Vector, Vector, Vector]:
    """Return gains K₀ (nv,) and σ (nv,): the nominal ones, else those of its bodies' efforts.

    A joint whose current these efforts explain to less than one half gets the geometric mean of
    the gains of the others. Without any nominal gain, the last result (nv,) are weights of sum 1
    with which the logarithms of K₀ determine the scale: explained over unexplained squares of the
    currents; else 0.
    """
    names, nominal = np.array(arm.joint_names), nominal_gains(arm)
    lacking = np.isnan(nominal)
    sigma = np.where(lacking, GUESSED, NOMINAL)
    if not lacking.any():
        return nominal, sigma, np.zeros(arm.nv)
    current_per_effort, weight = _explained_currents(arm, motions, lacking)
    if (current_per_effort < 0).any():
        raise InvalidValue(
            f"currents of joints {', '.join(names[current_per_effort < 0])}: sign = opposite to"
            " the efforts of the nominal model; expected a positive current for a positive effort;"
            " change the sign"
        )
    is_explained = ~lacking | (current_per_effort > 0)
    if not is_explained.any():
        raise InvalidValue(
            f"currents of arm '{arm.name}': the nominal masses explain less than half of"
            " them in every joint; expected currents of a motion against gravity or inertia; record"
            " a faster motion, or give the torque constants kt"
        )
    slope = np.where(current_per_effort > 0, current_per_effort, 1.0)
    gains = np.where(lacking, 1 / slope, nominal)
    weight = weight / weight.sum() if lacking.all() else np.zeros(arm.nv)
    mean = np.exp(np.mean(np.log(gains[is_explained])))
    return np.where(is_explained, gains, mean), sigma, weight


def _explained_currents(
    arm: ArmModel, motions: Sequence[PreparedMotion], joints: BoolArray
) -> tuple[Vector, Vector]:
    """Return current over effort of the nominal bodies (nv,), and weights (nv,); 0 otherwise.

    Least squares of the current of a joint: the effort of the nominal bodies, rotor inertia,
    friction and offset. A joint counts whose current this effort explains to more than one half.
    """
    layout, ideal = ParameterLayout(arm.nv), np.zeros(arm.nv, dtype=int)
    equations = _equations(motions, np.ones(arm.nv))
    rows, counted = equations.rows(ideal), equations.counted(ideal)
    slope, weight = np.zeros(arm.nv), np.zeros(arm.nv)
    inertial = layout.inertial
    bodies = rows[..., inertial] @ nominal_parameters(arm)[inertial]
    for i in np.flatnonzero(joints).tolist():
        used = counted[:, i]
        terms = rows[used, i][:, layout.joint_terms(i)]  # rotor inertia, friction and offset
        both = np.column_stack((bodies[used, i], equations.effort[used, i]))
        effort, current = (both - terms @ np.linalg.lstsq(terms, both, rcond=None)[0]).T
        product, square = effort @ current, effort @ effort
        if product**2 > 0.5 * square * (current @ current):
            slope[i] = product / square
            weight[i] = 1 / max(square * (current @ current) / product**2 - 1, EXPLAINED)
    return slope, weight


class DriveGainProblem:
    """½ Σ w (τ - W (s ∘ x))² + d(x ‖ π₀) + ½ Σ ((l₀ + l) / σ)² over z = (x, l).

    x are the parameters π with s = e^(-l). Only of those that the nominal model lacks, x is
    π e^(-l) and s = 1. The efforts τ contain the gains K₀ e^(l₀). The ten parameters of a payload
    follow those of the links in x; its mass adds ½ ((m - m_p) / (m_p MASS_TOLERANCE))².

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    equations : EffortEquations
        Equations of n samples with efforts τ.
    start, sigma : Vector
        l₀ and σ (nv,).
    carrying : BoolArray
        Samples (n,) with the payload.
    payload_mass : float or None
        m_p [kg]; None without a payload.

    """

    def __init__(
        self,
        arm: ArmModel,
        equations: EffortEquations,
        start: Vector,
        sigma: Vector,
        carrying: BoolArray,
        payload_mass: float | None,
    ) -> None:
        nv, ideal = arm.nv, np.zeros(arm.nv, dtype=int)
        prior = nominal_prior(arm, equations)
        layout = ParameterLayout(nv)
        rows, self._arm_columns = equations.rows(ideal), np.arange(layout.size)
        if payload_mass is not None:
            links, terms = np.split(rows, [layout.inertial.stop], axis=2)
            payload = rows[:, :, layout.body(tool_link(arm))]
            payload = np.where(carrying[:, None, None], payload, 0.0)
            rows = np.concatenate((links, payload, terms), axis=2)
            self._arm_columns[layout.inertial.stop :] += 10
            bodies = layout.bodies(prior.start)
            prior = prior.with_bodies(np.vstack((bodies, payload_ball(arm, payload_mass))))
        nominal, self._lacking = nominal_parameters(arm), np.zeros(rows.shape[2], dtype=bool)
        self._lacking[self._arm_columns[layout.terms]] = nominal[layout.terms] <= 0
        self._lacking[self._arm_columns[layout.offset]] = True
        self._prior, self._mass, self._mass_column = prior, payload_mass, layout.inertial.stop
        self._rows, self._effort, self._counted = rows, equations.effort, equations.counted(ideal)
        self._start, self._sigma = start, sigma
        self._z = np.concatenate((prior.start, np.zeros(nv)))
        self._size = np.maximum(rms(self._effort, self._counted), 1e-9)
        self._set_moments(self._counted / self._size**2)

    def minimize(self) -> Vector:
        """Return l (nv,) of the minimum; renew the robust weights."""
        for _ in range(TURNS):
            self._z = damped_newton(self.cost, self.derivatives, self._z)
            x, logs = self._split(self._z)
            residual = self._effort - self._efforts(self._scale(logs) * x)
            self._set_moments(robust_weights(residual, self._counted, self._size)[1])
        self._z = damped_newton(self.cost, self.derivatives, self._z)
        return self._split(self._z)[1]

    def covariance(self) -> tuple[Matrix, Matrix]:
        """Return the covariance (nv, nv) of l, and ∂π/∂l (14 nv, nv), at the minimum."""
        x, logs = self._split(self._z)
        p, nv = x.size, logs.size
        root, scale, joints = np.sqrt(self._weights), self._scale(logs), np.arange(nv)
        rows = np.zeros((*root.shape, p + nv))
        rows[:, :, :p] = self._rows * root[..., None] * scale
        rows[:, joints, p + joints] = -root * self._efforts(self._moved(scale) * x)
        curvature = self._prior_derivatives(x)[1]
        sizes = np.sqrt(np.diag(curvature))
        values, axes = np.linalg.eigh(curvature / sizes / sizes[:, None])
        prior = np.zeros((p + nv, p + nv))
        prior[:p, :p] = np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T * sizes
        prior[p + joints, p + joints] = 1 / self._sigma
        # The Hessian RᵀR itself would lose the digits of a gain that exact data leave open.
        factors = np.vstack((rows.reshape(-1, p + nv), prior))
        norms = np.linalg.norm(factors, axis=0)
        r = np.asarray(np.linalg.qr(factors / norms, mode="r"))
        deviations = np.linalg.inv(r[p:, p:]) / norms[p:, None]
        jacobian = -np.linalg.solve(r[:p, :p], r[:p, p:]) / norms[:p, None] * norms[p:]
        jacobian = jacobian[self._arm_columns]
        lacking, layout = (self._lacking * x)[self._arm_columns], ParameterLayout(nv)
        for i in range(nv):
            jacobian[layout.joint_terms(i), i] += lacking[layout.joint_terms(i)]
        return deviations @ deviations.T, jacobian

    def cost(self, z: Vector) -> float:
        """Return the value of the function; infinite outside the domain of π."""
        x, logs = self._split(z)
        scaled, away = self._scale(logs) * x, (self._start + logs) / self._sigma
        value = self._prior.divergence(x)
        if self._mass is not None:
            deviation = MASS_TOLERANCE * self._mass
            value += 0.5 * ((x[self._mass_column] - self._mass) / deviation) ** 2
        pulled = np.einsum("ipq,iq->ip", self._squares, scaled)
        return float(
            value + np.sum((0.5 * pulled - self._products) * scaled) + 0.5 * np.sum(away**2)
        )

    def derivatives(self, z: Vector) -> tuple[Vector, Matrix]:
        """Return gradient (p + nv,) and Gauss-Newton Hessian within the domain."""
        x, logs = self._split(z)
        p, away, scale = x.size, (self._start + logs) / self._sigma, self._scale(logs)
        moved = self._moved(scale) * x
        error = np.einsum("ipq,iq->ip", self._squares, scale * x) - self._products
        pulled = np.einsum("ipq,iq->ip", self._squares, moved)
        slope, curvature = self._prior_derivatives(x)
        gradient = np.concatenate(
            (slope + np.sum(scale * error, axis=0), away / self._sigma - np.sum(moved * error, 1))
        )
        mixed = -scale * pulled
        hessian = np.zeros((z.size, z.size))
        hessian[:p, :p] = curvature + np.einsum("ip,ipq,iq->pq", scale, self._squares, scale)
        hessian[:p, p:], hessian[p:, :p] = mixed.T, mixed
        hessian[p:, p:] = np.diag(np.sum(moved * pulled, axis=1) + self._sigma**-2)
        return gradient, hessian

    def _scale(self, logs: Vector) -> Matrix:
        """Return s (nv, p) of the equations of each joint."""
        scale: Matrix = np.where(self._lacking, 1.0, np.exp(-logs)[:, None])
        return scale

    def _moved(self, scale: Matrix) -> Matrix:
        """Return -∂s/∂l (nv, p) of the joints."""
        return np.where(self._lacking, 0.0, scale)

    def _efforts(self, parameters: Matrix) -> Matrix:
        """Return the efforts (n, nv) of one set of parameters (nv, p) for each joint."""
        efforts: Matrix = np.einsum("nip,ip->ni", self._rows, parameters)
        return efforts

    def _prior_derivatives(self, x: Vector) -> tuple[Vector, Matrix]:
        """Return gradient (p,) and Hessian of the divergence and of the payload's mass."""
        slope, curvature = self._prior.derivatives(x)
        if self._mass is not None:
            k, stiffness = self._mass_column, 1 / (MASS_TOLERANCE * self._mass) ** 2
            slope[k] += stiffness * (x[k] - self._mass)
            curvature[k, k] += stiffness
        return slope, curvature

    def _split(self, z: Vector) -> tuple[Vector, Vector]:
        """Return π (p,) and l (nv,)."""
        return z[: self._prior.start.size], z[self._prior.start.size :]

    def _set_moments(self, weights: Matrix) -> None:
        """Set Σ w WᵀW (nv, p, p) and Σ w Wᵀτ (nv, p)."""
        self._weights = weights
        weighted = self._rows * weights[..., None]
        self._squares = np.einsum("nip,niq->ipq", weighted, self._rows, optimize=True)
        self._products = np.einsum("nip,ni->ip", weighted, self._effort)
