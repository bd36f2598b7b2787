"""A clock for trajectories that can run slower than time, or stand still."""

from __future__ import annotations

from dataclasses import replace

from arm_dynamics.core.arrays import as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, TaskReference

RAMP = 0.25
"""Time [s] in which the clock goes from full speed to a stand, and back."""


class ScaledClock:
    """Trajectory time s with ds/dt = f; f goes to the factor that is asked for, by 1/RAMP a second.

    The reference q(s(t)) then has the velocity f v and the acceleration f² a + f' v: neither its
    position nor its velocity jumps, whatever is asked for. Source: Hollerbach, Dynamic Scaling of
    Manipulator Trajectories (1984), eqs. 4 to 6.
    """

    def __init__(self) -> None:
        self.wanted = 1.0
        self.factor = 1.0
        self._rate = 0.0
        self._lag = 0.0
        self._now: float | None = None

    def set_factor(self, factor: float) -> None:
        """Let time pass ``factor`` times as fast: 0 is a pause.

        Raises InvalidValue outside [0, 1]: what was held against velocity limits is not faster.
        """
        number = check_float("speed scaling factor", factor)
        if not 0 <= number <= 1:
            raise InvalidValue(f"speed scaling factor = {number:g}: 0 to 1 is allowed")
        self.wanted = number

    def restart(self) -> None:
        """Trajectory time is time again from now on; the factor stays."""
        self._lag = 0.0

    def advance(self, now: float) -> float:
        """Trajectory time s at the time ``now`` [s]."""
        before, self._now = self._now, now
        if before is None or now <= before or self.factor == self.wanted == 1.0:
            self._rate = 0.0
        else:
            self._lag += now - before - self._passed(now - before)
        return now - self._lag

    def at(self, time: float) -> float:
        """Trajectory time at another time [s], were the present factor to stay."""
        now = time if self._now is None else self._now
        return now - self._lag + self.factor * (time - now)

    def _passed(self, dt: float) -> float:
        """∫ f dt over the next ``dt``, exactly; f is then the one after it."""
        change = min(max(self.wanted - self.factor, -dt / RAMP), dt / RAMP)
        ramp, start = abs(change) * RAMP, self.factor
        self._rate = change / dt if ramp >= dt * (1 - 1e-9) else 0.0
        self.factor = self.wanted if self._rate == 0.0 else start + change
        return 0.5 * (start + self.factor) * ramp + self.factor * (dt - ramp)

    def scaled(self, reference: Reference) -> Reference:
        """The reference at s as it is in time."""
        f, rate = self.factor, self._rate
        return reference if f == 1.0 and rate == 0.0 else _scaled(reference, f, rate)

    def unscaled(self, reference: Reference) -> Reference:
        """A reference in time as a trajectory entered now must take it; at rest for f = 0."""
        if self.factor == 1.0:
            return reference
        if self.factor == 0.0:
            return _scaled(reference, 0.0, 0.0)
        return _scaled(reference, 1 / self.factor, 0.0)


def _scaled(reference: Reference, f: float, rate: float) -> Reference:
    v, a = as_readonly(f * reference.v), as_readonly(f**2 * reference.a + rate * reference.v)
    if not isinstance(reference, TaskReference):
        return replace(reference, v=v, a=a)
    twist = as_readonly(f * reference.twist)
    acceleration = as_readonly(f**2 * reference.acceleration + rate * reference.twist)
    return replace(reference, v=v, a=a, twist=twist, acceleration=acceleration)
