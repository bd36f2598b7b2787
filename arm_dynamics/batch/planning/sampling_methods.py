"""Sampling-based minimization of a plan's cost: MPPI, cross-entropy and predictive sampling."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.knots import KnotSpline
from arm_dynamics.batch.planning.local_model import LocalModel
from arm_dynamics.batch.planning.planning_kernel import BLOCK, PlanningKernel
from arm_dynamics.batch.planning.planning_method import PlanningMethod
from arm_dynamics.core.arrays import (
    FloatArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
)
from arm_dynamics.core.errors import InvalidValue


class SamplingMethod(PlanningMethod):
    """Changes of the nominal inputs are splines of random knots about a mean.

    Sample 0 is the mean, sample 1 the best sequence of the update before (elite reuse). The others
    are pairs mean ± σ C ε with ε ~ N(0, 1) and a matrix C (knots, knots) that gives the noise along
    a sequence the power spectrum 1/f^color.

    Parameters
    ----------
    noise : float or (nv,) array
        Standard deviation σ of the knots, in units of the inputs.
    samples : int
        Number of predicted motions, rounded up to a multiple of 32.
    knots : int
        Knots of a sequence.
    spline : str
        "zero_order", "linear" or "cubic".
    iterations : int
        Samplings per plan.
    color : float
        Exponent of the spectrum: 0 is white noise; 2 varies slowly.
    seed : int
        Equal seeds give equal plans.

    Raises
    ------
    InvalidValue, UnknownName
        For a value out of its range.

    References
    ----------
    C. Pinneri et al., Sample-efficient cross-entropy method for real-time planning, CoRL 2020,
    section 3.1 (colored noise), 3.3 (elites).

    """

    def __init__(
        self,
        noise: float | Vector,
        *,
        samples: int = 256,
        knots: int = 8,
        spline: str = "cubic",
        iterations: int = 1,
        color: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.noise = np.array(as_readonly(noise))
        if self.noise.ndim > 1 or not (np.isfinite(self.noise) & (self.noise > 0)).all():
            raise InvalidValue(f"noise = {noise}; expected numbers above 0, one or one per joint")
        self.samples = check_int("samples", samples, lower=1)
        self.curve = KnotSpline(spline, knots)
        self.iterations = check_int("iterations", iterations, lower=1)
        self.color = check_float("color", color, lower=0, upper=4)
        self.seed = check_int("seed", seed, lower=0)

    def spline(self, horizon: Horizon) -> KnotSpline:
        """Return the spline of the knots; raises InvalidValue for more knots than periods."""
        if self.curve.knots > horizon.free_periods:
            raise InvalidValue(
                f"knots = {self.curve.knots}; expected at most the {horizon.free_periods} periods"
                " that can still change"
            )
        return self.curve

    def start(self, kernel: PlanningKernel, bound: Vector, model: LocalModel | None) -> None:
        """Begin without a past; raises InvalidValue for noise of another number of joints."""
        del model
        nv, knots = bound.size, kernel.knots
        if self.noise.ndim and self.noise.size != nv:
            raise InvalidValue(f"noise: size = {self.noise.size}; expected one number or {nv}")
        shape = self.curve.knots, nv
        self.deviation = np.broadcast_to(self.noise, shape).copy()
        self.best: Matrix | None = None
        self._kernel, self._random = kernel, np.random.default_rng(self.seed)
        self._white = np.empty((len(knots), *shape, BLOCK // 2), knots.dtype)
        self._coloring = _coloring(shape[0], self.color).astype(knots.dtype)
        self._weights = np.empty((len(knots), BLOCK), knots.dtype)

    def shift(self, periods: float) -> None:
        """Move the best sequence by a number of periods."""
        if self.best is not None:
            length = max(len(self._kernel.inputs) - 1, 1)
            ends = np.linspace(0, 1, len(self.best), endpoint=self.curve.kind != "zero_order")
            self.best = self.curve.matrix(ends + periods / length) @ self.best

    def improve(self) -> float:
        """Sample, and follow the mean, or the best sample if its cost is less; return the cost.

        The cost is at most that of every sample; infinity: no sample has a finite one.
        """
        kernel, cost, mean = self._kernel, np.inf, np.zeros_like(self.deviation)
        for _ in range(self.iterations):
            self._sample()
            costs = kernel.costs()
            least = int(np.argmin(costs))
            if not np.isfinite(costs[least]):
                continue
            self.best = self._sequences()[least // BLOCK, :, :, least % BLOCK].astype(float)
            mean = self._mean(costs)
            candidates = np.stack([mean, self.best], axis=-1)
            self._sequences()[0, :, :, :2] = candidates
            cost, followed = kernel.follow_first(2)
            mean = candidates[..., followed]
            self.best -= mean
        return cost

    def _sample(self) -> None:
        """Write the knots of all samples: the second half of a block has the opposite noise."""
        samples, noise = self._sequences()[..., : BLOCK // 2], self._white
        self._random.standard_normal(dtype=noise.dtype, out=noise)
        if self.color:
            np.einsum("ij,bjkl->bikl", self._coloring, noise, out=samples)
        else:
            samples[...] = noise
        samples *= self.deviation.astype(noise.dtype)[..., None]
        self._sequences()[..., BLOCK // 2 :] = -samples
        samples[0, :, :, 0] = 0.0
        if self.best is not None:
            samples[0, :, :, 1] = self.best

    @abstractmethod
    def _mean(self, costs: Vector) -> Matrix:
        """Return the mean of the knots (knots, nv) for the costs (samples,), some finite."""

    def _sequences(self) -> FloatArray:
        return self._kernel.knots[:, : self.curve.knots]


class Mppi(SamplingMethod):
    """Model-predictive path integral control: δ = Σ w_i δ_i, w_i ∝ exp(-(S_i - S_min)/λ).

    λ = ``temperature`` times the median of the finite S_i - S_min, so that the temperature has no
    unit.

    Parameters
    ----------
    noise, **options
        As ``SamplingMethod``.
    temperature : float
        Small: the best samples only; large: the mean of all.

    References
    ----------
    G. Williams et al., Information theoretic MPC for model-based reinforcement learning, ICRA 2017,
    algorithm 2.

    """

    def __init__(self, noise: float | Vector, *, temperature: float = 0.1, **options: Any) -> None:
        super().__init__(noise, **options)
        self.temperature = check_float("temperature", temperature, above=0)

    def _mean(self, costs: Vector) -> Matrix:
        excess = np.subtract(costs, costs.min(), dtype=float)
        spread = max(float(np.median(excess[np.isfinite(excess)])), np.finfo(float).tiny)
        weights = np.exp(-excess / (self.temperature * spread))
        self._weights[:] = (weights / weights.sum()).reshape(self._weights.shape)
        mean: Matrix = np.einsum("bkjl,bl->kj", self._sequences(), self._weights).astype(float)
        return mean


class CrossEntropy(SamplingMethod):
    """Cross-entropy method: mean and deviation are those of the best samples.

    σ² ← (1 - α) σ² + α σ_elite² within [floor², 1] σ_0², σ_0 = ``noise``; at each shift it grows
    towards σ_0 by the fraction ``inflation``.

    Parameters
    ----------
    noise, **options
        As ``SamplingMethod``.
    elites : float
        Fraction of samples that are kept.
    adaptation : float
        α.
    floor : float
        Smallest deviation relative to ``noise``.
    inflation : float
        Fraction of σ_0 - σ that is added at each shift.

    References
    ----------
    R. Rubinstein, D. Kroese, The Cross-Entropy Method (2004), section 5.1.

    """

    def __init__(
        self,
        noise: float | Vector,
        *,
        elites: float = 0.05,
        adaptation: float = 0.7,
        floor: float = 0.05,
        inflation: float = 0.2,
        **options: Any,
    ) -> None:
        super().__init__(noise, **options)
        self.elites = check_float("elites", elites, above=0, upper=1)
        self.adaptation = check_float("adaptation", adaptation, above=0, upper=1)
        self.floor = check_float("floor", floor, above=0, upper=1)
        self.inflation = check_float("inflation", inflation, lower=0, upper=1)

    def shift(self, periods: float) -> None:
        """As ``SamplingMethod.shift``; the deviation grows again."""
        super().shift(periods)
        self.deviation += self.inflation * (self.noise - self.deviation)

    def _mean(self, costs: Vector) -> Matrix:
        count = min(max(2, round(self.elites * costs.size)), int(np.isfinite(costs).sum()))
        best = np.argpartition(costs, count - 1)[:count]
        elite = self._sequences()[best // BLOCK, :, :, best % BLOCK].astype(float)
        variance = (1 - self.adaptation) * self.deviation**2 + self.adaptation * elite.var(axis=0)
        self.deviation = np.clip(np.sqrt(variance), self.floor * self.noise, self.noise)
        mean: Matrix = elite.mean(axis=0)
        return mean


class PredictiveSampling(SamplingMethod):
    """Predictive sampling: the best sample is followed.

    References
    ----------
    T. Howell et al., Predictive sampling: real-time behaviour synthesis with MuJoCo,
    arXiv 2212.00541, algorithm 1.

    """

    def _mean(self, costs: Vector) -> Matrix:
        assert self.best is not None
        mean: Matrix = self.best.copy()
        return mean


def _coloring(count: int, exponent: float) -> Matrix:
    """Return C (count, count): entries of C ε have variance 1 and the spectrum 1/f^exponent."""
    frequencies = np.fft.rfftfreq(2 * count)  # half of a periodic sequence has free ends
    amplitude = np.maximum(frequencies, frequencies[1]) ** (-0.5 * exponent)
    correlation = np.fft.irfft(amplitude**2)[:count]
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    values, vectors = np.linalg.eigh(correlation[lags] / correlation[0])
    coloring: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return coloring
