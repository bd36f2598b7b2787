"""Exact extremes of an excitation trajectory, and the largest motion within limits.

Extremes are roots of the derivative of each segment: of a polynomial in the quintic ends, and of a
trigonometric polynomial in the series. With z = e^(jθ) the latter is a polynomial of degree 2 h:

Σ_k (g_k z^k + conj(g_k) z^-k) / 2 = 0,  g_k = (j k)^m (r_k - j s_k)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.polynomials import derivative, extremes
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.excitation.excitation import Excitation, MotionBasis

ROUNDING = 1e-12
"""Relative reduction of a scaled motion, so that no limit is exceeded by rounding."""
PASSES = 20
"""Maximum number of corrections by exact extremes. Each one reduces the motion, the n-th by at
least ROUNDING 4^n: the last one certainly to 0."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionLimits:
    """Limits of one motion (nv,) [rad, rad/s, rad/s²; m]; infinite where none exists."""

    lower: Vector
    upper: Vector
    velocity: Vector
    acceleration: Vector

    def of(self, i: int) -> tuple[tuple[float, float], ...]:
        """Return the ranges of position, velocity and acceleration of joint ``i``."""
        v, a = float(self.velocity[i]), float(self.acceleration[i])
        return (float(self.lower[i]), float(self.upper[i])), (-v, v), (-a, a)


def fourier_extremes(sine: Vector, cosine: Vector, order: int = 0) -> Vector:
    """Return the angles θ in [0, 2π) that contain all extremes of a derivative of a series.

    Parameters
    ----------
    sine, cosine : (h,) arrays
        Coefficients of sin(kθ) and cos(kθ), k = 1 ... h.
    order : int
        Order of the derivative whose extremes are returned; 0 is the series itself.

    Returns
    -------
    Vector
        Angles of all 2 h roots of the next derivative, at most. Roots that are not on the unit
        circle add angles that are not extremes; 0 if the series is 0.

    """
    k = np.arange(1, len(sine) + 1)
    g = (1j * k) ** (order + 1) * (cosine - 1j * sine)
    size = np.abs(g).max(initial=0.0)
    if size == 0.0:
        return np.zeros(1)
    g = np.where(np.abs(g) < 1e-15 * size, 0.0, g) / size
    angles = np.angle(np.roots(np.concatenate((g[::-1], [0.0], g.conj()))))
    for _ in range(2):  # Newton's method removes the rounding errors of simple roots
        wave = np.exp(1j * np.outer(angles, k))
        value, slope = (wave @ g).real, (wave @ (1j * k * g)).real
        step = np.divide(value, slope, out=np.zeros_like(value), where=np.abs(slope) > 1e-9)
        angles = angles - np.where(np.abs(step) < 1e-3, step, 0.0)
    extremes: Vector = np.mod(angles, 2 * np.pi)
    return extremes


def extreme_times(basis: MotionBasis, coefficients: Vector, order: int) -> Vector:
    """Return times (n,) [s] that contain all extremes of one joint's motion.

    Parameters
    ----------
    basis : MotionBasis
        Functions of time.
    coefficients : (1 + 2 h,) array
        Factors of the joint.
    order : int
        0 for extremes of position, 1 of velocity, 2 of acceleration.

    """
    h, late = basis.harmonics, basis.duration - basis.end_time
    angles = fourier_extremes(coefficients[1 : 1 + h], coefficients[1 + h :], order)
    times = [np.array([0.0, basis.end_time, late, basis.duration])]
    times.append(basis.end_time + angles / basis.angular_frequency)
    for spline, begin in zip(basis.ends, (0.0, late), strict=True):
        column = (spline @ coefficients)[:, None]
        for _ in range(order):
            column = derivative(column)
        times.extend(begin + at for at in extremes(column, basis.end_time)[0])
    extreme_times: Vector = np.concatenate([np.ravel(part) for part in times])
    return extreme_times


def extreme_values(excitation: Excitation) -> tuple[Matrix, Matrix, Matrix]:
    """Return the smallest and largest (2, nv) position, velocity and acceleration, exact."""
    basis, rows = excitation.basis, excitation.coefficients
    found = np.zeros((3, 2, len(rows)))
    for i, x in enumerate(rows):
        for order in range(3):
            values = basis.at(extreme_times(basis, x, order))[order] @ x
            found[order, :, i] = values.min(), values.max()
    found[0] += excitation.start
    return found[0], found[1], found[2]


def scale_to_limits(excitation: Excitation, limits: MotionLimits, middle: Matrix) -> Excitation:
    """Return the largest motion between ``middle`` and ``excitation`` within the limits.

    x_i = m_i + s_i (x_i - m_i),  0 <= s_i <= 1 of each joint

    The limits are linear in x: every s below a permitted one is also permitted. Each pass computes
    the exact extremes, and reduces s to the limit at these times.

    Parameters
    ----------
    excitation : Excitation
        Motion with coefficients x.
    limits : MotionLimits
        Ranges of each joint.
    middle : Matrix
        Coefficients m (nv, 1 + 2 h) of a motion within the limits.

    """
    basis, rows = excitation.basis, excitation.coefficients
    for i, start in enumerate(excitation.start.tolist()):
        scale, own = 1.0, rows[i] - middle[i]
        for n in range(PASSES + 1):
            reduced = scale
            for order, (low, high) in enumerate(limits.of(i)):
                times = extreme_times(basis, middle[i] + scale * own, order)
                wave = basis.at(times)[order]
                base = wave @ middle[i] + (start if order == 0 else 0.0)
                reduced = min(reduced, largest_scale(base, wave @ own, low, high))
            if reduced >= scale:
                break
            scale = reduced * max(1 - ROUNDING * 4.0**n, 0.0)
        rows[i] = middle[i] + scale * own
    return excitation.with_coefficients(rows)


def largest_scale(base: Vector, added: Vector, low: float, high: float) -> float:
    """Return the largest s with low <= base + s added <= high; at least 0.

    Rounding errors in ``added`` do not count: a motion that starts at a limit has them at rest.
    """
    margin = np.where(added > 0, high - base, base - low)
    rounding = ROUNDING * np.abs(added).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.where(
            np.abs(added) <= rounding, np.inf, np.maximum(margin, 0.0) / np.abs(added)
        )
    return float(np.min(scales, initial=np.inf))
