"""The motion of one joint as polynomials in time, in plain numbers: faster than arrays of few."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Row = tuple[float, ...]
"""Coefficients c_k of a polynomial of at most degree 5, the constant first."""


class Moment(NamedTuple):
    """Position [rad or m], velocity and acceleration of a joint."""

    q: float
    v: float
    a: float


class Track:
    """q(t) = Σ_k c_jk (t - t_j)^k in the last piece j that has begun; the first one before that.

    ``times`` t_j [s] do not decrease.
    """

    __slots__ = ("rows", "times")

    def __init__(self, times: Iterable[float], rows: Iterable[Row]) -> None:
        self.times, self.rows = list(times), list(rows)

    def at(self, time: float) -> Moment:
        """Return q, v and a at ``time`` [s]."""
        j = max(bisect_right(self.times, time) - 1, 0)
        return moment(self.rows[j], time - self.times[j])

    def append(self, time: float, row: Row) -> None:
        """Add a piece at the end."""
        self.times.append(time)
        self.rows.append(row)


def moment(row: Row, s: float) -> Moment:
    """Return p(s), p'(s) and p''(s)."""
    p = v = a = 0.0
    for c in reversed(row):
        a = a * s + 2 * v
        v = v * s + p
        p = p * s + c
    return Moment(p, v, a)


def fading(difference: Sequence[float], length: float) -> Row:
    """Return the quintic from ``difference`` to 0 with its rates in ``length`` [s].

    ``difference``: value, rate and second derivative.

    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), eq. 2.5.
    """
    e, w, b = difference
    T = length
    return (
        *(e, w, b / 2),
        (-20 * e - 12 * w * T - 3 * b * T * T) / (2 * T**3),
        (30 * e + 16 * w * T + 3 * b * T * T) / (2 * T**4),
        (-12 * e - 6 * w * T - b * T * T) / (2 * T**5),
    )
