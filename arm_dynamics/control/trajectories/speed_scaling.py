"""Speed scaling: a trajectory clock that runs slower than time, or stops."""

from __future__ import annotations

from dataclasses import replace

from arm_dynamics.core.arrays import as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, TaskReference

RAMP = 0.25
"""Time in which the clock changes from full speed to a stop, and back [s]."""


class ScaledClock:
    """Trajectory time s with ds/dt = f, where f approaches the set factor by 1/RAMP per second.

    The reference q(s(t)) has the velocity f v and the acceleration f² a + f' v. Position and
    velocity do not jump at any change of the factor.

    References
    ----------
    J. Hollerbach, Dynamic Scaling of Manipulator Trajectories (1984), eqs. 4 to 6.

    """

    def __init__(self) -> None:
        self.requested = 1.0
        self.factor = 1.0
        self._rate = 0.0
        self._lag = 0.0
        self._now: float | None = None

    def set_factor(self, factor: float) -> None:
        """Set the speed scaling factor; 0 is a pause.

        Raises
        ------
        InvalidValue
            Outside [0, 1]: velocity limits were checked at full speed.

        """
        number = check_float("speed scaling factor", factor)
        if not 0 <= number <= 1:
            raise InvalidValue(f"speed scaling factor = {number:g}; expected 0 to 1")
        self.requested = number

    def restart(self) -> None:
        """Set trajectory time to time; the factor stays."""
        self._lag = 0.0

    def advance(self, now: float) -> float:
        """Return the trajectory time s at ``now`` [s], which never decreases between calls."""
        before, self._now = self._now, now
        if before is None or now <= before or self.factor == self.requested == 1.0:
            self._rate = 0.0
        else:
            dt = now - before  # s increases by ∫ f dt, computed exactly
            change = min(max(self.requested - self.factor, -dt / RAMP), dt / RAMP)
            ramp, start = abs(change) * RAMP, self.factor
            self._rate = change / dt if ramp >= dt * (1 - 1e-9) else 0.0
            self.factor = self.requested if self._rate == 0.0 else start + change
            elapsed = 0.5 * (start + self.factor) * ramp + self.factor * (dt - ramp)
            self._lag += now - before - elapsed
        return now - self._lag

    def at(self, time: float) -> float:
        """Return the trajectory time at another time [s], with the present factor."""
        now = time if self._now is None else self._now
        return now - self._lag + self.factor * (time - now)

    def scaled(self, reference: Reference) -> Reference:
        """Return a reference at s as a reference in time."""
        f, rate = self.factor, self._rate
        return reference if f == 1.0 and rate == 0.0 else _scaled(reference, f, rate)

    def unscaled(self, reference: Reference) -> Reference:
        """Return a reference in time as a trajectory starts from it now; at rest for f = 0."""
        if self.factor == 1.0:
            return reference
        return _scaled(reference, 1 / self.factor if self.factor else 0.0, 0.0)


def _scaled(reference: Reference, f: float, rate: float) -> Reference:
    v, a = as_readonly(f * reference.v), as_readonly(f**2 * reference.a + rate * reference.v)
    if not isinstance(reference, TaskReference):
        return replace(reference, v=v, a=a)
    twist = as_readonly(f * reference.twist)
    acceleration = as_readonly(f**2 * reference.acceleration + rate * reference.twist)
    return replace(reference, v=v, a=a, twist=twist, acceleration=acceleration)
