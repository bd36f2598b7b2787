"""Fastest motions of one joint within velocity and acceleration limits, also to a moving target.

Motions are polynomials in plain floats: faster than arrays of a few entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import copysign, inf, sqrt
from typing import NamedTuple

MAX_ITERATIONS = 20
TIME_TOLERANCE = 1e-7
"""Accuracy of the meeting time with a moving target [s]."""

Row = tuple[float, ...]
"""Coefficients c_k of a polynomial of degree 5 or less, the constant first."""


class Moment(NamedTuple):
    """Position [rad or m], velocity and acceleration of a joint."""

    q: float
    v: float
    a: float


class Limits(NamedTuple):
    """Limits of a joint: velocity [rad/s or m/s], acceleration, positions [rad or m]."""

    velocity: float
    acceleration: float
    lower: float = -inf
    upper: float = inf


class Track:
    """q(t) = Σ_k c_jk (t - t_j)^k in the last segment j that has begun.

    Before the first t_j the first segment is extended. ``times`` t_j [s] do not decrease.
    """

    __slots__ = ("rows", "times")

    def __init__(self, times: Iterable[float], rows: Iterable[Row]) -> None:
        self.times, self.rows = list(times), list(rows)

    def at(self, time: float) -> Moment:
        """Return q, v and a at ``time`` [s]."""
        j = max(bisect_right(self.times, time) - 1, 0)
        return moment(self.rows[j], time - self.times[j])

    def append(self, time: float, row: Row) -> None:
        """Append a segment that starts at ``time`` [s]."""
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
    """Return the quintic from a difference to 0 within ``length`` [s].

    ``difference``: value, rate and second derivative; all three end at 0.

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), eq. 2.5.

    """
    e, w, b = difference
    T = length
    return (
        *(e, w, b / 2),
        (-20 * e - 12 * w * T - 3 * b * T * T) / (2 * T**3),
        (30 * e + 16 * w * T + 3 * b * T * T) / (2 * T**4),
        (-12 * e - 6 * w * T - b * T * T) / (2 * T**5),
    )


class Phases(NamedTuple):
    """Durations ``first``, ``middle`` and ``last`` [s]; accelerations ``begin``, 0 and ``end``."""

    first: float
    middle: float
    last: float
    begin: float
    end: float

    @property
    def duration(self) -> float:
        """Duration of all three [s]; inf if the target is never reached."""
        return self.first + self.middle + self.last


def fastest(q: float, v: float, to_q: float, to_v: float, limits: Limits) -> Phases:
    """Return the fastest motion to a target at ``to_q`` that moves with the velocity ``to_v``.

    In the target's frame e = q - to_q and w = v - to_v become 0 with |ẇ| <= a and
    |w + to_v| <= v_max: full acceleration until |w| = √(a |e| + w²/2), or to the limit and a
    cruise, then full deceleration. A target at the velocity limit is never reached.

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), section 3.2, in a moving frame.

    """
    rate, w, ahead = limits.acceleration, v - to_v, to_q - q
    sign = copysign(1.0, ahead - w * abs(w) / (2 * rate))
    distance, u = sign * ahead, sign * w
    top = max(limits.velocity - sign * to_v, 0.0)
    peak = sqrt(max(rate * distance + u * u / 2, 0.0))
    cruise = min(peak, top)
    first, last = abs(cruise - u) / rate, cruise / rate
    cruise_distance = distance - (cruise + u) / 2 * first - cruise / 2 * last if peak > top else 0.0
    middle = 0.0 if cruise_distance <= 0 else cruise_distance / cruise if cruise else inf
    begin = sign * (rate if cruise >= u else -rate)
    return Phases(first, middle, last, begin, -sign * rate)


def follow(track: Track, time: float, q: float, v: float, phases: Phases) -> float:
    """Append a motion from q, v at ``time`` [s] to ``track``; return its end time [s]."""
    durations = (phases.first, phases.middle, phases.last)
    for length, a in zip(durations, (phases.begin, 0.0, phases.end), strict=True):
        if length > 0:
            track.append(time, (q, v, a / 2))
            time, q, v = time + length, q + (v + a / 2 * length) * length, v + a * length
    return time


def settle(track: Track, time: float, present: Moment, goal: float, limits: Limits) -> float:
    """Append the fastest motion to rest at ``goal``; return its end time [s]."""
    end = follow(track, time, present.q, present.v, fastest(*present[:2], goal, 0.0, limits))
    track.append(end, (goal,))
    return end


def brake(track: Track, time: float, present: Moment, limits: Limits) -> float:
    """Append a stop at the acceleration limit, or faster to stop within the position limits.

    Return its end time [s].
    """
    q, v, _ = present
    distance = limits.upper - q if v > 0 else q - limits.lower
    length = min(abs(v) / limits.acceleration, 2 * max(distance, 0.0) / abs(v)) if v else 0.0
    if length > 0:
        track.append(time, (q, v, -v / (2 * length)))
    end, goal = time + length, q + v * length / 2
    track.append(end, (goal,))
    return end


def join(target: Track, now: float, present: Moment, limits: Limits) -> tuple[Track, float]:
    """Return the fastest motion onto ``target``, and the time [s] at which it is reached.

    The motion aims at the target's tangent at the meeting time T, found by the iteration
    T ← duration to the tangent at T. Without convergence (a target faster than the limit) it goes
    to the target's final position.
    """
    q, v, _ = present
    track, T = Track((), ()), 0.0
    for _ in range(MAX_ITERATIONS):
        there = target.at(now + T)
        phases = fastest(q, v, there.q - there.v * T, there.v, limits)
        before, T = T, min(phases.duration, max(target.times[-1] - now, 0.0) + 1.0)
        if abs(phases.duration - before) <= TIME_TOLERANCE:
            return track, follow(track, now, q, v, phases)
    goal = target.rows[-1][0]
    return track, max(settle(track, now, present, goal, limits), target.times[-1])
