"""How often a control loop acts, and how late."""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.arrays import scalar

LATEST = 10.0
"""Largest delay [periods] that stability is computed for."""
SIMILAR = 0.1
"""Share of a period by which two timings may differ that resemble each other."""


@dataclass(frozen=True, slots=True)
class LoopTiming:
    """Control ``period`` [s] and ``delay`` [periods] from a measurement to its command.

    Raises InvalidValue for a negative number and for a delay above LATEST.
    """

    period: float
    delay: float = 0.0

    def __post_init__(self) -> None:
        """Check both numbers."""
        scalar("period [s]", self.period, lower=0)
        scalar("delay [periods]", self.delay, lower=0, upper=LATEST)

    def __str__(self) -> str:
        """Both with their units."""
        return f"period = {self.period:.4g} s, delay = {self.delay:.3g} periods"

    def resembles(self, other: LoopTiming) -> bool:
        """Whether period and delay are those of ``other``, within SIMILAR of its period."""
        allowed = SIMILAR * other.period
        lag, theirs = self.delay * self.period, other.delay * other.period
        return abs(self.period - other.period) <= allowed and abs(lag - theirs) <= allowed

    def longer(self, factor: float) -> LoopTiming:
        """The same delay in periods that are ``factor`` times as long."""
        return LoopTiming(factor * self.period, self.delay)


UNTIMED = LoopTiming(0.0)
"""A loop without a period: continuous time."""
