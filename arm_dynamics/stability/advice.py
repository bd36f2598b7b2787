"""What the stability of a loop says about a method: its largest time step and its margins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.linearization import Linearization
from arm_dynamics.simulation import whole_steps
from arm_dynamics.stability.discrete import discrete_map
from arm_dynamics.stability.law import Law
from arm_dynamics.stability.loop import Mode, closed_loop_map, is_stable, modes
from arm_dynamics.stability.search import LONGEST, SHORTEST, StableSet, stable_parts, stable_set

Laws = Callable[[float], Law]
"""The law that is called every so many seconds."""
FACTORS = (1e-2, 1e2)
"""Gains are tried from this to this many times as large."""


@dataclass(frozen=True, eq=False)
class Loop:
    """A linearized arm and the law that controls it.

    The law is called every ``period`` [s], or every time step (None); ``delay`` [periods] as
    in ``closed_loop_map``; dt [s] is the time step in use.
    """

    linear: Linearization
    laws: Laws
    dt: float
    period: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class Advice:
    """A method's stability in one loop, at its time step dt and control period [s].

    ``dts``: the stable time steps [s]; ``periods``: the stable control periods [s], with time
    steps of at most dt; ``gains``: stable factors on all gains; ``mode``: the least damped.
    """

    method: str
    dt: float
    period: float
    dts: StableSet
    periods: StableSet
    gains: StableSet
    mode: Mode
    stable: bool

    @property
    def largest_dt(self) -> float:
        """Largest stable dt [s] at this control period, which it cannot exceed; 0: none."""
        if self.period > self.dt:
            return min(self.dts.largest, self.period)
        return self.dts.largest

    @property
    def margin(self) -> float:
        """Largest stable dt over the dt in use, less 1."""
        return self.largest_dt / self.dt - 1

    @property
    def gain_margin(self) -> float:
        """Share by which all gains may grow together; negative where they must fall."""
        here = [k for k, (low, high) in enumerate(self.gains.intervals) if low <= 1 <= high]
        if not here:
            return self.gains.largest - 1
        last = here[0] == len(self.gains.intervals) - 1
        return inf if self.gains.open and last else self.gains.intervals[here[0]][1] - 1


def advise(loop: Loop, method: str) -> Advice:
    """Advice on a loop with one method.

    Raises UnknownName for a method that does not exist and InvalidValue for a dt or a period out
    of SHORTEST ... LONGEST, the times that are tried, and for a period that is no whole multiple
    of dt.
    """
    dt = scalar("dt [s]", loop.dt, lower=SHORTEST, upper=LONGEST / 2)
    whole = (
        dt if loop.period is None else scalar("period [s]", loop.period, lower=dt, upper=LONGEST)
    )
    parts = whole_steps(whole, dt)
    dts, periods = _times(loop, method, dt, whole)
    phi, gamma = discrete_map(loop.linear, method, whole / parts)
    law = loop.laws(whole)

    def with_gains(factor: float) -> Vector:
        return closed_loop_map(phi, gamma, law.scaled(factor), parts, loop.delay)

    gains = stable_set(lambda factor: is_stable(with_gains(factor)), *FACTORS)
    here, span = with_gains(1.0), whole
    if not np.isfinite(here).all():  # what overflows in a period grows in each time step
        here, span = phi, dt
    mode = modes(loop.linear.arm, here, span)[0]
    return Advice(method, dt, whole, dts, periods, gains, mode, is_stable(with_gains(1.0)))


def _times(loop: Loop, method: str, dt: float, whole: float) -> tuple[StableSet, StableSet]:
    """Stable time steps with control every ``whole`` [s], and stable periods with ``dt`` [s]."""

    def stable(span: float, parts: int) -> bool:
        phi, gamma = discrete_map(loop.linear, method, span / parts)
        return is_stable(closed_loop_map(phi, gamma, loop.laws(span), parts, loop.delay))

    if loop.period is None:
        both = stable_set(lambda h: stable(h, 1))
        return both, both
    dts = stable_parts(lambda h: stable(whole, round(whole / h)), whole)
    return dts, stable_set(lambda t: stable(t, ceil(t / dt * (1 - 1e-9))), dt)
