"""Minimization problem of drive gains and dynamic parameters.

References
----------
M. Gautier, S. Briot, Global identification of joint drive gains and dynamic parameters of robots,
J. Dynamic Systems, Measurement, and Control 136 (2014), section 3.

"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector
from arm_dynamics.identification.consistent_least_squares import (
    damped_newton,
    positive_inverse,
    rms,
)
from arm_dynamics.identification.effort_equations import EffortEquations, description_prior
from arm_dynamics.identification.payload_body import payload_ball, tool_link
from arm_dynamics.identification.torque_problem import robust_weights
from arm_dynamics.model.arm_model import ArmModel

MASS_TOLERANCE = 2e-3
"""Standard deviation of a known payload mass, relative."""
TURNS = 5
"""Estimates with renewed robust weights."""


class DriveGainProblem:
    """½ Σ w (τ - e^(-l) W π)² + d(π ‖ π₀) + ½ Σ ((l₀ + l) / σ)² over z = (π, l).

    The efforts τ contain the gains K₀ e^(l₀). The ten parameters of a payload follow those of the
    links in π; its mass adds ½ ((m - m_p) / (m_p MASS_TOLERANCE))².

    Parameters
    ----------
    arm : ArmModel
        The arm of the description.
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
        prior = description_prior(arm, equations)
        rows, self._arm_columns = equations.rows(ideal), np.arange(14 * nv)
        if payload_mass is not None:
            links, terms = np.split(rows, [10 * nv], axis=2)
            link = 10 * tool_link(arm)
            payload = np.where(carrying[:, None, None], links[:, :, link : link + 10], 0.0)
            rows = np.concatenate((links, payload, terms), axis=2)
            self._arm_columns[10 * nv :] += 10
            bodies = prior.start[: 10 * nv].reshape(nv, 10)
            prior = prior.with_bodies(np.vstack((bodies, payload_ball(arm, payload_mass))))
        self._prior, self._mass, self._mass_column = prior, payload_mass, 10 * nv
        self._rows, self._effort, self._counted = rows, equations.effort, equations.counted(ideal)
        self._start, self._sigma = start, sigma
        self._z = np.concatenate((prior.start, np.zeros(nv)))
        self._set_moments(self._counted / np.maximum(rms(self._effort, self._counted), 1e-9) ** 2)

    def minimize(self) -> Vector:
        """Return l (nv,) of the minimum; renew the robust weights."""
        for _ in range(TURNS):
            self._z = damped_newton(self.cost, self.slopes, self._z)
            x, logs = self._split(self._z)
            residual = self._effort - np.exp(-logs) * (self._rows @ x)
            self._set_moments(robust_weights(residual, self._counted)[1])
        self._z = damped_newton(self.cost, self.slopes, self._z)
        return self._split(self._z)[1]

    def covariance(self) -> tuple[Matrix, Matrix]:
        """Return the covariance (nv, nv) of l, and ∂π/∂l (14 nv, nv), at the minimum."""
        p, (_, hessian) = self._prior.start.size, self.slopes(self._z)
        slopes = -positive_inverse(hessian[:p, :p]) @ hessian[:p, p:]
        prior = np.diag(self._sigma**-2)
        information = hessian[p:, p:] - prior + hessian[p:, :p] @ slopes
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        information = (vectors * np.maximum(values, 0.0)) @ vectors.T  # without rounding errors
        return positive_inverse(information + prior), slopes[self._arm_columns]

    def cost(self, z: Vector) -> float:
        """Return the value of the function; infinite outside the domain of π."""
        x, logs = self._split(z)
        c, away = np.exp(-logs), (self._start + logs) / self._sigma
        value = self._prior.divergence(x)
        if self._mass is not None:
            deviation = MASS_TOLERANCE * self._mass
            value += 0.5 * ((x[self._mass_column] - self._mass) / deviation) ** 2
        fit = 0.5 * c**2 * (self._squares @ x @ x) - c * (self._products @ x)
        return float(value + np.sum(fit + 0.5 * away**2))

    def slopes(self, z: Vector) -> tuple[Vector, Matrix]:
        """Return gradient (p + nv,) and Gauss-Newton Hessian within the domain."""
        x, logs = self._split(z)
        p, c, away = x.size, np.exp(-logs), (self._start + logs) / self._sigma
        pulled, linear = self._squares @ x, self._products @ x
        quadratic = pulled @ x
        slope, curvature = self._prior.slopes(x)
        if self._mass is not None:
            k, stiffness = self._mass_column, 1 / (MASS_TOLERANCE * self._mass) ** 2
            slope[k] += stiffness * (x[k] - self._mass)
            curvature[k, k] += stiffness
        gradient = np.concatenate(
            (
                slope + c**2 @ pulled - c @ self._products,
                c * linear - c**2 * quadratic + away / self._sigma,
            )
        )
        mixed = -(c[:, None] ** 2 * pulled)
        hessian = np.zeros((z.size, z.size))
        hessian[:p, :p] = curvature + np.einsum("i,ipq->pq", c**2, self._squares)
        hessian[:p, p:], hessian[p:, :p] = mixed.T, mixed
        hessian[p:, p:] = np.diag(c**2 * quadratic + self._sigma**-2)
        return gradient, hessian

    def _split(self, z: Vector) -> tuple[Vector, Vector]:
        """Return π (p,) and l (nv,)."""
        return z[: self._prior.start.size], z[self._prior.start.size :]

    def _set_moments(self, weights: Matrix) -> None:
        """Set Σ w WᵀW (nv, p, p) and Σ w Wᵀτ (nv, p)."""
        weighted = self._rows * weights[..., None]
        self._squares = np.einsum("nip,niq->ipq", weighted, self._rows, optimize=True)
        self._products = np.einsum("nip,ni->ip", weighted, self._effort)
