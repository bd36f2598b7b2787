"""Iterative linear-quadratic regulator (iLQR): the gradient-based method."""

from __future__ import annotations

import numpy as np

from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.knots import KnotSpline
from arm_dynamics.batch.planning.local_model import LocalModel
from arm_dynamics.batch.planning.planning_kernel import BLOCK, PlanningKernel
from arm_dynamics.batch.planning.planning_method import PlanningMethod
from arm_dynamics.core.arrays import Vector, as_readonly, check_int
from arm_dynamics.core.errors import InvalidValue

STEP_SIZES = np.array([0.0, *0.8 ** np.arange(BLOCK - 1)])
"""α of the line search: the rollouts of one block, 0 to keep the motion."""
RETRY_DAMPING = 25.0
"""Factor of the damping after a step that no step size improves."""


class Ilqr(PlanningMethod):
    """Newton steps with the dynamics linearized: δu_k = α d_k + K_k (x_k - x).

    All step sizes α of a line search are predicted together, and the best one is followed.

    Parameters
    ----------
    iterations : int
        Newton steps per plan.
    noise : float or (nv,) array
        Standard deviation of the first inputs: a motion along which the gradient is 0, such as an
        arm that hangs, is left.
    seed : int
        Seed of these inputs.

    Raises
    ------
    InvalidValue
        For a value out of its range.

    References
    ----------
    Y. Tassa, T. Erez, E. Todorov, Synthesis and stabilization of complex behaviors through online
    trajectory optimization, IROS 2012, section II.

    """

    samples = BLOCK
    needs_model = True

    def __init__(self, iterations: int = 1, *, noise: float | Vector = 0.0, seed: int = 0) -> None:
        self.iterations = check_int("iterations", iterations, lower=1)
        self.noise, self.seed = np.array(as_readonly(noise)), check_int("seed", seed, lower=0)
        if self.noise.ndim > 1 or not (np.isfinite(self.noise) & (self.noise >= 0)).all():
            raise InvalidValue(f"noise = {noise}; expected numbers of at least 0")

    def spline(self, horizon: Horizon) -> KnotSpline:
        """Return a spline with one knot per period."""
        return KnotSpline("zero_order", horizon.free_periods)

    def start(self, kernel: PlanningKernel, bound: Vector, model: LocalModel | None) -> None:
        """As ``PlanningMethod.start``; raises InvalidValue without a model, or for the noise."""
        if model is None:
            raise InvalidValue("iLQR: local model = None; expected the second-order model")
        if self.noise.ndim and self.noise.size != bound.size:
            raise InvalidValue(
                f"noise: size = {self.noise.size}; expected one number or {bound.size}"
            )
        self._kernel, self._model = kernel, model
        inputs = self.noise * np.random.default_rng(self.seed).normal(size=kernel.inputs.shape)
        kernel.inputs[:] = np.clip(inputs, -bound, bound)

    def improve(self) -> float:
        """Take the steps; return the cost of the nominal motion."""
        kernel, cost = self._kernel, np.inf
        changes = kernel.knots[0, : len(kernel.inputs)]
        for iteration in range(self.iterations):
            if iteration:
                self._model.update(kernel)
            changes[:] = STEP_SIZES * self._model.steps[:, :, None]
            best = int(np.argmin(kernel.costs(record=True)))
            cost = kernel.follow(best)
            if best == 0:  # no step lowers the cost: a shorter one next time
                self._model.change_damping(RETRY_DAMPING)
        return cost
