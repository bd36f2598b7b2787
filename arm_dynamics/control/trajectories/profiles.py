"""How far along its way a motion is: s(t) from 0 to 1, from rest to rest."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import isnan, sqrt

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue

MIN_DURATION, MAX_DURATION = 1e-30, 1e30
"""Durations [s] whose speeds and accelerations are numbers to reckon with."""
PhaseCoefficients = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """s(t) = Σ c_k x^k, x = (t - t_i) / scale, in its phase i, which begins at ``times[i]`` [s].

    ``rows`` are the c of each phase; ``duration`` [s] is the end of the last one.
    """

    times: tuple[float, ...]
    rows: tuple[PhaseCoefficients, ...]
    duration: float
    scale: float = 1.0

    def at(self, time: float) -> tuple[float, float, float]:
        """s, ṡ [1/s] and s̈ [1/s²]; rest at 0 before 0 and at 1 from ``duration`` on.

        Raises InvalidValue for NaN.
        """
        if not 0 < time < self.duration:
            if isnan(time):
                raise invalid_time_error(time)
            return (0.0 if time <= 0 else 1.0), 0.0, 0.0
        i = max(bisect_right(self.times, time) - 1, 0)
        c0, c1, c2, c3, c4, c5 = self.rows[i]
        x, k = (time - self.times[i]) / self.scale, 1 / self.scale
        s = c0 + x * (c1 + x * (c2 + x * (c3 + x * (c4 + x * c5))))
        v = c1 + x * (2 * c2 + x * (3 * c3 + x * (4 * c4 + x * 5 * c5)))
        a = 2 * c2 + x * (6 * c3 + x * (12 * c4 + x * 20 * c5))
        return s, v * k, a * k * k

    def stretched_to(self, duration: float) -> Profile:
        """The same profile slowed down to a longer ``duration`` [s].

        Speeds fall by the ratio of the durations and accelerations by its square, so that it
        keeps the limits that it was made for. Raises InvalidValue for a shorter duration.
        """
        slower = check_float("duration [s]", duration, upper=MAX_DURATION) / self.duration
        if slower < 1 - 1e-12:
            raise InvalidValue(
                f"duration = {duration:.6g} s: at least {self.duration:.6g} s is needed within"
                f" the limits of velocity and acceleration"
            )
        times = tuple(slower * t for t in self.times)
        return replace(self, times=times, duration=duration, scale=slower * self.scale)


def invalid_time_error(time: float) -> InvalidValue:
    """The refusal of a time that is no number: it is neither before nor after anything."""
    return InvalidValue(f"time = {time} s: a number is expected")


def cubic(duration: float) -> Profile:
    """s = 3 x² - 2 x³, x = t / T: speed without a jump; at most 1.5 / T and 6 / T².

    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), section 2.1.4.
    """
    T = check_float("duration [s]", duration, lower=MIN_DURATION, upper=MAX_DURATION)
    return Profile((0.0,), ((0.0, 0.0, 3.0, -2.0, 0.0, 0.0),), T, T)


def quintic(duration: float) -> Profile:
    """s = 10 x³ - 15 x⁴ + 6 x⁵, x = t / T: acceleration without a jump; at most 1.875 / T.

    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), section 2.1.5.
    """
    T = check_float("duration [s]", duration, lower=MIN_DURATION, upper=MAX_DURATION)
    return Profile((0.0,), ((0.0, 0.0, 0.0, 10.0, -15.0, 6.0),), T, T)


def trapezoidal(velocity: float, acceleration: float) -> Profile:
    """The fastest s(t) within |ṡ| <= ``velocity`` [1/s] and |s̈| <= ``acceleration`` [1/s²].

    Full acceleration, then full velocity, where 1 is far enough to come to it, then full
    deceleration: T = 1 / v + v / a, or 2 / √a where v² >= a.
    Raises InvalidValue for limits under which it would last longer than LONGEST.
    Source: Biagiotti and Melchiorri, Trajectory Planning (2008), section 3.2.
    """
    a = check_float("acceleration [1/s²]", acceleration, lower=1e-60, upper=1e60)
    v = min(check_float("velocity [1/s]", velocity, lower=1e-30), sqrt(a))
    ramp, way, end = v / a, v * v / a / 2, 1 / v + v / a
    up, down = (0.0, 0.0, a / 2, 0.0, 0.0, 0.0), (1 - way, v, -a / 2, 0.0, 0.0, 0.0)
    if 2 * way > 1 - 1e-12:
        return Profile((0.0, ramp), (up, down), end)
    cruise = (way, v, 0.0, 0.0, 0.0, 0.0)
    return Profile((0.0, ramp, end - ramp), (up, cruise, down), end)
