"""Stability of a sampled control loop: largest stable time step, period and gain factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.stability.discrete_map import discrete_map
from arm_dynamics.batch.stability.stable_set import (
    MAX_TIME_STEP,
    MIN_TIME_STEP,
    StableSet,
    stable_parts,
    stable_set,
)
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
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
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import Linearization, find_equilibrium, linearize
from arm_dynamics.simulation.simulation import steps_per_period

FACTORS = (1e-2, 1e2)
"""Range of tried factors on all gains."""
LINEAR_CONTROLLERS = (Pid, GravityCompensation, ComputedTorque)
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
    whole = (
        dt
        if loop.period is None
        else check_float("period [s]", loop.period, lower=dt, upper=MAX_TIME_STEP)
    )
    parts = steps_per_period(whole, dt)
    dts, periods = _times(loop, method, dt, whole)
    phi, gamma = discrete_map(loop.linear, method, whole / parts)
    controller = loop.controllers(whole)

    def with_gains(factor: float) -> Matrix:
        return closed_loop_map(phi, gamma, controller.scaled(factor), parts, loop.delay)

    gains = stable_set(lambda factor: is_stable(with_gains(factor)), *FACTORS)
    here, span = with_gains(1.0), whole
    if not np.isfinite(here).all():  # an overflow within a period: every step is unstable
        here, span = phi, dt
    mode = modes(loop.linear.arm, here, span)[0]
    return StabilityReport(method, dt, whole, dts, periods, gains, mode, is_stable(with_gains(1.0)))


def _times(loop: LinearLoop, method: str, dt: float, whole: float) -> tuple[StableSet, StableSet]:
    """Stable time steps with control period ``whole`` [s], and stable periods with ``dt`` [s]."""

    def stable(span: float, parts: int) -> bool:
        phi, gamma = discrete_map(loop.linear, method, span / parts)
        return is_stable(closed_loop_map(phi, gamma, loop.controllers(span), parts, loop.delay))

    if loop.period is None:
        both = stable_set(lambda h: stable(h, 1))
        return both, both
    dts = stable_parts(lambda h: stable(whole, round(whole / h)), whole)
    return dts, stable_set(lambda t: stable(t, ceil(t / dt * (1 - 1e-9))), dt)
