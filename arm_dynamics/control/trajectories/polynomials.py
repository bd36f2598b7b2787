"""Polynomials in time: boundary values, derivatives and extremes.

A polynomial p(s) = Σ c_k s^k of n columns is the array of its coefficients (degree + 1, n).
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from numpy.polynomial.polynomial import polyroots

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector

NEGLIGIBLE = 1e-14
"""Fraction of a derivative's largest term below which its highest terms are rounding."""

RangeBounds = tuple[FloatArray, FloatArray]


def boundary_polynomial(
    T: float | FloatArray, p: RangeBounds, v: RangeBounds | None = None,
    a: RangeBounds | None = None,
) -> FloatArray:  # fmt: skip
    """Return the polynomial of the lowest degree with given values at s = 0 and s = T.

    Positions give a linear, with velocities a cubic, with accelerations a quintic polynomial.

    Parameters
    ----------
    T : float or (m, 1) array
        Duration [s].
    p, v, a : pairs of (n,) or (m, n) arrays
        Positions, velocities and accelerations at both ends.

    Returns
    -------
    (degree + 1, n) or (degree + 1, m, n) array

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), eqs. 2.2, 2.3, 2.5.

    """
    p0, h = p[0], p[1] - p[0]
    if v is None:
        return np.array([p0, h / T])
    v0, v1 = v
    if a is None:
        return np.array(
            [p0, v0, (3 * h - (2 * v0 + v1) * T) / T**2, (-2 * h + (v0 + v1) * T) / T**3]
        )
    a0, a1 = a
    c3 = (20 * h - (8 * v1 + 12 * v0) * T - (3 * a0 - a1) * T**2) / (2 * T**3)
    c4 = (-30 * h + (14 * v1 + 16 * v0) * T + (3 * a0 - 2 * a1) * T**2) / (2 * T**4)
    c5 = (12 * h - 6 * (v1 + v0) * T + (a1 - a0) * T**2) / (2 * T**5)
    return np.array([p0, v0, a0 / 2, c3, c4, c5])


def evaluate(c: Matrix, s: float) -> tuple[Vector, Vector, Vector]:
    """Return p(s), p'(s) and p''(s), each (n,), of a polynomial of degree 1 or more."""
    powers = [s**k for k in range(len(c))]
    p = np.array(powers) @ c
    v = np.array([0.0, *(k * x for k, x in enumerate(powers[:-1], 1))]) @ c
    a = np.array([0.0, 0.0, *((k + 1) * k * x for k, x in enumerate(powers[:-2], 1))]) @ c
    return p, v, a


def evaluate_batch(c: FloatArray, s: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """Return ``evaluate`` of m polynomials (degree + 1, m, n), each at its own s (m,)."""
    p, v, a = (np.zeros(c.shape[1:]) for _ in range(3))
    for row in c[::-1]:
        a = a * s[:, None] + 2 * v
        v = v * s[:, None] + p
        p = p * s[:, None] + row
    return p, v, a


def derivative(c: FloatArray) -> FloatArray:
    """Return the coefficients of p'(s), at least one."""
    coefficients: FloatArray = (c[1:].T * np.arange(1, len(c))).T
    return coefficients if len(coefficients) else np.zeros_like(c)


def is_certainly_within(c: Matrix, T: float, low: Vector, high: Vector) -> bool:
    """Return whether p's Bézier points in [0, T] are within [low, high], each (n,).

    p lies in their convex hull: True is certain, False is not.
    """
    points = _bezier(len(c)) @ (c * T ** np.arange(len(c))[:, None])
    return bool((points >= low).all() and (points <= high).all())


def are_certainly_within(c: FloatArray, T: Vector, low: Vector, high: Vector) -> BoolArray:
    """Return ``is_certainly_within`` (m,) of polynomials (degree + 1, m, n), durations T (m,)."""
    powers = np.arange(len(c))[:, None, None]
    points = np.tensordot(_bezier(len(c)), c * T[:, None] ** powers, axes=1)
    return np.asarray(((points >= low) & (points <= high)).all(axis=(0, 2)))


@cache
def _bezier(count: int) -> Matrix:
    """Return the Bézier points of x^k in [0, 1]: rows j of C(j, k) / C(n, k), n = count - 1."""
    orders = range(count)
    return np.array([[comb(j, k) / comb(count - 1, k) for k in orders] for j in orders])


def extremes(c: Matrix, T: float) -> tuple[Matrix, Matrix]:
    """Return the times (2, n) of each column's minimum and maximum in [0, T], and the values.

    An extreme is at an end or at a root of p'.
    """
    at, values = np.zeros((2, c.shape[1])), np.zeros((2, c.shape[1]))
    velocity = derivative(c)
    for i in range(c.shape[1]):
        s = np.array([0.0, T, *_roots(velocity[:, i], T)])
        p = np.polynomial.polynomial.polyval(s, c[:, i])
        ends = [int(p.argmin()), int(p.argmax())]
        at[:, i], values[:, i] = s[ends], p[ends]
    return at, values


def _roots(velocity: Vector, T: float) -> Vector:
    """Return times in [0, T] that include every root of a polynomial.

    Rounding makes a double root a complex pair: the real part is used. Additional times are
    harmless, since the polynomial is evaluated there.
    """
    terms = velocity * T ** np.arange(len(velocity))
    kept = np.flatnonzero(np.abs(terms) > NEGLIGIBLE * np.abs(terms).max())
    if not len(kept) or kept[-1] == 0:
        return np.zeros(0)
    fractions = np.clip(polyroots(terms[: kept[-1] + 1]).real, 0.0, 1.0)
    return np.asarray(fractions * T, dtype=float)
