"""Output error: parameters with which simulated outputs agree with measured ones.

minimize  f(x) = ½ Σ w r(x)² + ½ (x - c)ᵀ P (x - c),  r = ŷ(x) - y

The outputs ŷ are those of a simulation. One batch of simulations has the trial steps of all
dampings. Derivatives may be approximate: a step counts only if it decreases f.

References
----------
K. Madsen, H. Nielsen, O. Tingleff, Methods for non-linear least squares problems (2004), section
3.2 (Levenberg-Marquardt).

"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue

Residuals = Callable[[Matrix], FloatArray]
"""Parameters x (k, p) -> residuals r (k, n, ny); NaN where a simulation diverged."""
Jacobian = Callable[[Vector, Matrix], Matrix]
"""x (p,) and its residual r (n, ny) -> ∂r/∂x (p, n ny), 0 where a simulation diverges."""
DAMPINGS = tuple(10.0**k for k in range(-2, 4))
"""Factors of the damping that are tried together."""
STEP_OF_DAMPING = DAMPINGS[-1] / DAMPINGS[0]
FIRST_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-2, 1e-6, 1e6
"""Dampings relative to the diagonal of the Hessian."""
SMALL_DAMPING = 1.0
"""Damping below which a small step shows a minimum, with approximate derivatives too."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputErrorFit:
    """Parameters (p,) of least output error.

    ``residual`` (n, ny) are those of the parameters, ``costs`` the minimized function at the start
    and after each step, at most as large as the one before.
    """

    parameters: Vector
    residual: Matrix
    costs: Vector


class OutputError:
    """Weighted output error of a simulation, with a Gaussian prior.

    Parameters
    ----------
    residuals : Residuals
        Simulated minus measured outputs of k parameter vectors. Parameters are scaled such that
        changes of 1 are large.
    jacobian : Jacobian
        Derivatives of the residuals, see ``differences``.
    approximate : Jacobian, optional
        Cheaper derivatives, which are used until they do not lead further.
    weights : Matrix
        w (n, ny): 1 over the variance of an output, 0 for one that does not count.
    precision : Matrix
        P (p, p) of the prior.
    center : Vector
        c (p,) of the prior.

    """

    def __init__(
        self,
        residuals: Residuals,
        jacobian: Jacobian,
        weights: Matrix,
        precision: Matrix,
        center: Vector,
        approximate: Jacobian | None = None,
    ) -> None:
        self._residuals, self.weights = residuals, weights
        self._jacobian, self._approximate = jacobian, approximate
        self._precision, self._center = precision, center

    def costs(self, points: Matrix, residuals: FloatArray) -> Vector:
        """Return f (k,) of points x (k, p) with these residuals; inf where one is NaN."""
        change = points - self._center
        squares = np.einsum("kny,kny,ny->k", residuals, residuals, self.weights)
        costs = 0.5 * (squares + np.einsum("kp,pq,kq->k", change, self._precision, change))
        found: Vector = np.where(np.isfinite(costs), costs, np.inf)
        return found

    def hessian(self, x: Vector) -> Matrix:
        """Return the Gauss-Newton Hessian Σ w ∇r ∇rᵀ + P (p, p) at x (p,)."""
        rows = self._jacobian(x, self._residuals(x[None])[0])
        hessian: Matrix = (rows * self.weights.reshape(-1)) @ rows.T + self._precision
        return hessian

    def _step(
        self, rows: Matrix, x: Vector, residual: Matrix, before: float, damping: float
    ) -> tuple[Vector, Matrix, float, float]:
        """Return x (p,), residual, cost and damping after a step from cost ``before``."""
        weighted = rows * self.weights.reshape(-1)
        gradient = weighted @ residual.reshape(-1) + self._precision @ (x - self._center)
        hessian = weighted @ rows.T + self._precision
        while damping <= MAX_DAMPING:
            dampings = damping * np.array(DAMPINGS)
            trials: Matrix = x - np.array([_damped_step(hessian, gradient, d) for d in dampings])
            residuals = self._residuals(trials)
            costs = self.costs(trials, residuals)
            best = int(np.argmin(costs))
            if costs[best] < before:
                damping = max(float(dampings[best]), MIN_DAMPING)
                return trials[best], residuals[best], float(costs[best]), damping
            damping *= STEP_OF_DAMPING
        return x, residual, before, damping

    @with_one_blas_thread
    def minimum(self, start: Vector, iterations: int, tolerance: float) -> OutputErrorFit:
        """Return the minimizing parameters by the Levenberg-Marquardt method.

        Parameters
        ----------
        start : Vector
            First parameters (p,).
        iterations : int
            Largest number of Jacobians.
        tolerance : float
            Relative decrease of f below which the iteration ends.

        Returns
        -------
        OutputErrorFit
            The parameters, their residual and the costs of the iterations.

        Raises
        ------
        InvalidValue
            For a simulation that diverges at ``start``.

        """
        x, residual = start, self._residuals(start[None])[0]
        costs = [float(self.costs(x[None], residual[None])[0])]
        if not np.isfinite(costs[0]):
            raise InvalidValue(
                "output error at the start = NaN; expected a simulation that does not diverge;"
                " start from other parameters"
            )
        damping, jacobian = FIRST_DAMPING, self._approximate or self._jacobian
        for _ in range(iterations):
            x, residual, cost, damping = self._step(
                jacobian(x, residual), x, residual, costs[-1], damping
            )
            decrease = costs[-1] - cost
            if decrease:
                costs.append(cost)
            if decrease < tolerance * costs[-1]:
                if jacobian == self._jacobian or damping < SMALL_DAMPING:
                    break
                damping, jacobian = FIRST_DAMPING, self._jacobian
        return OutputErrorFit(*(as_readonly(values) for values in (x, residual, np.array(costs))))


def differences(residuals: Residuals, change: float) -> Jacobian:
    """Return a Jacobian by differences with a change of each parameter, in one batch."""

    def jacobian(x: Vector, residual: Matrix) -> Matrix:
        moved = residuals(x + change * np.eye(x.size))
        found = ((moved - residual) / change).reshape(x.size, -1)
        return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)

    return jacobian


def _damped_step(hessian: Matrix, gradient: Vector, damping: float) -> Vector:
    """Return (H + damping diag H)⁻¹ g."""
    scaled = hessian + damping * np.diag(np.diag(hessian))
    step: Vector = np.asarray(np.linalg.solve(scaled, gradient), dtype=float)
    return step
