"""Velocity profiles: time scalings s(t) from 0 to 1, from rest to rest."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import isnan, sqrt

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue

MIN_DURATION, MAX_DURATION = 1e-30, 1e30
"""Durations [s] with finite velocities and accelerations."""
PhaseCoefficients = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """s(t) = Σ c_k x^k, x = (t - t_i) / scale, in the phase i that starts at ``times[i]`` [s].

    Parameters
    ----------
    times : tuple of float
        Start time of each phase [s].
    rows : tuple of PhaseCoefficients
        Coefficients c of each phase.
    duration : float
        End of the last phase [s].
    scale : float
        Unit of x [s].

    """

    times: tuple[float, ...]
    rows: tuple[PhaseCoefficients, ...]
    duration: float
    scale: float = 1.0

    def at(self, time: float) -> tuple[float, float, float]:
        """Return s, ṡ [1/s] and s̈ [1/s²]; at rest before 0 and from ``duration`` on.

        Raises
        ------
        InvalidValue
            For NaN.

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
        """Return the profile slowed down to a longer ``duration`` [s].

        Velocities decrease by the ratio of the durations, accelerations by its square: limits
        remain satisfied.

        Raises
        ------
        InvalidValue
            For a shorter duration.

        """
        slower = check_float("duration [s]", duration, upper=MAX_DURATION) / self.duration
        if slower < 1 - 1e-12:
            raise InvalidValue(
                f"duration = {duration:.6g} s; expected at least {self.duration:.6g} s within the"
                " velocity and acceleration limits"
            )
        times = tuple(slower * t for t in self.times)
        return replace(self, times=times, duration=duration, scale=slower * self.scale)


def invalid_time_error(time: float) -> InvalidValue:
    """Return the error of a time that is not a number."""
    return InvalidValue(f"time = {time} s; expected a number")


def cubic(duration: float) -> Profile:
    """Return s = 3 x² - 2 x³, x = t / T, with a continuous velocity.

    Maxima: velocity 1.5 / T, acceleration 6 / T².

    Parameters
    ----------
    duration : float
        T [s].

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), section 2.1.4.

    """
    T = check_float("duration [s]", duration, lower=MIN_DURATION, upper=MAX_DURATION)
    return Profile((0.0,), ((0.0, 0.0, 3.0, -2.0, 0.0, 0.0),), T, T)


def quintic(duration: float) -> Profile:
    """Return s = 10 x³ - 15 x⁴ + 6 x⁵, x = t / T, with a continuous acceleration.

    Maximum velocity: 1.875 / T.

    Parameters
    ----------
    duration : float
        T [s].

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), section 2.1.5.

    """
    T = check_float("duration [s]", duration, lower=MIN_DURATION, upper=MAX_DURATION)
    return Profile((0.0,), ((0.0, 0.0, 0.0, 10.0, -15.0, 6.0),), T, T)


def trapezoidal(velocity: float, acceleration: float) -> Profile:
    """Return the fastest s(t) within a velocity and an acceleration limit.

    Full acceleration, cruise at the velocity limit if it is reached, full deceleration:
    T = 1 / v + v / a, or 2 / √a if v² >= a.

    Parameters
    ----------
    velocity : float
        Limit v of |ṡ| [1/s].
    acceleration : float
        Limit a of |s̈| [1/s²].

    Raises
    ------
    InvalidValue
        If it would last longer than MAX_DURATION.

    References
    ----------
    Biagiotti and Melchiorri, Trajectory Planning (2008), section 3.2.

    """
    a = check_float("acceleration [1/s²]", acceleration, lower=1e-60, upper=1e60)
    v = min(check_float("velocity [1/s]", velocity, lower=1e-30), sqrt(a))
    ramp, distance, end = v / a, v * v / a / 2, 1 / v + v / a
    up, down = (0.0, 0.0, a / 2, 0.0, 0.0, 0.0), (1 - distance, v, -a / 2, 0.0, 0.0, 0.0)
    if 2 * distance > 1 - 1e-12:
        return Profile((0.0, ramp), (up, down), end)
    cruise = (distance, v, 0.0, 0.0, 0.0, 0.0)
    return Profile((0.0, ramp, end - ramp), (up, cruise, down), end)
