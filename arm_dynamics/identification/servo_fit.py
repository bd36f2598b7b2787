"""Fit of the unknowns of an arm with servos to recorded positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.consistent_least_squares import (
    HUBER,
    positive_inverse,
    robust_scale,
)
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.output_error import OutputError, Residuals, differences
from arm_dynamics.identification.servo_simulation import ServoSimulation
from arm_dynamics.identification.servo_variation import DELAY, TOLERANCES, ServoVariation
from arm_dynamics.identification.torque_problem import correlation_time

WINDOW_TIME, LEAST_TIME = 20.0, 2.0
"""Longest and shortest time [s] of one simulation."""
SETTLING_TIME = 0.3
"""Time [s] at the start of a simulation that does not count: its velocity is uncertain."""
SAMPLE_PERIOD = 0.01
"""Time [s] between samples that count; recordings with fewer samples count whole."""
GAIN_FACTORS = tuple(2.0**k for k in range(-3, 4))
FIRST_DELAYS = (0.0, 0.02, 0.05, 0.1)
"""Common factors of the loop gains, and delays [s], from which the fit starts."""
LEAST_SCALE = 2e-4
"""Smallest residual σ_i [rad or m] with which a joint is weighted."""
UNDETERMINED = 0.5
"""Deviation over that of the prior above which a quantity counts as left to the description."""
TURNS, STEPS = 2, 10
"""Estimates with renewed weights, and their Levenberg-Marquardt steps."""
BLOCK_TIME = 1.0
"""Duration [s] of the blocks whose gradients count as independent."""
DIFFERENCE = 5e-2
"""Change of θ for derivatives."""
AXES_TURNS, LEAST_STEP = 2, 1e-2
"""Sensitivities with renewed principal axes, and their smallest change of θ."""
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


def servo_windows(motions: Sequence[MotionData], longest: float = np.inf) -> list[MotionData]:
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


class ServoFit:
    """Residuals of the simulated positions in some windows."""

    def __init__(self, variation: ServoVariation, windows: Sequence[MotionData]) -> None:
        self.variation = variation
        self._simulations = [
            ServoSimulation(variation.arm, variation.loops, window) for window in windows
        ]
        self._counted = [_counted(w) for w in windows]
        pairs = list(zip(windows, self._counted, strict=True))
        blocks = [(w.time[counted] - w.time[0]) // BLOCK_TIME for w, counted in pairs]
        self._block = np.concatenate([1e6 * k + own for k, own in enumerate(blocks)])
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
        """Return the minimizing θ (p,); the weights are renewed each turn."""
        for turn in range(TURNS):
            self._set_weights(self._residuals(theta[None])[0], correlated=turn > 0)
            free = self.variation.free
            theta = np.where(free, theta, 0.0)
            theta[free] = self._problem(theta).minimum(theta[free], STEPS, CONVERGED).parameters
        return theta

    def deviations(self, theta: Vector) -> tuple[Vector, float]:
        """Return standard deviations of θ (p,) and the condition number of the sensitivities.

        The covariance is C = H⁻¹, with the Hessian H of the cost, and at least C (S + I) C. S is
        the sum of g gᵀ over the blocks of the motion, g the gradient of one block: residuals that
        the model does not explain are not independent. The sensitivities are differences over one
        standard deviation along the principal axes of C: with small changes, the noise of
        simulations with dry friction would seem to determine every quantity.
        """
        residual = self._residuals(theta[None])[0]
        self._set_weights(residual, correlated=True)
        free = self.variation.free
        residuals, size = self._free_residuals(theta), int(free.sum())
        inverse = positive_inverse(self._problem(theta).hessian(theta[free]))
        for _ in range(AXES_TURNS):
            length, axes = np.linalg.eigh(inverse)
            steps = (axes * np.sqrt(np.maximum(length, LEAST_STEP**2))).T
            ends = residuals(np.concatenate((theta[free] + steps, theta[free] - steps)))
            rows = np.nan_to_num((ends[:size] - ends[size:]).reshape(size, -1)) / 2
            squares = (rows * self._weights.reshape(-1)) @ rows.T
            inverse = steps.T @ positive_inverse(squares + steps @ steps.T) @ steps
        back = np.linalg.inv(steps)  # from axes to θ
        hessian = np.eye(theta.size)
        hessian[np.ix_(free, free)] += back @ squares @ back.T
        each = (back @ rows).reshape(size, *residual.shape) * (self._weights * residual)
        first = np.flatnonzero(np.diff(self._block, prepend=-1.0))
        scores = inverse @ np.add.reduceat(each.sum(axis=2), first, axis=1)
        few = len(first) / max(len(first) - 1, 1)
        wider = few * np.sum(scores**2, axis=1) + np.sum(inverse**2, axis=1)
        wider = np.sqrt(np.maximum(1.0, wider / np.diag(inverse)))
        self.covariance = np.eye(theta.size)
        self.covariance[np.ix_(free, free)] = inverse * wider * wider[:, None]
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

    def _problem(self, theta: Vector) -> OutputError:
        """Return the output error by the free ones of θ (p,), with θ ~ N(0, 1)."""
        residuals, free = self._free_residuals(theta), self.variation.free
        size = int(free.sum())
        slopes = differences(residuals, DIFFERENCE)
        return OutputError(residuals, slopes, self._weights, np.eye(size), np.zeros(size))

    def _free_residuals(self, theta: Vector) -> Residuals:
        """Return the residuals as a function of the free ones of θ (p,)."""
        free = self.variation.free

        def residuals(points: Matrix) -> FloatArray:
            full = np.tile(theta, (len(points), 1))
            full[:, free] = points
            return self._residuals(full)

        return residuals

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
