"""Pseudo-inertia of a body: physical consistency, log-Cholesky parameters and divergence.

P = [[Σ, h], [hᵀ, m]],  Σ = tr(I)/2 1 - I,  h = m c,

with the inertia I about the joint frame's origin. Ten inertial parameters π are those of a body
with a positive mass density exactly if P is positive definite.

References
----------
P. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial
parameter identification, IEEE RA-L 3 (2018), section III. C. Rucker, P. Wensing, Smooth
parameterization of rigid-body inertia, IEEE RA-L 7 (2022), section III. T. Lee, P. Wensing, F.
Park,
Geometric robot dynamic identification, IEEE T-RO 36 (2020), section IV.

"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue

SIZE_FLOOR = 5e-3
"""Smallest standard deviation of the mass of a prior body along an axis [m]."""
NEARLY_SINGULAR = 1e-6
"""Ratio of the diagonal entries of a Cholesky factor of P at which inverses lose their digits."""
MASS_FLOOR = 1e-2
"""Mass of a prior body without mass, relative to the mean mass of the links."""


def _basis() -> FloatArray:
    """Return ∂P/∂π, (10, 4, 4), for π in the order of Pinocchio."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for i in range(3):
        basis[1 + i, i, 3] = basis[1 + i, 3, i] = 1.0
    for entry, (i, j) in {4: (0, 0), 6: (1, 1), 9: (2, 2)}.items():
        basis[entry, :3, :3] = np.eye(3) / 2
        basis[entry, i, j] -= 1.0
    for entry, (i, j) in {5: (0, 1), 7: (0, 2), 8: (1, 2)}.items():
        basis[entry, i, j] = basis[entry, j, i] = -1.0
    return as_readonly(basis)


BASIS = _basis()
"""∂P/∂π (10, 4, 4)."""
FLAT_BASIS = as_readonly(BASIS.reshape(10, 16))
_AXES = np.arange(4)


def pseudo_inertia(parameters: Vector) -> Matrix:
    """Return P (4, 4) of ten inertial parameters π [kg, kg·m, kg·m²]."""
    pseudo: Matrix = np.tensordot(parameters, BASIS, 1)
    return pseudo


def inertial_parameters(pseudo: FloatArray) -> FloatArray:
    """Return π (..., 10) of P (..., 4, 4)."""
    second, first, mass = pseudo[..., :3, :3], pseudo[..., :3, 3], pseudo[..., 3, 3]
    trace = np.trace(second, axis1=-2, axis2=-1)
    inertia = trace[..., None, None] * np.eye(3) - second
    moments = [inertia[..., i, j] for j in range(3) for i in range(j + 1)]
    return np.stack([mass, *np.moveaxis(first, -1, 0), *moments], axis=-1)


def is_consistent(parameters: Vector) -> bool:
    """Return whether ten inertial parameters belong to a body with positive density."""
    try:
        np.linalg.cholesky(pseudo_inertia(parameters))
    except np.linalg.LinAlgError:
        return False
    return True


def log_cholesky_parameters(parameters: Vector) -> Vector:
    """Return θ = (α, d1, d2, d3, s12, s23, s13, t1, t2, t3) (10,) of a consistent body.

    P = U Uᵀ, U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]

    Raises InvalidValue for parameters that are not physically consistent.
    """
    flip = pseudo_inertia(parameters)[::-1, ::-1]
    try:
        upper = np.linalg.cholesky(flip)[::-1, ::-1]
    except np.linalg.LinAlgError as error:
        raise InvalidValue(
            f"inertial parameters = {parameters}; expected a positive definite pseudo-inertia"
        ) from error
    scale = upper[3, 3]
    unit = upper / scale
    diagonal = np.log(np.diag(unit)[:3])
    return np.array([np.log(scale), *diagonal, unit[0, 1], unit[1, 2], unit[0, 2], *unit[:3, 3]])


def from_log_cholesky(theta: FloatArray) -> FloatArray:
    """Return π (..., 10) of log-Cholesky parameters θ (..., 10): consistent for every θ."""
    upper = np.zeros((*theta.shape[:-1], 4, 4))
    upper[..., _AXES[:3], _AXES[:3]] = np.exp(theta[..., 1:4])
    upper[..., [0, 1, 0], [1, 2, 2]] = theta[..., 4:7]
    upper[..., :3, 3], upper[..., 3, 3] = theta[..., 7:], 1.0
    upper *= np.exp(theta[..., :1, None])
    return inertial_parameters(upper @ upper.swapaxes(-1, -2))


def log_cholesky_metric(theta: Vector) -> Matrix:
    """Return tr(P⁻¹ ∂P P⁻¹ ∂P) (10, 10), the curvature of the divergence by θ (10,) at its minimum.

    With P = U Uᵀ it is tr(Wᵢ Wⱼ), W = U⁻¹ ∂U + (U⁻¹ ∂U)ᵀ: exact also for nearly singular P.
    """
    scale, diagonal = np.exp(theta[0]), np.exp(theta[1:4])
    jacobian = np.zeros((10, 4, 4))
    jacobian[[1, 2, 3], _AXES[:3], _AXES[:3]] = scale * diagonal
    jacobian[[4, 5, 6, 7, 8, 9], [0, 1, 0, 0, 1, 2], [1, 2, 2, 3, 3, 3]] = scale
    upper = np.tensordot([*np.ones(3), *theta[4:]], jacobian[1:], 1)
    upper[3, 3] = scale
    jacobian[0] = upper
    relative = np.linalg.solve(upper, jacobian)
    whole = (relative + relative.swapaxes(1, 2)).reshape(10, 16)
    metric: Matrix = whole @ whole.T
    return metric


class LogDetDivergence:
    """Divergence Σ d(P ‖ P₀) of bodies from those of a prior.

    d(P ‖ P₀) = tr(P P₀⁻¹) - log det(P P₀⁻¹) - 4, at least 0, and 0 for P = P₀ only.

    Parameters
    ----------
    prior : Matrix
        Inertial parameters π₀ (n, 10) of consistent bodies.

    """

    def __init__(self, prior: Matrix) -> None:
        before = np.tensordot(prior, BASIS, 1)
        self._trace = np.linalg.inv(before).reshape(-1, 16) @ FLAT_BASIS.T
        self._log_det = float(np.linalg.slogdet(before)[1].sum()) - 4 * len(prior)

    def value(self, bodies: Matrix) -> float:
        """Return the divergence of bodies (n, 10); inf if one is not consistent or singular."""
        try:
            roots = np.linalg.cholesky((bodies @ FLAT_BASIS).reshape(-1, 4, 4))
        except np.linalg.LinAlgError:
            return float("inf")
        diagonal = roots[:, _AXES, _AXES]
        if (diagonal.min(axis=1) < NEARLY_SINGULAR * diagonal.max(axis=1)).any():
            return float("inf")
        log_det = 2 * float(np.log(diagonal).sum())
        return float(np.vdot(bodies, self._trace)) - log_det + self._log_det

    def derivatives(self, bodies: Matrix) -> tuple[Matrix, FloatArray]:
        """Return gradient (n, 10) and Hessian (n, 10, 10) of each body's divergence, by π."""
        inverse = np.linalg.inv((bodies @ FLAT_BASIS).reshape(-1, 4, 4))
        scaled = inverse[:, None] @ BASIS
        flat = scaled.reshape(len(bodies), 10, 16)
        turned = scaled.swapaxes(2, 3).reshape(len(bodies), 10, 16)
        gradient: Matrix = self._trace - inverse.reshape(-1, 16) @ FLAT_BASIS.T
        return gradient, flat @ turned.swapaxes(1, 2)


def consistent_prior(inertial: Matrix) -> Matrix:
    """Return nominal bodies (n, 10), with idealized ones made consistent.

    Bodies without mass get MASS_FLOOR of the mean mass. Point masses, rods and plates get a
    standard deviation of their mass of SIZE_FLOOR along each axis. Other bodies do not change.
    """
    bodies = np.array(inertial, dtype=float)
    mean = float(np.mean(bodies[:, 0])) or 1.0
    for own in bodies:
        mass = max(own[0], MASS_FLOOR * mean)
        center = own[1:4] / own[0] if own[0] > 0 else np.zeros(3)
        about = pseudo_inertia(own)[:3, :3] - own[0] * np.outer(center, center)
        values, axes = np.linalg.eigh(about)
        if own[0] == mass and values[0] >= mass * SIZE_FLOOR**2:
            continue
        spread = (axes * np.maximum(values, mass * SIZE_FLOOR**2)) @ axes.T
        first = mass * center[:, None]
        second = spread + first @ center[None]
        own[:] = inertial_parameters(np.block([[second, first], [first.T, np.array([[mass]])]]))
    return bodies
