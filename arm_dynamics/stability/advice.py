"""What the stability of a loop says about a method: its largest time step and its margins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.linearization import Linearization
from arm_dynamics.simulation import whole_steps
from arm_dynamics.stability.discrete import discrete_map
from arm_dynamics.stability.law import Law
from arm_dynamics.stability.loop import Mode, closed_loop_map, is_stable, modes
from arm_dynamics.stability.search import StableSet, stable_parts, stable_set

Laws = Callable[[float], Law]
"""The law that is called every so many seconds."""
FACTORS = (1e-2, 1e2)
"""Gains are tried from this to this many times as large."""


@dataclass(frozen=True, eq=False)
class Loop:
    """A linearized arm and the law that controls it.

    The law is called every ``period`` [s], or every time step (None); ``delay`` as in
    ``closed_loop_map``; dt [s] is the time step in use.
    """

    linear: Linearization
    laws: Laws
    dt: float
    period: float | None = None
    delay: int = 0


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

    Raises UnknownName for a method that does not exist and InvalidValue for times that are not
    positive, and for a period that is no whole multiple of dt.
    """
    dt = scalar("dt [s]", loop.dt, above=0)
    whole = dt if loop.period is None else scalar("period [s]", loop.period, lower=dt)
    parts = whole_steps(whole, dt)

    def closed(span: float, parts: int, factor: float = 1.0) -> Vector:
        phi, gamma = discrete_map(loop.linear, method, span / parts)
        return closed_loop_map(phi, gamma, loop.laws(span).scaled(factor), parts, loop.delay)

    if loop.period is None:
        periods = dts = stable_set(lambda h: is_stable(closed(h, 1)))
    else:
        dts = stable_parts(lambda h: is_stable(closed(whole, round(whole / h))), whole)
        periods = stable_set(lambda t: is_stable(closed(t, ceil(t / dt * (1 - 1e-9)))), dt)
    phi, gamma = discrete_map(loop.linear, method, whole / parts)
    law = loop.laws(whole)

    def with_gains(factor: float) -> Vector:
        return closed_loop_map(phi, gamma, law.scaled(factor), parts, loop.delay)

    gains = stable_set(lambda factor: is_stable(with_gains(factor)), *FACTORS)
    mode = modes(loop.linear.arm, with_gains(1.0), whole)[0]
    return Advice(method, dt, whole, dts, periods, gains, mode, is_stable(with_gains(1.0)))
