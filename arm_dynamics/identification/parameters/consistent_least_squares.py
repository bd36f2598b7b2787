"""Weighted least squares with physically consistent parameters, near the nominal ones.

minimize  ½ πᵀ A π - bᵀ π + γ d(π)

A and b are the moments of weighted linear equations of the dynamic parameters π, d is their
divergence from the nominal ones. The function is convex, and finite for positive definite
pseudo-inertias, positive friction and positive rotor inertia only.

References
----------
T. Lee, P. Wensing, F. Park, Geometric robot dynamic identification, IEEE T-RO 36 (2020), section
IV.

"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    nominal_parameters,
)
from arm_dynamics.identification.parameters.pseudo_inertia import (
    LogDetDivergence,
    consistent_prior,
)
from arm_dynamics.model.arm_model import ArmModel

OFFSET_SCALE = 0.1
"""Standard deviation of the prior of an effort offset, relative to the rms effort of its joint."""
TERM_SCALE = 0.05
"""Prior of friction, and of rotor inertia times acceleration, that the nominal model lacks,
relative to the rms effort."""
HUBER = 3.0
"""Residual [σ] above which a sample counts less: outliers only."""
UNDETERMINED = 0.3
"""Deviation over that of the prior above which a parameter is undetermined."""
NEWTON_STEPS, NEWTON_TOLERANCE, MIN_STEP, JITTER = 100, 1e-8, 1e-10, 1e-13
NO_TERMS: Vector = np.zeros(0)


class NominalPrior:
    """Divergence of parameters from the nominal ones.

    Σ_links d(P ‖ P₀) + Σ_terms (x / x₀ - log(x / x₀) - 1) + Σ_offsets ½ (o / s)²

    Parameters
    ----------
    links : Matrix
        Inertial parameters π₀ (nv, 10) of consistent bodies.
    terms : Vector
        x₀ (3 nv,), above 0: rotor inertia, viscous and Coulomb friction of the joints.
    offset : Vector
        Standard deviations s (nv,) of the effort offsets [N·m].
    further : Vector
        x₀ (e,), above 0, of further terms at the end of the parameters.

    """

    def __init__(
        self, links: Matrix, terms: Vector, offset: Vector, further: Vector = NO_TERMS
    ) -> None:
        self._links, self._terms, self._offset, self._further = links, terms, offset, further
        self._first, self._divergence = links.size, LogDetDivergence(links)
        self.start: Vector = np.concatenate(
            (links.reshape(-1), terms, np.zeros(offset.size), further)
        )
        """Parameters (p,) of divergence 0."""

    def with_bodies(self, links: Matrix) -> NominalPrior:
        """Return the divergence of other bodies (nb, 10) with the same further terms."""
        return NominalPrior(links, self._terms, self._offset, self._further)

    def with_further(self, further: Vector) -> NominalPrior:
        """Return the divergence with other further terms x₀ (e,)."""
        return NominalPrior(self._links, self._terms, self._offset, further)

    @classmethod
    def of(cls, arm: ArmModel, effort: Vector, speed: Vector, acceleration: Vector) -> NominalPrior:
        """Return the divergence from ``arm``; terms that it lacks get a typical size.

        Parameters
        ----------
        arm : ArmModel
            Nominal model.
        effort, speed, acceleration : Vector
            RMS effort [N·m], velocity [rad/s] and acceleration [rad/s²] (nv,) of the measurements.

        """
        layout, nominal = ParameterLayout(arm.nv), nominal_parameters(arm)
        effort = np.maximum(effort, 1e-9)
        links = consistent_prior(layout.bodies(nominal))
        size = TERM_SCALE * effort
        typical = np.concatenate(
            (size / np.maximum(acceleration, 1e-3), size / np.maximum(speed, 1e-3), size)
        )
        terms = nominal[layout.terms]
        return cls(links, np.where(terms > 0, terms, typical), OFFSET_SCALE * effort)

    def divergence(self, parameters: Vector) -> float:
        """Return the divergence; inf outside the domain."""
        bodies, x, o = self._parts(parameters)
        if not (x > 0).all():
            return np.inf
        relative = x / self._sizes
        value = self._divergence.value(bodies) + 0.5 * float(o @ o)
        return value + float(np.sum(relative - np.log(relative) - 1))

    def derivatives(self, parameters: Vector) -> tuple[Vector, Matrix]:
        """Return gradient (p,) and Hessian (p, p) of the divergence within the domain."""
        bodies, x, o = self._parts(parameters)
        p, terms = parameters.size, self._terms.size
        gradients, hessians = self._divergence.derivatives(bodies)
        slope, curved = 1 / self._sizes - 1 / x, x**-2
        gradient = np.concatenate(
            (gradients.reshape(-1), slope[:terms], o / self._offset, slope[terms:])
        )
        hessian = np.zeros((p, p))
        for i, own in enumerate(hessians):
            hessian[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = own
        diagonal = np.arange(self._first, p)
        hessian[diagonal, diagonal] = np.concatenate(
            (curved[:terms], self._offset**-2, curved[terms:])
        )
        return gradient, hessian

    @property
    def _sizes(self) -> Vector:
        return np.concatenate((self._terms, self._further))

    def _parts(self, parameters: Vector) -> tuple[Matrix, Vector, Vector]:
        """Return bodies (nb, 10), positive terms, and offsets over their deviation."""
        first, last = self._first, parameters.size - self._further.size
        split = first + self._terms.size
        x = np.concatenate((parameters[first:split], parameters[last:]))
        return parameters[:first].reshape(-1, 10), x, parameters[split:last] / self._offset


def consistent_minimum(
    squares: Matrix,
    products: Vector,
    prior: NominalPrior,
    gamma: float,
    start: Vector,
    free: BoolArray | None = None,
) -> Vector:
    """Return the minimizer of ½ πᵀ A π - bᵀ π + γ d(π).

    Parameters
    ----------
    squares, products : Matrix, Vector
        A (p, p) and b (p,) of the weighted equations.
    prior : NominalPrior
        The divergence d.
    gamma : float
        Weight γ of the divergence, above 0.
    start : Vector
        Parameters (p,) of finite divergence.
    free : BoolArray, optional
        Parameters (p,) that change; the others are those of the prior (default: all change).

    """
    used = np.flatnonzero(np.ones(start.size, dtype=bool) if free is None else free)

    def whole(part: Vector) -> Vector:
        x: Vector = prior.start.copy()
        x[used] = part
        return x

    def cost(part: Vector) -> float:
        x = whole(part)
        return float(0.5 * x @ squares @ x - products @ x + gamma * prior.divergence(x))

    def derivatives(part: Vector) -> tuple[Vector, Matrix]:
        x = whole(part)
        slope, curvature = prior.derivatives(x)
        gradient = squares @ x - products + gamma * slope
        return gradient[used], (squares + gamma * curvature)[np.ix_(used, used)]

    return whole(damped_newton(cost, derivatives, start[used]))


def damped_newton(
    cost: Callable[[Vector], float],
    derivatives: Callable[[Vector], tuple[Vector, Matrix]],
    start: Vector,
) -> Vector:
    """Return the minimizer of a function by damped Newton steps -H⁻¹ g.

    Steps are halved until the function falls by a tenth of the decrement gᵀ H⁻¹ g. If round-off
    makes H indefinite, a multiple of its diagonal is added.

    Parameters
    ----------
    cost : callable
        Value of the function at x (p,); infinite outside its domain.
    derivatives : callable
        Gradient g (p,) and positive definite Hessian H (p, p) within the domain.
    start : Vector
        First x (p,), within the domain.

    Returns
    -------
    Vector
        x (p,) of the least value.

    References
    ----------
    S. Boyd, L. Vandenberghe, Convex Optimization (2004), section 9.5. J. Nocedal, S. Wright,
    Numerical Optimization (2006), algorithm 3.3.

    """
    x, value = start, cost(start)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = derivatives(x)
        root = 1 / np.sqrt(np.diag(hessian))
        scaled = hessian * root * root[:, None]
        step = -root * scipy.linalg.cho_solve(
            regularized_cholesky(scaled), root * gradient, check_finite=False
        )
        decrement, length = float(-gradient @ step), 1.0
        if decrement < NEWTON_TOLERANCE:
            break
        while length > MIN_STEP:
            new = x + length * step
            after = cost(new)
            if after < value - 0.1 * length * decrement:
                break
            length /= 2
        else:
            break
        x, value = new, after
    return x


def regularized_cholesky(matrix: Matrix) -> tuple[Matrix, bool]:
    """Return ``scipy.linalg.cho_factor`` of H + c I, where H (p, p) has a unit diagonal.

    c is the least of 1e-13, 1e-11 ... 0.1 for which the sum is positive definite; raises
    LinAlgError if no such c exists.
    """
    shift = JITTER
    while True:
        try:
            shifted = matrix + shift * np.eye(len(matrix))
            factor, lower = scipy.linalg.cho_factor(shifted, check_finite=False)
            return factor, bool(lower)
        except np.linalg.LinAlgError:
            if shift > 0.01:
                raise
            shift *= 100


def positive_inverse(matrix: Matrix) -> Matrix:
    """Return the inverse (p, p) of a positive definite matrix whose rows differ in size."""
    root = inverse_root(matrix)
    inverse: Matrix = root @ root.T
    return inverse


def inverse_root(matrix: Matrix) -> Matrix:
    """Return R (p, r) with R Rᵀ the inverse of a positive definite matrix of rank r."""
    size = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, axes = np.linalg.eigh(matrix * size * size[:, None])
    used = values > 1e-15 * values[-1]
    root: Matrix = size[:, None] * axes[:, used] / np.sqrt(values[used])
    return root


def rms(values: Matrix, valid: BoolArray) -> Vector:
    """Return the rms (nv,) of valid ``values`` (n, nv)."""
    rms: Vector = np.sqrt(np.sum(valid * values**2, axis=0) / np.maximum(valid.sum(axis=0), 1))
    return rms


def robust_scale(residual: Matrix, valid: BoolArray) -> Vector:
    """Return the standard deviation (nv,) of residuals (n, nv) without outliers."""
    size = np.where(valid | ~valid.any(axis=0), np.abs(residual), np.nan)
    median = 1.4826 * np.nanmedian(size, axis=0)
    inside = valid & (np.abs(residual) < 3 * HUBER * np.maximum(median, 1e-9))
    return np.maximum(rms(residual, inside), 1e-9)
