"""Polynomials in time: what joins two boundary values, its derivatives and its extremes.

A polynomial p(s) = Σ c_k s^k of n columns is the array of its coefficients (degree + 1, n).
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from numpy.polynomial.polynomial import polyroots
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Vector

NEGLIGIBLE = 1e-14
"""Share of the largest term of a derivative below which its highest terms are rounding."""

RangeBounds = tuple[Vector, Vector]


def boundary_polynomial(
    T: float | Vector, p: RangeBounds, v: RangeBounds | None = None, a: RangeBounds | None = None
) -> Vector:
    """Polynomial of the lowest degree that has the given values at s = 0 and s = T.

    Many at once where T is (m, 1) and the values (m, n): coefficients (degree + 1, m, n).
    positions ``p``: linear; and velocities ``v``: cubic; and accelerations ``a``: quintic.
    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), eqs. 2.2, 2.3, 2.5.
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


def evaluate(c: Vector, s: float) -> tuple[Vector, Vector, Vector]:
    """p(s), p'(s) and p''(s), each (n,), of a polynomial of degree 1 at least."""
    powers = [s**k for k in range(len(c))]
    p = np.array(powers) @ c
    v = np.array([0.0, *(k * x for k, x in enumerate(powers[:-1], 1))]) @ c
    a = np.array([0.0, 0.0, *((k + 1) * k * x for k, x in enumerate(powers[:-2], 1))]) @ c
    return p, v, a


def evaluate_batch(c: Vector, s: Vector) -> tuple[Vector, Vector, Vector]:
    """``evaluate`` of many polynomials (degree + 1, m, n), each at its own s (m,)."""
    p, v, a = (np.zeros(c.shape[1:]) for _ in range(3))
    for row in c[::-1]:
        a = a * s[:, None] + 2 * v
        v = v * s[:, None] + p
        p = p * s[:, None] + row
    return p, v, a


def derivative(c: Vector) -> Vector:
    """Coefficients of p'(s); at least one."""
    slope: Vector = (c[1:].T * np.arange(1, len(c))).T
    return slope if len(slope) else np.zeros_like(c)


def is_certainly_within(c: Vector, T: float, low: Vector, high: Vector) -> bool:
    """Whether low <= p(s) <= high (n,) in [0, T] is plain from p's Bézier points.

    p lies in their convex hull: True is certain, False says nothing.
    """
    points = _bezier(len(c)) @ (c * T ** np.arange(len(c))[:, None])
    return bool((points >= low).all() and (points <= high).all())


def are_certainly_within(c: Vector, T: Vector, low: Vector, high: Vector) -> NDArray[np.bool_]:
    """``is_certainly_within`` of many polynomials (degree + 1, m, n) at once, over [0, T] of each (m,)."""
    powers = np.arange(len(c))[:, None, None]
    points = np.tensordot(_bezier(len(c)), c * T[:, None] ** powers, axes=1)
    return np.asarray(((points >= low) & (points <= high)).all(axis=(0, 2)))


@cache
def _bezier(count: int) -> Vector:
    """Bézier points of x^k in [0, 1], k < ``count``: rows j of C(j, k) / C(n, k), n the degree."""
    orders = range(count)
    return np.array([[comb(j, k) / comb(count - 1, k) for k in orders] for j in orders])


def extremes(c: Vector, T: float) -> tuple[Vector, Vector]:
    """Times (2, n) at which each column is smallest and largest in [0, T], and its values there.

    Either is at an end, or at a root of p'.
    """
    at, found = np.zeros((2, c.shape[1])), np.zeros((2, c.shape[1]))
    slope = derivative(c)
    for i in range(c.shape[1]):
        s = np.array([0.0, T, *_turns(slope[:, i], T)])
        p = np.polynomial.polynomial.polyval(s, c[:, i])
        ends = [int(p.argmin()), int(p.argmax())]
        at[:, i], found[:, i] = s[ends], p[ends]
    return at, found


def _turns(slope: Vector, T: float) -> Vector:
    """Times in [0, T] among which every root of a polynomial there is.

    A double root comes as a pair that is complex by rounding: its real part is taken. A time
    too many does no harm: the value there is one of the polynomial's too.
    """
    terms = slope * T ** np.arange(len(slope))
    kept = np.flatnonzero(np.abs(terms) > NEGLIGIBLE * np.abs(terms).max())
    if not len(kept) or kept[-1] == 0:
        return np.zeros(0)
    shares = np.clip(polyroots(terms[: kept[-1] + 1]).real, 0.0, 1.0)
    return np.asarray(shares * T, dtype=float)
