"""Command sequences of few knots: piecewise constant, linear or cubic interpolation."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import IntArray, Matrix, Vector, check_int
from arm_dynamics.core.errors import UnknownName

SPLINES = ("zero_order", "linear", "cubic")
TAPS = 4
"""Knots that an interpolated value depends on, at most."""


class KnotSpline:
    """Interpolation over [0, 1] of the horizon with ``knots`` values.

    zero_order holds knot i over [i, i + 1) / knots. linear and cubic have their knots at
    i / (knots - 1); cubic has the slopes (x_{i+1} - x_{i-1}) / 2, one-sided at both ends
    (Catmull-Rom). Outside of [0, 1] the first or last value is held.

    Parameters
    ----------
    kind : str
        One of ``SPLINES``.
    knots : int
        Number of knots.

    """

    def __init__(self, kind: str, knots: int) -> None:
        if kind not in SPLINES:
            raise UnknownName("spline of knots", kind, SPLINES)
        self.kind, self.knots = kind, check_int("knots", knots, lower=1)

    def matrix(self, times: Vector) -> Matrix:
        """Return W (n, knots): the values at ``times`` (n,) of the horizon are W @ knots."""
        times, count = np.clip(np.asarray(times, float), 0.0, 1.0), self.knots
        rows, n = np.arange(times.size), times.size
        W = np.zeros((n, count))
        if self.kind == "zero_order" or count == 1:
            W[rows, np.minimum((times * count).astype(int), count - 1)] = 1.0
            return W
        at = np.minimum((times * (count - 1)).astype(int), count - 2)
        s = times * (count - 1) - at
        if self.kind == "linear":
            W[rows, at], W[rows, at + 1] = 1.0 - s, s
            return W
        slopes = np.zeros((count, count))
        for i in range(count):
            low, high = max(i - 1, 0), min(i + 1, count - 1)
            slopes[i, high] += 1.0 / (high - low)
            slopes[i, low] -= 1.0 / (high - low)
        np.add.at(W, (rows, at), 2 * s**3 - 3 * s**2 + 1)
        np.add.at(W, (rows, at + 1), 3 * s**2 - 2 * s**3)
        W += (s**3 - 2 * s**2 + s)[:, None] * slopes[at] + (s**3 - s**2)[:, None] * slopes[at + 1]
        return W

    def taps(self, times: Vector) -> tuple[IntArray, Matrix]:
        """Return the first knot (n,) and the weights (n, TAPS) of the values at ``times``.

        A first knot may be such that first + TAPS exceeds the number of knots: ``padded`` knots.
        """
        W = self.matrix(times)
        first = np.argmax(W != 0.0, axis=1)
        padded = np.hstack([W, np.zeros((len(W), TAPS))])
        return first, np.stack([row[i : i + TAPS] for i, row in zip(first, padded, strict=True)])

    @property
    def padded(self) -> int:
        """Number of knots with those of weight 0 that ``taps`` may name."""
        return self.knots + TAPS - 1
