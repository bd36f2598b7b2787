"""One time step of an integrator on the linearized arm, as matrices.

What the stability of a loop says about a method: its largest time step and its margins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from arm_dynamics.batch.stability.stable_set import (
    MAX_TIME_STEP,
    MIN_TIME_STEP,
    StableSet,
    stable_parts,
    stable_set,
)
from arm_dynamics.control.linear_controller import (
    LinearController,
    Mode,
    closed_loop_map,
    is_stable,
    modes,
)
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.simulation.actuator_states import update_groups
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.integrators.exponential_step import phi_functions
from arm_dynamics.simulation.linearization import Linearization, zero_order_hold
from arm_dynamics.simulation.simulation import steps_per_period


class _LinearMotion:
    """v̇ and ż as rows of A y + B u: what the integrators advance, with λ as of the arm."""

    def __init__(self, linear: Linearization) -> None:
        nv = linear.arm.nv
        self.joint_names, self.groups = linear.arm.joint_names, update_groups(linear.arm)
        self.lower, self.upper = np.full(nv, -np.inf), np.full(nv, np.inf)
        self.dry_friction_joints = np.zeros(nv, dtype=bool)
        self.linear, self.push = linear, np.zeros(linear.B.shape[0])

    def acceleration(self, q: Vector, v: Vector, z: Vector) -> Vector:
        """v̇."""
        return self._rate(q, v, z)[q.size : 2 * q.size]

    def implicit_acceleration(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """(I - dt A_vz dt φ₁(-λ dt) A_zv)⁻¹ v̇: with what z, relaxed over dt, gives back."""
        nv, A = q.size, self.linear.A
        reach = dt * phi_functions(self.linear.decay * dt)[0]
        back = A[nv : 2 * nv, 2 * nv :] @ (reach[:, None] * A[2 * nv :, nv : 2 * nv])
        settled: Vector = np.linalg.solve(np.eye(nv) - dt * back, self.acceleration(q, v, z))
        return settled

    def act_dot_terms(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """λ, and n from ż = n - λ z."""
        decay = self.linear.decay
        return decay.copy(), self._rate(q, v, z)[2 * q.size :] + decay * z

    def dry_friction_bounds(self, q: Vector, v: Vector, z: Vector) -> tuple[Vector, Vector]:
        """None."""
        return np.zeros(q.size), np.zeros(q.size)

    def inverse_mass(self, q: Vector) -> Vector:
        """Of no use without dry friction."""
        return np.eye(q.size)

    def set_end_stops(self, lower: Vector, upper: Vector) -> None:
        """There are none."""

    def _rate(self, q: Vector, v: Vector, z: Vector) -> Vector:
        rate: Vector = self.linear.A @ np.concatenate([q, v, z]) + self.push
        return rate


def discrete_map(linear: Linearization, method: str, dt: float) -> tuple[Vector, Vector]:
    """Φ (n, n) and Γ (n, nv) of δy⁺ = Φ δy + Γ δu, one time step dt [s] of ``method``.

    The method itself takes the step, from each unit vector: linear methods make linear maps.
    "adaptive" is exact: e^(A dt). Equals the derivative of ``Plant.step`` where the arm is at
    rest in balance and no stop, limit or dry friction acts. Raises UnknownName for a method.
    """
    if find_integrator(method).resolves_dry_friction:
        return zero_order_hold(linear.A, linear.B, dt)
    motion, step = _LinearMotion(linear), find_integrator(method)
    n, m = linear.B.shape
    nv, image = linear.arm.nv, np.empty((n + m, n))
    for k in range(n + m):
        y = np.zeros(n)
        motion.push = linear.B[:, k - n] if k >= n else np.zeros(n)
        if k < n:
            y[k] = 1.0
        step.advance(motion, y[:nv], y[nv : 2 * nv], y[2 * nv :], dt)
        image[k] = y
    return image[:n].T.copy(), image[n:].T.copy()


Laws = Callable[[float], LinearController]
"""The law that is called every so many seconds."""
FACTORS = (1e-2, 1e2)
"""Gains are tried from this to this many times as large."""


@dataclass(frozen=True, eq=False)
class LinearLoop:
    """A linearized arm and the law that controls it.

    The law is called every ``period`` [s], or every time step (None); ``delay`` [periods] as
    in ``closed_loop_map``; dt [s] is the time step in use.
    """

    linear: Linearization
    controllers: Laws
    dt: float
    period: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class StabilityReport:
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


def analyze_stability(loop: LinearLoop, method: str) -> StabilityReport:
    """Advice on a loop with one method.

    Raises UnknownName for a method that does not exist and InvalidValue for a dt or a period out
    of SHORTEST ... LONGEST, the times that are tried, and for a period that is no whole multiple
    of dt.
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
    law = loop.controllers(whole)

    def with_gains(factor: float) -> Vector:
        return closed_loop_map(phi, gamma, law.scaled(factor), parts, loop.delay)

    gains = stable_set(lambda factor: is_stable(with_gains(factor)), *FACTORS)
    here, span = with_gains(1.0), whole
    if not np.isfinite(here).all():  # what overflows in a period grows in each time step
        here, span = phi, dt
    mode = modes(loop.linear.arm, here, span)[0]
    return StabilityReport(method, dt, whole, dts, periods, gains, mode, is_stable(with_gains(1.0)))


def _times(loop: LinearLoop, method: str, dt: float, whole: float) -> tuple[StableSet, StableSet]:
    """Stable time steps with control every ``whole`` [s], and stable periods with ``dt`` [s]."""

    def stable(span: float, parts: int) -> bool:
        phi, gamma = discrete_map(loop.linear, method, span / parts)
        return is_stable(closed_loop_map(phi, gamma, loop.controllers(span), parts, loop.delay))

    if loop.period is None:
        both = stable_set(lambda h: stable(h, 1))
        return both, both
    dts = stable_parts(lambda h: stable(whole, round(whole / h)), whole)
    return dts, stable_set(lambda t: stable(t, ceil(t / dt * (1 - 1e-9))), dt)
