"""Error-controlled integration between events: end stops, sticking, sliding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.integrators.integrator import Integrator, System
from arm_dynamics.simulation.integrators.switching import Modes

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


class Adaptive(Integrator):
    """Integrate ẏ = f(y), y = (q, v, z), to a tolerance; restart at every event.

    Events: a joint enters or leaves an end stop, whose damping is discontinuous; a sliding joint
    comes to rest; the effort that holds a sticking joint exceeds its breakaway effort. At rest the
    accelerations' complementarity problem decides between sticking and sliding (``Modes``).

    Solvers: Dormand and Prince's order 8 (its dense output of order 7 finds the events), or Radau
    IIA where |f'| dt exceeds 300, as with a winding of microseconds. No state between calls: a
    joint with dry friction and v = 0 exactly is at rest. A solver's step that enters and leaves
    a stop within itself is not seen. Friction of rotors behind gear play stays the plant's.
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
        _step(solver, modes, end)
        after = modes.margins(solver.y)
        if (after < 0).any():
            time, event = _first(modes, solver, before, after)
            return time, np.array(solver.dense_output()(time)), event
        before = after
    return end, np.array(solver.y), None


def _step(solver: Any, modes: Modes, dt: float) -> None:
    """Advance the solver by one step; raises InvalidValue if no step is found."""
    try:
        problem = solver.step()
    except ValueError as error:  # more evaluations than allowed, or of numbers that are not finite
        problem = str(error)
    if problem or not np.isfinite(solver.y).all():
        _refuse(modes, solver.y, solver.t, dt, problem or "it is not finite")


def _refuse(modes: Modes, y: Vector, time: float, dt: float, problem: str) -> NoReturn:
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

    slope = _slope(modes, y)
    if not np.isfinite(slope).all():
        _refuse(modes, y, start, end, "its acceleration is not finite")
    if float(np.abs(np.linalg.eigvals(slope)).max()) * (end - start) <= STIFF:
        return DOP853(modes, start, y, end, rtol=RTOL, atol=ATOL)
    return Radau(modes, start, y, end, rtol=RTOL, atol=ATOL, jac=lambda _, y: _slope(modes, y))


def _slope(modes: Modes, y: Vector) -> Vector:
    """Return ∂f/∂y by differences."""
    slope, here = np.empty((y.size, y.size)), modes(0.0, y)
    for k in range(y.size):
        near = y.copy()
        near[k] += NUDGE * max(1.0, abs(y[k]))
        slope[:, k] = (modes(0.0, near) - here) / (near[k] - y[k])
    return slope


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
