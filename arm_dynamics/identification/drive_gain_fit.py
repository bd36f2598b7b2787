"""Drive gains from motor currents: N·m at the joint per A, together with the dynamic parameters.

minimize  ½ Σ w (K₀ i - e^(-l) W π)² + d(π ‖ π₀) + ½ Σ (l / σ)²

over parameters π and l (nv,), the logarithms of the gains K over those of the description K₀.
Currents determine the ratios of gains of coupled joints. They do not determine the scale of all
gains and parameters: it follows from the description, or from a payload of known mass that some
motions carry.

References
----------
M. Gautier, S. Briot, Global identification of joint drive gains and dynamic parameters of robots,
J. Dynamic Systems, Measurement, and Control 136 (2014), section 3.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly, check_float
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.consistent_least_squares import (
    JITTER,
    NEWTON_STEPS,
    NEWTON_TOLERANCE,
    SHORTEST,
    DescriptionPrior,
    positive_inverse,
    rms,
)
from arm_dynamics.identification.dynamic_parameters import nominal_parameters, regressor
from arm_dynamics.identification.fit_report import ParameterFit
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.motion_preparation import prepare_motion
from arm_dynamics.identification.payload_body import payload_ball, tool_link
from arm_dynamics.identification.pseudo_inertia import consistent_prior
from arm_dynamics.identification.torque_fit import (
    EffortEquations,
    TorqueFit,
    joined_equations,
    robust_weights,
)
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel

DESCRIBED, GUESSED = 0.3, 1.0
"""Standard deviation σ of the logarithm of a gain with and without a torque constant."""
MASS_TOLERANCE = 2e-3
"""Standard deviation of a known payload mass, relative."""
NOT_REVEALED = 0.7
"""Deviation of a gain over σ from which on it is named."""
PASSES = 3
TURNS = 5
"""Preparations of the motions with renewed gains, and estimates with renewed weights in each."""


@dataclass(frozen=True, slots=True, eq=False)
class DriveGains:
    """Gains of drives [N·m/A or N/A].

    ``gain`` (nv,), ``prior`` (nv,): those of the description, or of its dynamics without torque
    constants. ``covariance`` (nv, nv) of the logarithms of the gains; ``slopes`` (14 nv, nv): the
    parameters' derivatives by them. ``undetermined``: joints whose gain the motion does not reveal;
    it stays near its prior. ``payload_mass`` [kg] determined the scale; None: the description did.
    """

    arm: ArmModel
    gain: Vector
    prior: Vector
    covariance: Matrix
    slopes: Matrix
    undetermined: tuple[str, ...]
    payload_mass: float | None

    @property
    def deviation(self) -> Vector:
        """Relative standard deviations of the gains (nv,)."""
        found: Vector = np.sqrt(np.diag(self.covariance))
        return found

    @property
    def scale_deviation(self) -> float:
        """Relative standard deviation of the mean of all gains."""
        return float(np.sqrt(self.covariance.mean()))

    def efforts(self, motion: MotionData) -> MotionData:
        """Return a motion with the efforts of its currents; itself without currents."""
        if motion.current is None:
            return motion
        return replace(motion, effort=as_readonly(motion.current * self.gain))

    def with_deviations(self, fit: TorqueFit) -> TorqueFit:
        """Return a fit to these efforts whose deviations contain those of the gains."""
        more = np.einsum("ij,jk,ik->i", self.slopes, self.covariance, self.slopes)
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
            f" masses and torque constants of the description, standard deviation {percent};"
            " record a payload of known mass (--payload-mass)"
        )
        if not self.undetermined:
            return [known]
        left = ", ".join(self.undetermined)
        return [known, f"drive gains not revealed by this motion, close to the prior: {left}"]


def has_currents_only(motions: Sequence[MotionData]) -> bool:
    """Return whether all motions have currents and none has efforts."""
    return all(motion.effort is None and motion.current is not None for motion in motions)


def require_currents_only(motions: Sequence[MotionData]) -> None:
    """Raise InvalidValue for a motion with efforts, or without currents."""
    for motion in motions:
        if not has_currents_only([motion]):
            what = "currents = none" if motion.current is None else "efforts = recorded"
            raise InvalidValue(
                f"{motion.source}: {what}; expected currents without efforts in all motions that"
                " determine drive gains"
            )


def with_described_efforts(arm: ArmModel, motion: MotionData) -> MotionData:
    """Return a motion of currents with the efforts of the arm's torque constants, if it has them.

    A motion with efforts remains as it is.
    """
    gains = described_gains(arm)
    if not has_currents_only([motion]) or motion.current is None or not np.isfinite(gains).all():
        return motion
    return replace(motion, effort=as_readonly(motion.current * gains))


def described_gains(arm: ArmModel) -> Vector:
    """Return N K_t [N·m/A] of the motors (nv,); NaN where the description has none."""
    found = [m.constants.get("kt", np.nan) * m.constants.get("gear_ratio", 1.0)
             for m in arm.actuators]  # fmt: skip
    return as_readonly(np.array(found))


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
        The arm of the description; K_t and gear ratio of its motors are the prior of the gains.
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
    if (payload_mass is None) != (not loaded):
        raise InvalidValue(
            f"payload mass = {payload_mass} with {len(loaded)} motions that carry it; expected both"
            " or none"
        )
    if payload_mass is not None:
        check_float("payload mass [kg]", payload_mass, above=0)
    every = [*motions, *loaded]
    prior, sigma = _prior_gains(arm, every)
    logarithm = np.zeros(arm.nv)
    for _ in range(PASSES):  # the delay of the efforts is exact only with consistent gains
        gains = prior * np.exp(logarithm)
        parts = [
            prepare_motion(arm, replace(motion, effort=as_readonly(gains * motion.current)), cutoff)
            for motion in every
            if motion.current is not None
        ]
        equations = joined_equations([part.equations for part in parts])
        first = sum(len(part.time) for part in parts[: len(motions)])
        problem = _GainProblem(arm, equations, logarithm, sigma, first, payload_mass)
        parameters, change = problem.estimate()
        covariance, slopes = problem.covariance(parameters, change)
        logarithm = logarithm + change
    vague = np.sqrt(np.diag(covariance)) > NOT_REVEALED * sigma
    return DriveGains(
        arm,
        as_readonly(prior * np.exp(logarithm)),
        as_readonly(prior),
        as_readonly(covariance),
        as_readonly(slopes),
        tuple(name for name, x in zip(arm.joint_names, vague, strict=True) if x),
        payload_mass,
    )


def _prior_gains(arm: ArmModel, motions: Sequence[MotionData]) -> tuple[Vector, Vector]:
    """Return gains K₀ (nv,) and σ (nv,): the description's, else those of its gravity."""
    gains = np.array(described_gains(arm))
    sigma = np.where(np.isfinite(gains), DESCRIBED, GUESSED)
    products, squares = np.zeros(arm.nv), np.zeros(arm.nv)
    for motion in motions:
        if motion.current is None:
            raise InvalidValue(
                f"{motion.source}: currents = none; expected those of the motors; record columns"
                " current.JOINT [A]"
            )
        rows = slice(None, None, max(1, len(motion.time) // 500))
        q = motion.q[rows]
        effort = regressor(arm, q, 0 * q, 0 * q) @ nominal_parameters(arm)
        v = np.gradient(q, motion.time[rows], axis=0)
        dry = 0.2 * np.sqrt(np.mean(effort**2, axis=0) + 1e-12) * np.sign(v)
        products += np.sum((effort + dry) * motion.current[rows], axis=0)
        squares += np.sum(motion.current[rows] ** 2, axis=0)
    if (squares == 0).any():
        names = [n for n, x in zip(arm.joint_names, squares, strict=True) if x == 0]
        raise InvalidValue(
            f"currents of joints {', '.join(names)} = 0 in all samples; expected measured currents;"
            " lock these joints"
        )
    slope = products / squares
    wrong = (sigma == GUESSED) & (slope <= 0)
    if wrong.any():
        names = [n for n, x in zip(arm.joint_names, wrong, strict=True) if x]
        raise InvalidValue(
            f"currents of joints {', '.join(names)}: sign = opposite to the efforts of the"
            " description; expected a positive current for a positive effort; change the sign"
        )
    return np.where(sigma == GUESSED, slope, gains), sigma


class _GainProblem:
    """Equations of currents; the ten parameters of a payload follow those of the links.

    ``start`` (nv,) are the logarithms of the gains that the efforts of ``equations`` contain.
    """

    def __init__(
        self,
        arm: ArmModel,
        equations: EffortEquations,
        start: Vector,
        sigma: Vector,
        first: int,
        payload_mass: float | None,
    ) -> None:
        nv, ideal = arm.nv, np.zeros(arm.nv, dtype=int)
        rows = equations.rows(ideal)
        own = np.arange(nv)
        speed = rms(equations.regressor[:, own, 11 * nv + own], equations.valid)
        bodies = consistent_prior(nominal_parameters(arm)[: 10 * nv].reshape(nv, 10))
        self._prior = DescriptionPrior.of(arm, rms(equations.effort, equations.valid), speed)
        self._arm_columns = np.arange(14 * nv)
        self._mass: tuple[int, float] | None = None
        if payload_mass is not None:
            link = tool_link(arm)
            more: FloatArray = np.where(
                (np.arange(len(rows)) < first)[:, None, None],
                0.0,
                rows[:, :, 10 * link : 10 * link + 10],
            )
            rows = np.concatenate((rows[:, :, : 10 * nv], more, rows[:, :, 10 * nv :]), axis=2)
            self._arm_columns[10 * nv :] += 10
            self._mass = (10 * nv, payload_mass)
            body = payload_ball(arm, payload_mass)
            self._prior = self._prior.with_bodies(np.vstack((bodies, body)))
        self._rows, self._effort = rows, equations.effort
        self._counted = equations.counted(ideal)
        self._start, self._sigma = start, sigma
        self._set_moments(self._counted / np.maximum(rms(self._effort, self._counted), 1e-9) ** 2)

    def estimate(self) -> tuple[Vector, Vector]:
        """Return parameters and logarithms of the gains; renew the weights."""
        x, logs = self._prior.start, np.zeros(self._sigma.size)
        for _ in range(TURNS):
            x, logs = self._minimum(x, logs)
            residual = self._effort - np.exp(-logs) * (self._rows @ x)
            self._set_moments(robust_weights(residual, self._counted)[1])
        return self._minimum(x, logs)

    def covariance(self, x: Vector, logs: Vector) -> tuple[Matrix, Matrix]:
        """Return the covariance (nv, nv) of the logarithms, and ∂π/∂l (14 nv, nv)."""
        _, _, hessian = self._terms(x, logs)
        p = x.size
        inverse = positive_inverse(hessian[:p, :p])
        slopes = -inverse @ hessian[:p, p:]
        reduced = hessian[p:, p:] + hessian[p:, :p] @ slopes
        return positive_inverse(reduced), slopes[self._arm_columns]

    def _set_moments(self, weights: Matrix) -> None:
        weighted = self._rows * weights[..., None]
        self._squares = np.einsum("nip,niq->ipq", weighted, self._rows, optimize=True)
        self._products = np.einsum("nip,ni->ip", weighted, self._effort)

    def _minimum(self, x: Vector, logs: Vector) -> tuple[Vector, Vector]:
        """Return the minimizer by damped Gauss-Newton steps."""
        p = x.size
        cost, gradient, hessian = self._terms(x, logs)
        for _ in range(NEWTON_STEPS):
            root = 1 / np.sqrt(np.diag(hessian))
            scaled = hessian * root * root[:, None]
            scaled[np.diag_indices_from(scaled)] += JITTER
            step = -root * scipy.linalg.solve(scaled, root * gradient, assume_a="pos")
            decrement, length = float(-gradient @ step), 1.0
            if decrement < NEWTON_TOLERANCE:
                break
            while length > SHORTEST:
                new = x + length * step[:p], logs + length * step[p:]
                after, *slopes = self._terms(*new)
                if after < cost - 0.1 * length * decrement:
                    break
                length /= 2
            else:
                break
            (x, logs), cost, (gradient, hessian) = new, after, slopes
        return x, logs

    def _terms(self, x: Vector, logs: Vector) -> tuple[float, Vector, Matrix]:
        """Return value, gradient and Gauss-Newton Hessian of the function by (π, l)."""
        p, c = x.size, np.exp(-logs)
        value = self._prior.divergence(x)
        hessian = np.zeros((p + logs.size, p + logs.size))
        if not np.isfinite(value):
            return np.inf, np.zeros(p + logs.size), hessian
        slope, curvature = self._prior.slopes(x)
        if self._mass is not None:
            k, mass = self._mass
            stiffness = 1 / (MASS_TOLERANCE * mass) ** 2
            value += 0.5 * stiffness * (x[k] - mass) ** 2
            slope[k] += stiffness * (x[k] - mass)
            curvature[k, k] += stiffness
        pulled = self._squares @ x
        quadratic, linear = pulled @ x, self._products @ x
        away = (self._start + logs) / self._sigma
        value += float(np.sum(0.5 * c**2 * quadratic - c * linear + 0.5 * away**2))
        gradient = np.concatenate(
            (
                slope + c**2 @ pulled - c @ self._products,
                c * linear - c**2 * quadratic + away / self._sigma,
            )
        )
        hessian[:p, :p] = curvature + np.einsum("i,ipq->pq", c**2, self._squares)
        hessian[:p, p:] = -(c[:, None] ** 2 * pulled).T
        hessian[p:, :p] = hessian[:p, p:].T
        hessian[p:, p:] = np.diag(c**2 * quadratic + self._sigma**-2)
        return value, gradient, hessian
