"""Error-controlled integration between events: end stops, sticking, sliding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.friction import velocity_after_dry_friction
from arm_dynamics.simulation.integrators.integrator import (
    Integrator,
    System,
    jacobian_by_differences,
)

RTOL, ATOL = 1e-11, 1e-13
"""Tolerances of the local error of an entry, relative and absolute."""
STIFF = 300.0
"""Fastest rate times the remaining time above which the implicit solver is cheaper."""
MAX_EVENTS = 200
"""Events within one dt; more is chatter."""
EVENT_SAMPLES = np.linspace(0.0, 1.0, 9)[1:-1]
"""Fractions of a solver step at which a margin that starts at zero is evaluated."""
NUDGE = 1e-7
"""Relative step of the differences for the fastest rate."""
STOP, SPEED, HOLD = range(3)
"""Rows of the margins: to the end of a stop's range, to rest, to breaking away."""
MAX_EVALUATIONS = 300_000
"""Evaluations of ẏ per ``Modes``: ten seconds of five links in chaotic free fall take 190 000."""


class Adaptive(Integrator):
    """Integrate ẏ = f(y), y = (q, v, z), to a tolerance; restart at every event.

    Events: a joint enters or leaves an end stop, whose damping is discontinuous; a sliding joint
    comes to rest; the effort that holds a sticking joint exceeds its breakaway effort. At rest the
    accelerations' complementarity problem decides between sticking and sliding (``Modes``).

    Solvers: Dormand and Prince's order 8 (its dense output of order 7 finds the events), or Radau
    IIA where |f'| dt exceeds 300, as with a winding of microseconds. No state between calls: a
    joint with dry friction and v = 0 exactly is at rest. A solver's step that enters and leaves
    a stop within itself is not seen. Friction of rotors behind backlash is left to the plant.
    Sources: E. Hairer, S. Nørsett, G. Wanner, Solving Ordinary Differential Equations I (1993),
    II.5, II.6; Hairer and Wanner, II (1996), IV.8.
    """

    name: ClassVar[str] = "adaptive"
    order: ClassVar[int] = 8
    implicit_damping: ClassVar[str] = "everything"
    resolves_dry_friction: ClassVar[bool] = True

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt.

        Raises InvalidValue naming joint and dt when events chatter, the solver finds no step, or
        the motion takes more evaluations than ``Modes`` allows.
        """
        y = np.concatenate([q, v, z])
        try:
            with np.errstate(all="ignore"):  # divergence raises InvalidValue
                modes = Modes(system, y)
                y = _through(modes, y, dt)
        finally:
            system.set_end_stops(system.lower, system.upper)
        q[:], v[:], own = modes.split(y)
        if z.size:
            z[:] = own


def _through(modes: Modes, y: Vector, dt: float) -> Vector:
    """Return y after dt, event after event."""
    time, joint = 0.0, 0
    for _ in range(MAX_EVENTS):
        time, y, event = _until_event(modes, y, time, dt)
        if event is None:
            return y
        joint = event[1]
        modes.switch(y, *event)
    raise InvalidValue(
        f"adaptive: joint '{modes.system.joint_names[joint]}' chatters: more than {MAX_EVENTS}"
        f" events within dt = {dt:g} s, {time:.6g} s into it"
    )


def _until_event(
    modes: Modes, y: Vector, start: float, end: float
) -> tuple[float, Vector, tuple[int, int] | None]:
    """Return time [s], y and (kind, joint) of the first event, or those of ``end`` and None."""
    solver = _solver(modes, y, start, end)
    before = modes.margins(y)
    while solver.status == "running":
        try:
            problem = solver.step()
        except ValueError as error:  # too many evaluations, or of numbers that are not finite
            problem = str(error)
        if problem or not np.isfinite(solver.y).all():
            _reject(modes, solver.y, solver.t, end, problem or "it is not finite")
        after = modes.margins(solver.y)
        if (after < 0).any():
            time, event = _first(modes, solver, before, after)
            return time, np.array(solver.dense_output()(time)), event
        before = after
    return end, np.array(solver.y), None


def _reject(modes: Modes, y: Vector, time: float, dt: float, problem: str) -> NoReturn:
    """Raise InvalidValue with the fastest joint, the time step and the problem."""
    v = modes.split(y)[1]
    joint = int(np.argmax(np.abs(v)))
    raise InvalidValue(
        f"adaptive: cannot follow joint '{modes.system.joint_names[joint]}' at {v[joint]:.4g} rad/s"
        f" {time:.6g} s into dt = {dt:g} s: {problem}; use a smaller dt or a slower start"
    )


def _solver(modes: Modes, y: Vector, start: float, end: float) -> Any:
    """Return the explicit solver, or the implicit one where that is cheaper."""
    from scipy.integrate import DOP853, Radau  # noqa: PLC0415 - slow to import

    def jacobian(y: Vector) -> Vector:
        return jacobian_by_differences(lambda near: modes(start, near), y, NUDGE)

    slope = jacobian(y)
    if not np.isfinite(slope).all():
        _reject(modes, y, start, end, "its acceleration is not finite")
    if float(np.abs(np.linalg.eigvals(slope)).max()) * (end - start) <= STIFF:
        return DOP853(modes, start, y, end, rtol=RTOL, atol=ATOL)
    return Radau(modes, start, y, end, rtol=RTOL, atol=ATOL, jac=lambda _, y: jacobian(y))


def _first(
    modes: Modes, solver: Any, before: Vector, after: Vector
) -> tuple[float, tuple[int, int]]:
    """Return time and (kind, joint) of the first margin to pass zero in the last solver step."""
    dense = solver.dense_output()
    found = []
    for kind, joint in np.argwhere(after < 0).tolist():

        def margin(time: float, at: tuple[int, int] = (kind, joint)) -> float:
            return float(modes.margins(dense(time))[at])

        found.append((_zero(margin, before[kind, joint], solver.t_old, solver.t), (kind, joint)))
    return min(found)


def _zero(margin: Callable[[float], float], before: float, start: float, end: float) -> float:
    """Return the time at which a margin, ``before`` at the start, falls below zero."""
    if before <= 0:  # at zero to begin with: it may rise first
        samples = start + (end - start) * EVENT_SAMPLES
        above = [time for time in samples.tolist() if margin(time) > 0]
        if not above:
            return start
        start = above[-1]
    if margin(end) >= 0:
        return end
    from scipy.optimize import brentq  # noqa: PLC0415 - slow to import

    return float(brentq(margin, start, end, xtol=1e-16, rtol=8.9e-16))


class Modes:
    """ẏ = f(y), y = (q, v, z), in constant modes: in which end stop, sticking or sliding.

    Valid while ``margins`` are positive.

    side (nv,): -1 in the lower stop, 1 in the upper, 0 between. slide (nv,): the sign of v, by
    which dry friction acts. stuck: joints that friction holds, v_i = v̇_i = 0.
    """

    def __init__(self, system: System, y: Vector) -> None:
        self.system, self.nv, self.evaluations = system, system.lower.size, 0
        self.dry_friction_joints = np.flatnonzero(system.dry_friction_joints)
        q, v, _ = self.split(y)
        outward = (q >= system.upper) & (v > 0), (q <= system.lower) & (v < 0)
        upper, lower = (q > system.upper) | outward[0], (q < system.lower) | outward[1]
        self.side = upper.astype(float) - lower
        self.slide, self.stuck = np.zeros(self.nv), np.zeros(0, dtype=int)
        self._apply_sides(y)
        self.decide(y, {})

    def split(self, y: Vector) -> tuple[Vector, Vector, Vector]:
        """Return q, v and z of y."""
        return y[: self.nv], y[self.nv : 2 * self.nv], y[2 * self.nv :]

    def __call__(self, _: float, y: Vector) -> Vector:
        """Return ẏ = (v, v̇, n - λ z); raises InvalidValue after MAX_EVALUATIONS calls."""
        self.evaluations += 1
        if self.evaluations > MAX_EVALUATIONS:
            raise InvalidValue(f"more than {MAX_EVALUATIONS} evaluations of the accelerations")
        q, v, z = self.split(y)
        a = self.system.acceleration(q, v, z)
        if self.dry_friction_joints.size:
            a = self._add_dry_friction(q, v, z, a)[0]
        if not z.size:
            return np.concatenate([v, a])
        decay, source = self.system.act_dot_terms(q, v, z)
        return np.concatenate([v, a, source - decay * z])

    def _add_dry_friction(
        self, q: Vector, v: Vector, z: Vector, a: Vector
    ) -> tuple[Vector, Vector]:
        """Return v̇ with dry friction, and the friction reserve of each stuck joint [N·m].

        Sliding: λ_i = -f_i or b_i. Stuck: λ_s from v̇_s = 0, (M⁻¹)_ss λ_s = -v̇_s without it.
        """
        inverse = self.system.inverse_mass(q)
        forward, backward = self.system.dry_friction_bounds(q, v, z)
        effort = np.where(self.slide > 0, -forward, np.where(self.slide < 0, backward, 0.0))
        s = self.stuck
        a = a + inverse @ effort
        held = np.linalg.solve(inverse[np.ix_(s, s)], -a[s])
        a += inverse[:, s] @ held
        a[s] = 0.0
        return a, np.array([backward[s] - held, held + forward[s]])

    def decide(self, y: Vector, released: dict[int, float]) -> None:
        """Decide which joints at rest stick or slide; ``released`` ones slide in that direction.

        -f_i <= λ_i <= b_i,  λ_i = -f_i where v̇_i > 0, b_i where v̇_i < 0: the problem of
        ``velocity_after_dry_friction`` with accelerations in place of velocities.
        """
        q, v, z = self.split(y)
        r = self.dry_friction_joints
        self.slide[r], self.stuck = np.sign(v[r]), self.stuck[:0]
        for i, direction in released.items():
            self.slide[i] = direction
        rest = r[self.slide[r] == 0]
        if not rest.size:
            return
        a, _ = self._add_dry_friction(q, v, z, self.system.acceleration(q, v, z))
        inverse = self.system.inverse_mass(q)[np.ix_(rest, rest)]
        forward, backward = self.system.dry_friction_bounds(q, v, z)
        after = velocity_after_dry_friction(a[rest], inverse.copy(), forward[rest], backward[rest])
        self.slide[rest] = np.sign(after)
        self.stuck = rest[after == 0]

    def margins(self, y: Vector) -> Vector:
        """Return the margins of each mode (3, nv): STOP [rad], SPEED [rad/s], HOLD [N·m]."""
        q, v, z = self.split(y)
        lower, upper = self.system.lower, self.system.upper
        margins = np.full((3, self.nv), np.inf)
        inside, side = np.minimum(upper - q, q - lower), self.side
        margins[STOP] = np.where(side > 0, q - upper, np.where(side < 0, lower - q, inside))
        moving = self.slide != 0
        margins[SPEED, moving] = (self.slide * v)[moving]
        if self.stuck.size:
            _, left = self._add_dry_friction(q, v, z, self.system.acceleration(q, v, z))
            margins[HOLD, self.stuck] = left.min(axis=0)
        return margins

    def switch(self, y: Vector, kind: int, joint: int) -> None:
        """Set the modes after the end of margin (kind, joint); y is changed in place."""
        q, v, z = self.split(y)
        released = {}
        if kind == STOP:
            lower, upper = float(self.system.lower[joint]), float(self.system.upper[joint])
            at_lower = abs(q[joint] - lower) < abs(q[joint] - upper)
            q[joint] = lower if at_lower else upper
            entered = self.side[joint] == 0
            self.side[joint] = (-1.0 if at_lower else 1.0) if entered else 0.0
        elif kind == SPEED:
            v[joint] = 0.0
            v[self.slide * v < 0] = 0.0  # those that came to rest in the same instant
        else:
            _, left = self._add_dry_friction(q, v, z, self.system.acceleration(q, v, z))
            k = int(np.flatnonzero(self.stuck == joint)[0])
            released = {joint: -1.0 if left[0, k] < left[1, k] else 1.0}
        self._apply_sides(y)
        self.decide(y, released)

    def _apply_sides(self, y: Vector) -> None:
        """Set the end stops by ``side``: inactive, or active also where the joint just left."""
        q, (lower, upper) = y[: self.nv], (self.system.lower, self.system.upper)
        down, up = self.side < 0, self.side > 0
        q[up] = np.maximum(q, np.nextafter(upper, np.inf))[up]
        q[down] = np.minimum(q, np.nextafter(lower, -np.inf))[down]
        self.system.set_end_stops(
            np.where(up, upper, np.where(down, lower, -np.inf)),
            np.where(up, upper, np.where(down, lower, np.inf)),
        )
