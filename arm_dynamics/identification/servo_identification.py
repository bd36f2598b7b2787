"""Identification of an arm of position servos from positions and target positions alone.

The servos' position loops, motors, gears, friction and bodies are simulated along the recorded
targets (``ServoSimulation``). The parameters minimize the difference to the recorded positions:

½ Σ ((q - q_sim(θ)) / σ_i)² / c + ½ |θ|²

θ are relative deviations from the description (``ServoVariation``), σ_i is the residual of joint i,
c the correlation time of the residuals in samples. Friction, losses and a payload that the
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
from itertools import pairwise

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.consistent_least_squares import (
    HUBER,
    positive_inverse,
    robust_scale,
)
from arm_dynamics.identification.dynamic_parameters import nominal_parameters
from arm_dynamics.identification.fit_report import FitSummary, JointFit, ParameterFit
from arm_dynamics.identification.motion_checks import check_targets, require_speeds
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.position_loops import servo_loops
from arm_dynamics.identification.servo_simulation import ServoSimulation
from arm_dynamics.identification.servo_variation import (
    DELAY,
    TOLERANCES,
    ServoVariation,
)
from arm_dynamics.identification.torque_fit import correlation_time
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

HELD_OUT = 0.3
"""Part at the end of each recording that checks the result."""
WINDOW_TIME, LEAST_TIME = 20.0, 2.0
"""Longest and shortest time [s] of one simulation."""
FITTED_TIME = 120.0
"""Longest time [s] that is fitted; the windows are distributed over all recordings."""
SETTLING_TIME = 0.3
"""Time [s] at the start of a simulation that does not count: its velocity is uncertain."""
SAMPLE_PERIOD = 0.01
"""Time [s] between samples that count; recordings with fewer samples count whole."""
GAIN_FACTORS = tuple(2.0**k for k in range(-3, 4))
FIRST_DELAYS = (0.0, 0.02, 0.05, 0.1)
"""Common factors of the loop gains, and delays [s], from which the fit starts."""
DELAYS = tuple(0.002 * k for k in range(75))
"""Delays [s] that are compared for a model without unknowns."""
LEAST_SCALE = 2e-4
"""Smallest residual σ_i [rad or m] with which a joint is weighted."""
UNDETERMINED = 0.5
"""Deviation over that of the prior above which a quantity counts as left to the description."""
TURNS, STEPS = 2, 10
"""Estimates with renewed weights, and their Gauss-Newton steps."""
DIFFERENCE = 1e-2
"""Change of θ for derivatives."""
CONVERGED = 1e-3
"""Decrease of the cost below which a turn ends."""


@dataclass(frozen=True, slots=True, eq=False)
class PositionPrediction:
    """Simulated positions along recorded targets.

    ``time`` (n,) [s]; ``measured`` and ``predicted`` (n, nv) [rad or m].
    """

    time: Vector
    measured: Matrix
    predicted: Matrix

    @property
    def rms(self) -> Vector:
        """RMS of measured minus predicted positions (nv,) [rad or m]."""
        found: Vector = np.sqrt(np.mean((self.measured - self.predicted) ** 2, axis=0))
        return found

    @property
    def relative_error(self) -> Vector:
        """``rms`` over the standard deviation of the measured positions (nv,)."""
        spread: Vector = np.maximum(self.measured.std(axis=0), 1e-12)
        return self.rms / spread


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
        For motions without targets, with targets that are not those of the joints, too short, or
        with one speed only.
    ConfigError, UnknownName
        As ``servo_loops``.

    """
    if not motions:
        raise InvalidValue("motions = 0; expected at least one recording")
    checks = list(held_out)
    for motion in (*motions, *checks):
        check_targets(motion)
    variation = ServoVariation.of(arm, servo_loops(arm, servos))
    if not checks:
        ends = [round((1 - HELD_OUT) * len(motion.time)) for motion in motions]
        checks = [m.part(slice(k, None), "end") for m, k in zip(motions, ends, strict=True)]
        motions = [m.part(slice(k), "begin") for m, k in zip(motions, ends, strict=True)]
    require_speeds(motions)
    windows, time = _windows(motions, FITTED_TIME), sum(float(np.ptp(m.time)) for m in motions)
    only_gain = np.array([name.endswith(("loop_gain", "delay")) for name in variation.names])
    described = variation.with_free(only_gain)
    first = _Problem(described, windows).first_guess()
    problem = _Problem(variation, windows)
    theta = problem.minimum(first)
    deviation, condition = problem.deviations(theta)
    invented = variation.is_typical & (deviation > UNDETERMINED)
    if invented.any():
        problem = _Problem(variation.with_free(~invented), windows)
        theta = problem.minimum(np.where(invented, 0.0, theta))
        deviation, condition = problem.deviations(theta)
    found, tests = problem.variation, _windows(checks)
    identified = found.arm_of(theta)
    factor = float(np.exp(first[0] * TOLERANCES["loop_gain"]))
    fitted = sum(float(np.ptp(w.time)) for w in windows)
    notes = [note for motion in motions for note in motion.notes]
    notes += [
        f"before: values of the description, {factor:g} times the loop gains of the factory, delay"
        f" {1e3 * DELAY * first[-1]:.0f} ms",
        f"simulated: {fitted:.0f} s of {time:.0f} s in {len(windows)} windows; condition number of"
        f" the sensitivities = {condition:.3g}",
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
        _Problem(described, tests).prediction(first),
        _Problem(found, tests).prediction(theta),
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
    problem = _Problem(variation.with_free(nothing), _windows([motion]))
    return problem.prediction(problem.first_guess((1.0,), DELAYS))


def _windows(motions: Sequence[MotionData], longest: float = np.inf) -> list[MotionData]:
    """Return the windows of all motions, at most ``longest`` [s] together; raises InvalidValue."""
    found = []
    for motion in motions:
        for segment in motion.segments():
            span = float(np.ptp(segment.time))
            count = max(1, int(np.ceil(span / WINDOW_TIME)))
            if span < LEAST_TIME:
                continue
            edges = np.linspace(0, len(segment.time), count + 1).astype(int).tolist()
            found += [segment.part(slice(a, b)) for a, b in pairwise(edges)]
    if not found:
        spans = ", ".join(f"{motion.source} {np.ptp(motion.time):.3g} s" for motion in motions)
        raise InvalidValue(
            f"recorded time = {spans}; expected at least {LEAST_TIME:g} s without a gap; record a"
            " longer motion"
        )
    total = sum(float(np.ptp(window.time)) for window in found)
    used = min(len(found), max(1, int(len(found) * longest / total))) if total > longest else None
    return found if used is None else [found[k * len(found) // used] for k in range(used)]


class _Problem:
    """Residuals of the simulated positions in some windows."""

    def __init__(self, variation: ServoVariation, windows: Sequence[MotionData]) -> None:
        self.variation = variation
        self._simulations = [
            ServoSimulation(variation.arm, variation.loops, window) for window in windows
        ]
        self._counted = [_counted(w) for w in windows]
        pairs = list(zip(windows, self._counted, strict=True))
        self._measured = np.concatenate([w.q[counted] for w, counted in pairs])
        self._time = np.concatenate([w.time[counted] for w, counted in pairs])
        self._weights = np.ones_like(self._measured)
        self.covariance: Matrix = np.eye(len(variation.names))

    def prediction(self, theta: Vector) -> PositionPrediction:
        """Return the positions of θ (p,)."""
        (predicted,) = self._predicted(theta[None])
        step = np.diff(self._time)
        step[step <= 0] = np.median(step)  # one window after the other
        time = np.concatenate(([0.0], np.cumsum(step)))
        return PositionPrediction(*map(as_readonly, (time, self._measured, predicted)))

    def first_guess(
        self, factors: Sequence[float] = GAIN_FACTORS, delays: Sequence[float] = FIRST_DELAYS
    ) -> Vector:
        """Return θ (p,) with the best common factor of the loop gains and delay [s]."""
        names = self.variation.names
        gains = np.array([name.endswith("loop_gain") for name in names])
        candidates = np.array(
            [
                np.append(gains[:-1] * np.log(factor) / TOLERANCES["loop_gain"], delay / DELAY)
                for factor in factors
                for delay in delays
            ]
        )
        errors = np.nan_to_num(self._residuals(candidates) ** 2, nan=np.inf).mean(axis=(1, 2))
        found: Vector = candidates[int(np.argmin(errors))]
        return found

    def minimum(self, theta: Vector) -> Vector:
        """Return the minimizing θ (p,): damped Gauss-Newton steps, weights renewed each turn."""
        for turn in range(TURNS):
            residual = self._residuals(theta[None])[0]
            self._set_weights(residual, correlated=turn > 0)
            cost, damping = self._cost(residual, theta), 1e-2
            for _ in range(STEPS):
                gradient, hessian = self._slopes(theta)
                tried = damping * 10.0 ** np.arange(-2, 4)
                scale = np.diag(np.diag(hessian))
                trials = np.array(
                    [theta - np.linalg.solve(hessian + x * scale, gradient) for x in tried]
                )
                costs = [
                    self._cost(r, x) for r, x in zip(self._residuals(trials), trials, strict=True)
                ]
                best = int(np.argmin(costs))
                if not costs[best] < cost:
                    damping *= 100
                    if damping > 1e6:
                        break
                    continue
                theta, before, cost = trials[best], cost, costs[best]
                damping = max(float(tried[best]), 1e-6)
                if before - cost < CONVERGED * before:
                    break
        return theta

    def deviations(self, theta: Vector) -> tuple[Vector, float]:
        """Return standard deviations of θ (p,) and the condition number of the sensitivities."""
        self._set_weights(self._residuals(theta[None])[0], correlated=True)
        _, hessian = self._slopes(theta)
        self.covariance = positive_inverse(hessian)
        deviation = np.sqrt(np.diag(self.covariance))
        own = np.flatnonzero(self.variation.free & (deviation <= UNDETERMINED))
        squares = (hessian - np.eye(theta.size))[np.ix_(own, own)]
        root = 1 / np.sqrt(np.diag(squares))
        condition = np.sqrt(np.linalg.cond(squares * root * root[:, None])) if own.size else np.nan
        return deviation, float(condition)

    def _predicted(self, theta: Matrix) -> FloatArray:
        varied, delay = self.variation.varied(theta)
        parts = [
            simulation.positions(varied, delay)[:, counted]
            for simulation, counted in zip(self._simulations, self._counted, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def _residuals(self, theta: Matrix) -> FloatArray:
        found: FloatArray = self._predicted(theta) - self._measured
        return found

    def _cost(self, residual: Matrix, theta: Vector) -> float:
        value = 0.5 * float(np.sum(self._weights * residual**2) + theta @ theta)
        return value if np.isfinite(value) else np.inf

    def _slopes(self, theta: Vector) -> tuple[Vector, Matrix]:
        """Return gradient (p,) and Gauss-Newton Hessian (p, p) of the cost."""
        free = np.flatnonzero(self.variation.free)
        shifted = theta + DIFFERENCE * np.eye(theta.size)[free]
        residuals = self._residuals(np.concatenate((theta[None], shifted)))
        slopes = np.zeros((theta.size, residuals[0].size))
        slopes[free] = ((residuals[1:] - residuals[0]) / DIFFERENCE).reshape(free.size, -1)
        slopes = np.nan_to_num(slopes, posinf=0.0, neginf=0.0)
        weighted = slopes * self._weights.reshape(-1)
        gradient = weighted @ residuals[0].reshape(-1) + theta
        return gradient, weighted @ slopes.T + np.eye(theta.size)

    def _set_weights(self, residual: Matrix, *, correlated: bool) -> None:
        """Set w / (σ² c); w is less for outliers."""
        every = np.ones(residual.shape, dtype=bool)
        scale = np.maximum(robust_scale(residual, every), LEAST_SCALE)
        relative = residual / scale
        count = correlation_time(relative) if correlated else 1.0
        self._weights = 1 / (np.maximum(1.0, np.abs(relative) / HUBER) * scale**2 * count)


def _counted(window: MotionData) -> BoolArray:
    """Return the samples (n,) that count: one per SAMPLE_PERIOD, after SETTLING_TIME."""
    found: BoolArray = window.time - window.time[0] > SETTLING_TIME
    found &= np.arange(len(found)) % max(1, int(SAMPLE_PERIOD / window.period + 0.5)) == 0
    return found


def _quantities(
    variation: ServoVariation, values: Vector, deviation: Vector
) -> tuple[ParameterFit, ...]:
    """Return the fitted quantities; the deviation of a quantity that is not free is infinite."""
    relative = 100 * variation.sigma * deviation
    relative[-1] /= max(abs(values[-1]), 1e-12)
    left = ~variation.free | (deviation > UNDETERMINED)
    relative[left] = np.inf
    rows = zip(
        variation.names, variation.units, variation.described.tolist(), values.tolist(),
        relative.tolist(), strict=True,
    )  # fmt: skip
    return tuple(ParameterFit(*row) for row in rows)


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
