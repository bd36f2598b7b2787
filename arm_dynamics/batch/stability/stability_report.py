"""Stability of a sampled control loop: largest stable time step, period and gain factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.stability.discrete_map import discrete_map
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.linear_controller import (
    LinearController,
    Mode,
    closed_loop_map,
    is_stable,
    linear_controller,
    linearized_controller,
    modes,
)
from arm_dynamics.core.arrays import Matrix, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import Linearization, find_equilibrium, linearize
from arm_dynamics.simulation.simulation import steps_per_period

MIN_TIME_STEP, MAX_TIME_STEP = 1e-6, 1.0
"""Range of tried time steps [s]."""
PER_DECADE = 24
"""Tried values per decade."""
BOUND_TOLERANCE = 1e-9
"""Relative accuracy of a bound."""


@dataclass(frozen=True)
class StableSet:
    """Intervals in which a loop is stable.

    Attributes
    ----------
    intervals : tuple of (float, float)
        Ascending intervals (low, high) of the tried values.
    open : bool
        Whether the last one reaches the largest tried value, without a bound.

    """

    intervals: tuple[tuple[float, float], ...]
    open: bool

    @property
    def largest(self) -> float:
        """Upper bound of the lowest interval; 0 if nothing is stable, ∞ without a bound."""
        if not self.intervals:
            return 0.0
        return inf if self.open and len(self.intervals) == 1 else self.intervals[0][1]


def stable_set(
    stable: Callable[[float], bool], lowest: float = MIN_TIME_STEP, highest: float = MAX_TIME_STEP
) -> StableSet:
    """Return all intervals in which ``stable`` holds, scanned at 24 values per decade.

    Parameters
    ----------
    stable : callable
        Whether the loop is stable with a value.
    lowest, highest : float
        Range.

    Raises
    ------
    InvalidValue
        Unless 0 < lowest < highest.

    """
    if not 0 < lowest < highest:
        raise InvalidValue(
            f"stable set: range = {lowest:g} to {highest:g}; expected 0 < lowest < highest"
        )
    count = max(2, round(PER_DECADE * np.log10(highest / lowest)) + 1)
    grid = np.geomspace(lowest, highest, count).tolist()

    def middle(low: float, high: float) -> float | None:
        return sqrt(low * high) if high / low > 1 + BOUND_TOLERANCE else None

    intervals = _intervals(stable, grid, middle)
    return StableSet(intervals, bool(intervals) and intervals[-1][1] == grid[-1])


def stable_parts(
    stable: Callable[[float], bool], whole: float, shortest: float = MIN_TIME_STEP
) -> StableSet:
    """Return intervals of dt = whole / m >= shortest, m = 1, 2, ..., with a stable loop."""
    limit = max(2, round(whole / shortest))
    count = round(PER_DECADE * np.log10(limit)) + 2
    grid = sorted({round(m) for m in np.geomspace(1, limit, count).tolist()})

    def middle(low: float, high: float) -> float | None:
        return (low + high) // 2 if high - low > 1 else None

    found = _intervals(lambda m: stable(whole / m), [float(m) for m in grid], middle)
    intervals = tuple((whole / high, whole / low) for low, high in reversed(found))
    return StableSet(intervals, bool(found) and found[0][0] == 1)


def largest_stable_dt(
    stable: Callable[[float], bool], shortest: float = MIN_TIME_STEP, longest: float = MAX_TIME_STEP
) -> float:
    """Return the upper bound [s] of the lowest stable interval; 0: none, ∞: no bound found."""
    return stable_set(stable, shortest, longest).largest


def _intervals(
    stable: Callable[[float], bool],
    grid: Sequence[float],
    middle: Callable[[float, float], float | None],
) -> tuple[tuple[float, float], ...]:
    """Return the intervals between the bounds, each bound on its stable side."""
    flags = [stable(number) for number in grid]
    bounds = [grid[0]] if flags[0] else []
    for k in range(1, len(grid)):
        if flags[k] == flags[k - 1]:
            continue
        inside, outside = (grid[k], grid[k - 1]) if flags[k] else (grid[k - 1], grid[k])
        while (between := middle(min(inside, outside), max(inside, outside))) is not None:
            inside, outside = (between, outside) if stable(between) else (inside, between)
        bounds.append(inside)
    if flags[-1]:
        bounds.append(grid[-1])
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


FACTORS = (1e-2, 1e2)
"""Range of tried factors on all gains."""
LINEAR_CONTROLLERS = (Pid, GravityCompensation, ComputedTorque, Lqr)
"""Controllers with a known linear form; that of their subclasses is the same."""


@dataclass(frozen=True, eq=False)
class LinearLoop:
    """A linearized arm under a linear controller.

    Attributes
    ----------
    linear : Linearization
        Arm.
    controllers : callable
        Control period [s] -> controller.
    dt : float
        Time step in use [s].
    period : float, optional
        Control period [s]; None: every time step.
    delay : float
        Delay of the command [control periods], see ``closed_loop_map``.

    """

    linear: Linearization
    controllers: Callable[[float], LinearController]
    dt: float
    period: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class StabilityReport:
    """Stability of one loop with one integrator.

    Attributes
    ----------
    method : str
        Integrator.
    dt, period : float
        Time step and control period in use [s].
    dts : StableSet
        Stable time steps [s].
    periods : StableSet
        Stable control periods [s], with time steps of at most dt.
    gains : StableSet
        Stable factors on all gains.
    mode : Mode
        Least damped mode.
    stable : bool
        Whether the loop is stable as it is.

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
        """Largest stable time step [s] at this control period, its upper bound; 0: none."""
        if self.period > self.dt:
            return min(self.dts.largest, self.period)
        return self.dts.largest

    @property
    def margin(self) -> float:
        """Largest stable time step over that in use, minus 1."""
        return self.largest_dt / self.dt - 1

    @property
    def gain_margin(self) -> float:
        """Fraction by which all gains may grow together; negative if they must decrease."""
        here = [k for k, (low, high) in enumerate(self.gains.intervals) if low <= 1 <= high]
        if not here:
            return self.gains.largest - 1
        last = here[0] == len(self.gains.intervals) - 1
        return inf if self.gains.open and last else self.gains.intervals[here[0]][1] - 1


def controlled_loop(
    arm: ArmModel, controller: Controller, q: ArrayLike, dt: float, period: float
) -> LinearLoop:
    """Return the loop of an arm held at ``q`` by a controller.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    controller : Controller
        Controller of ``LINEAR_CONTROLLERS``.
    q : ArrayLike
        Configuration [rad or m], shape (nv,).
    dt, period : float
        Time step and control period [s].

    Raises
    ------
    InvalidValue
        If the configuration cannot be held, or the controller has no linear form.

    """
    state, command = find_equilibrium(arm, q, controller.interface)
    linear = linearize(arm, state, command)
    form = linearized_controller if isinstance(controller, ComputedTorque) else linear_controller
    return LinearLoop(linear, lambda span: form(controller, state.q, span), dt, period)


def analyze_stability(loop: LinearLoop, method: str) -> StabilityReport:
    """Analyze a loop with one integrator.

    Parameters
    ----------
    loop : LinearLoop
        Loop.
    method : str
        Integrator.

    Raises
    ------
    UnknownName
        If the integrator does not exist.
    InvalidValue
        If dt or the period is outside of the tried range, MIN_TIME_STEP to MAX_TIME_STEP, or the
        period is not an integer multiple of dt.

    """
    dt = check_float("dt [s]", loop.dt, lower=MIN_TIME_STEP, upper=MAX_TIME_STEP / 2)
    period = dt
    if loop.period is not None:
        period = check_float("period [s]", loop.period, above=0, upper=MAX_TIME_STEP)
    steps = steps_per_period(period, dt)
    dts, periods = _stable_times(loop, method, dt, period)
    phi, gamma = discrete_map(loop.linear, method, period / steps)
    controller = loop.controllers(period)

    def with_gains(factor: float) -> Matrix:
        return closed_loop_map(phi, gamma, controller.scaled(factor), steps, loop.delay)

    gains = stable_set(lambda factor: is_stable(with_gains(factor)), *FACTORS)
    here, span = with_gains(1.0), period
    if not np.isfinite(here).all():  # an overflow within a period: every step is unstable
        here, span = phi, dt
    mode = modes(loop.linear.arm, here, span)[0]
    stable = is_stable(with_gains(1.0))
    return StabilityReport(
        method, dt, period, dts=dts, periods=periods, gains=gains, mode=mode, stable=stable
    )


def _stable_times(
    loop: LinearLoop, method: str, dt: float, period: float
) -> tuple[StableSet, StableSet]:
    """Return the stable time steps at the ``period``, and the stable periods with ``dt`` [s]."""

    def stable(span: float, steps: int) -> bool:
        phi, gamma = discrete_map(loop.linear, method, span / steps)
        return is_stable(closed_loop_map(phi, gamma, loop.controllers(span), steps, loop.delay))

    if loop.period is None:
        both = stable_set(lambda h: stable(h, 1))
        return both, both
    dts = stable_parts(lambda h: stable(period, round(period / h)), period)
    return dts, stable_set(lambda t: stable(t, ceil(t / dt * (1 - 1e-9))), dt)
