"""Fit of the unknowns of an arm with servos to recorded positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.output_error import OutputError
from arm_dynamics.identification.efforts.torque_problem import correlation_time
from arm_dynamics.identification.parameters.consistent_least_squares import (
    HUBER,
    positive_inverse,
    robust_scale,
)
from arm_dynamics.identification.servos.servo_simulation import ServoSimulation, samples_in
from arm_dynamics.identification.servos.servo_variation import DELAY, TOLERANCES, ServoVariation
from arm_dynamics.recording.motions.motion_data import MotionData

WINDOW_TIME, MIN_TIME = 20.0, 2.0
"""Longest and shortest time [s] of one simulation."""
HELD_TIME = 0.1
"""Longest time [s] between two samples that is simulated; the target is constant in it. Loops on
busy machines pause for some 10 ms."""
SETTLING_TIME = 0.3
"""Time [s] at the start of a simulation that does not count: its velocity is uncertain."""
SAMPLE_PERIOD = 0.01
"""Time [s] between samples that count; recordings with fewer samples count whole."""
GAIN_FACTORS = tuple(2.0**k for k in range(-3, 4))
FIRST_DELAYS = (0.0, 0.02, 0.05, 0.1)
"""Common factors of the loop gains, and delays [s], from which the fit starts."""
PAYLOAD_FACTORS, FIRST_PAYLOADS = (2**-0.5, 1.0, 2**0.5), (0.0, 0.5, 1.0, 1.5, 2.0)
"""Further factors of the loop gains, and θ of payloads, from which the fit starts."""
MIN_SCALE = 2e-4
"""Smallest residual σ_i [rad or m] with which a joint is weighted."""
UNDETERMINED = 0.5
"""Deviation over that of the prior above which a quantity is undetermined."""
TURNS, LAST_TURNS, STEPS = 4, 2, 5
"""Estimates with renewed weights, those that continue from a minimum with more unknowns, and the
Levenberg-Marquardt steps of each."""
BLOCK_TIME = 1.0
"""Duration [s] of the blocks whose gradients count as independent."""
DIFFERENCE = 5e-2
"""Change of θ for the first derivatives."""
MIN_STEP = 1e-2
"""Smallest change of θ for the derivatives along the principal axes."""
ROUGH_STEP = 0.1
"""The same for predictions of an arm with backlash: impacts of the teeth make the cost rough."""
CONTACT_ERROR = 0.1
"""Relative deviation of a backlash by the assumed contact of the teeth: with it, RMS errors over
deviations of three different contacts are 0.7 to 1.1 (docs/identification_results.md)."""
CONVERGED = 1e-4
"""Relative decrease of the cost below which a turn ends."""


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
        rms: Vector = np.sqrt(np.mean((self.measured - self.predicted) ** 2, axis=0))
        return rms

    @property
    def relative_error(self) -> Vector:
        """``rms`` over the standard deviation of the measured positions (nv,); NaN if that is 0."""
        spread = self.measured_rms
        relative_error: Vector = self.rms / np.where(spread > 0, spread, np.nan)
        return relative_error

    @property
    def measured_rms(self) -> Vector:
        """Standard deviation of the measured positions (nv,) [rad or m]; 0 without motion."""
        is_moved = np.ptp(self.measured, axis=0) > 0
        measured_rms: Vector = np.where(is_moved, self.measured.std(axis=0), 0.0)
        return measured_rms


def servo_windows(motions: Sequence[MotionData], longest: float = np.inf) -> list[MotionData]:
    """Return the windows of all motions, at most ``longest`` [s] together; raises InvalidValue."""
    found = []
    for motion in motions:
        for segment in motion.segments(HELD_TIME):
            span = float(np.ptp(segment.time))
            count = max(1, int(np.ceil(span / WINDOW_TIME)))
            if span < MIN_TIME:
                continue
            edges = np.linspace(0, len(segment.time), count + 1).astype(int).tolist()
            found += [segment.part(slice(a, b)) for a, b in pairwise(edges)]
    if not found:
        spans = ", ".join(
            f"{m.source} {np.ptp(m.time):.3g} s ({len(m.time)} samples at {1 / m.period:.4g} Hz)"
            for m in motions
        )
        raise InvalidValue(
            f"recorded time = {spans}; expected at least {MIN_TIME:g} s without a gap of"
            f" {HELD_TIME:g} s; record a longer motion, or pass another recording with --held-out"
            " (held_out=...)"
        )
    total = sum(float(np.ptp(window.time)) for window in found)
    used = min(len(found), max(1, int(len(found) * longest / total))) if total > longest else None
    return found if used is None else [found[k * len(found) // used] for k in range(used)]


class ServoFit:
    """Residuals of the simulated positions in some windows.

    They are output errors or, with the time constant ``injection`` [s] of an observer, prediction
    errors (``OutputInjection``).
    """

    def __init__(
        self,
        variation: ServoVariation,
        windows: Sequence[MotionData],
        injection: float | None = None,
    ) -> None:
        self.variation, arm = variation, variation.simulated_arm
        self._simulations = [
            ServoSimulation(arm, variation.loops, window, injection) for window in windows
        ]
        self._least_step = MIN_STEP if injection is None else ROUGH_STEP
        self._counted = [_counted(w) for w in windows]
        pairs = list(zip(windows, self._counted, strict=True))
        blocks = [(w.time[counted] - w.time[0]) // BLOCK_TIME for w, counted in pairs]
        self._block = np.concatenate([1e6 * k + own for k, own in enumerate(blocks)])
        self._measured = np.concatenate([w.q[counted] for w, counted in pairs])
        self._time = np.concatenate([w.time[counted] for w, counted in pairs])
        self._weights = np.ones_like(self._measured)
        self._steps: Matrix = DIFFERENCE * np.eye(int(variation.free.sum()))
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
        gains = self._gains[:-1]
        return self._best(
            [
                np.append(gains * np.log(factor) / TOLERANCES["loop_gain"], delay / DELAY)
                for factor in factors
                for delay in delays
            ]
        )

    def with_best_payload(self, theta: Vector) -> Vector:
        """Return θ (p,) with the best payload and common factor of its loop gains.

        Far from its payload an arm lags or falls, and the gradient leads to a wrong minimum.
        """
        heavier = np.array([name == "payload" for name in self.variation.names])
        return self._best(
            [
                np.where(heavier, payload, theta)
                + self._gains * np.log(factor) / TOLERANCES["loop_gain"]
                for factor in PAYLOAD_FACTORS
                for payload in FIRST_PAYLOADS
            ]
        )

    def minimum(self, theta: Vector, turns: int = TURNS) -> Vector:
        """Return the minimizing θ (p,); the weights are renewed each turn.

        The residuals of a wrong θ are large and correlated. Their weights are small, so that the
        first turns change only what the nominal model cannot explain.
        """
        free = self.variation.free
        theta = np.where(free, theta, 0.0)
        prior, center = np.eye(int(free.sum())), np.zeros(int(free.sum()))
        self._steps = DIFFERENCE * prior
        for _ in range(turns):
            self._set_weights(self.residuals(theta[None])[0])
            problem = OutputError(
                self._free_residuals, self._jacobian, self._weights, prior, center
            )
            theta[free] = problem.minimum(theta[free], STEPS, CONVERGED).parameters
        return theta

    def residuals(self, theta: Matrix) -> FloatArray:
        """Return simulated minus measured positions (k, n, nv) of θ (k, p) [rad or m]."""
        residuals: FloatArray = self._predicted(theta) - self._measured
        return residuals

    def block_errors(self, theta: Vector) -> Matrix:
        """Return the mean square (blocks, nv) of the residuals of θ (p,) [rad² or m²]."""
        first = np.flatnonzero(np.diff(self._block, prepend=-1.0))
        sums = np.add.reduceat(self.residuals(theta[None])[0] ** 2, first, axis=0)
        block_errors: Matrix = sums / np.diff(np.append(first, len(self._block)))[:, None]
        return block_errors

    def refitted(self, theta: Vector, residuals: FloatArray) -> tuple[Vector, Vector]:
        """Return costs (k,) of ``residuals`` (k, n, nv) after the best linear change of θ (p,).

        Also returned are the costs (k,) of their differences to the first. The residuals are
        those of similar models at θ, which have the Jacobian of this one.
        """
        x, residual = theta[self.variation.free], self.residuals(theta[None])[0]
        self._set_weights(residual)
        self._steps = DIFFERENCE * np.eye(x.size)
        rows = self._jacobian(x, residual)
        weighted = rows * self._weights.reshape(-1)
        inverse = np.linalg.inv(weighted @ rows.T + np.eye(x.size))

        def cost(flat: Matrix, x: Vector) -> Vector:
            slope = flat @ weighted.T + x
            squares = flat**2 @ self._weights.reshape(-1) + x @ x
            cost: Vector = 0.5 * (squares - np.einsum("ka,ab,kb->k", slope, inverse, slope))
            return cost

        flat = residuals.reshape(len(residuals), -1)
        return cost(flat, x), cost(flat - flat[0], 0.0 * x)

    def deviations(self, theta: Vector, earlier: Vector | None = None) -> tuple[Vector, float]:
        """Return standard deviations of the minimum and the condition number of the sensitivities.

        The covariance is C = H⁻¹, with the Hessian H of the cost, and at least C (S + I) C. S is
        the sum of g gᵀ over the blocks of the motion, g the gradient of one block: residuals that
        the model does not explain are not independent. The sensitivities are central differences
        over one standard deviation along the principal axes of C.

        The deviations (p,) do not contain the distance from θ (p,) to the minimum, which the
        iteration does not reach in a narrow curved valley of the cost. ``covariance`` contains it:
        the step C Σ g is a further error, and so is the difference to an ``earlier`` estimate.
        Every free backlash has the error ``CONTACT_ERROR`` in addition.
        """
        residual = self.residuals(theta[None])[0]
        self._set_weights(residual)
        free = self.variation.free
        size = int(free.sum())
        steps = self._steps
        rows = self._central_differences(theta[free], steps)
        squares = (rows * self._weights.reshape(-1)) @ rows.T
        inverse = self._renew_axes(squares)
        back = np.linalg.inv(steps)  # from axes to θ
        hessian = np.eye(theta.size)
        hessian[np.ix_(free, free)] += back @ squares @ back.T
        each = (back @ rows).reshape(size, *residual.shape) * (self._weights * residual)
        first = np.flatnonzero(np.diff(self._block, prepend=-1.0))
        scores = inverse @ np.add.reduceat(each.sum(axis=2), first, axis=1)
        step = scores.sum(axis=1) + inverse @ theta[free]
        variance, few = np.diag(inverse), len(first) / max(len(first) - 1, 1)
        wider = few * np.sum(scores**2, axis=1) + np.sum(inverse**2, axis=1)
        wider = np.maximum(1.0, wider / variance)
        deviation = np.ones(theta.size)
        deviation[free] = np.sqrt(wider * variance)
        change = np.zeros(size) if earlier is None else (theta - earlier)[free]
        wider = np.sqrt(wider + (step**2 + change**2) / variance)
        self.covariance = np.eye(theta.size)
        self.covariance[np.ix_(free, free)] = inverse * wider * wider[:, None]
        contact = np.where(free, CONTACT_ERROR / self.variation.sigma, 0.0)
        plays = self.variation.backlash_entries
        self.covariance[plays, plays] += contact[plays] ** 2
        determined = np.flatnonzero(free & (deviation <= UNDETERMINED))
        squares = hessian - np.eye(theta.size)
        return deviation, _condition(squares[np.ix_(determined, determined)])

    def _central_differences(self, x: Vector, steps: Matrix) -> Matrix:
        """Return the halved differences (free, n nv) of the residuals at x ± steps."""
        ends = self._free_residuals(np.concatenate((x + steps, x - steps)))
        halves: Matrix = np.nan_to_num((ends[: x.size] - ends[x.size :]).reshape(x.size, -1)) / 2
        return halves

    @property
    def _gains(self) -> Vector:
        """1 for loop gains (p,), else 0."""
        names = self.variation.names
        return np.array([float(name.endswith("loop_gain")) for name in names])

    def _best(self, candidates: Sequence[Vector]) -> Vector:
        """Return the candidate (p,) of least mean square error."""
        errors = np.nan_to_num(self.residuals(np.array(candidates)) ** 2, nan=np.inf)
        found: Vector = candidates[int(np.argmin(errors.mean(axis=(1, 2))))]
        return found

    def _predicted(self, theta: Matrix) -> FloatArray:
        varied, delay = self.variation.varied(theta)
        parts = [
            simulation.positions(varied, delay)[:, counted]
            for simulation, counted in zip(self._simulations, self._counted, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def _free_residuals(self, points: Matrix) -> FloatArray:
        """Return the residuals of the free ones (k, free) of θ; the others are 0."""
        full = np.zeros((len(points), len(self.variation.names)))
        full[:, self.variation.free] = points
        return self.residuals(full)

    def _jacobian(self, x: Vector, residual: Matrix) -> Matrix:
        """Return ∂r/∂θ (free, n nv) by differences of one standard deviation along principal axes.

        With small changes, the noise of simulations with dry friction would seem to determine
        every quantity.
        """
        steps = self._steps
        moved = (self._free_residuals(x + steps) - residual).reshape(x.size, -1)
        rows = np.nan_to_num(moved, nan=0.0, posinf=0.0, neginf=0.0)
        self._renew_axes((rows * self._weights.reshape(-1)) @ rows.T)
        jacobian: Matrix = np.linalg.inv(steps) @ rows
        return jacobian

    def _renew_axes(self, squares: Matrix) -> Matrix:
        """Return C (free, free) of the squared sensitivities to the steps; renew the steps."""
        steps = self._steps
        inverse: Matrix = steps.T @ positive_inverse(squares + steps @ steps.T) @ steps
        length, axes = np.linalg.eigh(inverse)
        self._steps = (axes * np.sqrt(np.maximum(length, self._least_step**2))).T
        return inverse

    def _set_weights(self, residual: Matrix) -> None:
        """Set w / (σ² c); w is less for outliers."""
        every = np.ones(residual.shape, dtype=bool)
        scale = np.maximum(robust_scale(residual, every), MIN_SCALE)
        relative = residual / scale
        outlier = np.maximum(1.0, np.abs(relative) / HUBER)
        self._weights = 1 / (outlier * scale**2 * correlation_time(relative))


def _condition(squares: Matrix) -> float:
    """Return the condition number of sensitivities of length 1, of their squares (k, k)."""
    if not squares.size:
        return np.nan
    root = 1 / np.sqrt(np.diag(squares))
    return float(np.sqrt(np.linalg.cond(squares * root * root[:, None])))


def _counted(window: MotionData) -> BoolArray:
    """Return the samples (n,) that count: one per SAMPLE_PERIOD, after SETTLING_TIME."""
    counted: BoolArray = window.time - window.time[0] > SETTLING_TIME
    counted &= np.arange(len(counted)) % samples_in(SAMPLE_PERIOD, window) == 0
    return counted
