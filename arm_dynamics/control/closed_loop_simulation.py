"""Closed-loop simulation: in discrete time as on hardware, or in continuous time."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from math import nextafter

import numpy as np
from scipy.integrate import solve_ivp

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import steps_per_period
from arm_dynamics.simulation.trace import MotionRecord

PERTURBATION = 1e-3
"""Change of the state [rad, rad/s] and of the time [s] that reveals an undeclared memory."""


def simulate_closed_loop(
    arm: ArmModel,
    controller: Controller,
    trajectory: Trajectory,
    start: State,
    *,
    seconds: float,
    period: float,
    dt: float | None = None,
    integrator: str = "rk4",
    continuous: bool = False,
    tolerance: float = 1e-10,
) -> MotionRecord:
    """Simulate an arm under a controller along a trajectory.

    In discrete time (default) the controller computes a command every ``period``, which is held for
    that period (zero-order hold).

    With ``continuous`` the limit of a vanishing period is computed. The controller's memory m
    (integrals, filters) becomes part of one differential equation::

        M(q) v̇ + C(q, v) v + g(q) = tau(u, v, z) - friction + end stops,   ż = n - λ z,
        u, ṁ = controller(t, q, v, m)

    It is solved by Dormand and Prince's method of order 8, or LSODA if actuators have states z, and
    restarts at every knot of the trajectory.

    Parameters
    ----------
    arm : ArmModel
        Simulated arm; the controller's model may differ.
    controller : Controller
        Controller; it is reset.
    trajectory : Trajectory
        Reference over time.
    start : State
        Initial state.
    seconds : float
        Duration [s].
    period : float
        Control period, and time between samples in both cases [s].
    dt : float, optional
        Time step of the plant [s]; default: one per period. Discrete time only.
    integrator : str
        Integrator of the plant. Discrete time only.
    continuous : bool
        Continuous instead of discrete time.
    tolerance : float
        Relative local error in continuous time.

    Returns
    -------
    MotionRecord
        Samples with the commands as ``tau``.

    Raises
    ------
    InvalidValue
        For times that are not whole multiples. In continuous time also for a joint with dry
        friction, an actuator with prescribed motion, a controller whose memory has no continuous
        form, and if the solver fails.

    """
    dt = period if dt is None else dt
    count, steps = steps_per_period(seconds, period), steps_per_period(period, dt)
    start = require_state(start)
    if check_type(bool, "continuous", continuous):
        loop = _ContinuousLoop(arm, controller, trajectory, start)
        times: Vector = start.time + period * np.arange(count + 1, dtype=np.float64)
        return loop.run(times, check_float("tolerance", tolerance, above=0, upper=1e-2))
    controller.follow_references(trajectory.at)
    controller.reset(start)
    plant, state, rows = Plant(arm, integrator), start, []
    for k in range(count + 1):
        command = controller.update(state, trajectory.at(state.time), period if k else 0.0)
        rows.append((state.time, state.q, state.v, command.value))
        state = plant.step(state, command, dt, steps, end=start.time + (k + 1) * steps * dt)
    time, q, v, tau = map(as_readonly, zip(*rows, strict=True))
    return MotionRecord(arm, time, q, v, tau)


class _ContinuousLoop:
    """ẏ = f(t, y), y = (q, v, z, m): arm, actuator states and the controller's memory."""

    def __init__(
        self, arm: ArmModel, controller: Controller, trajectory: Trajectory, start: State
    ) -> None:
        self.arm, self.controller, self.trajectory = arm, controller, trajectory
        self.motion = _smooth_equations(arm)
        controller.reset(start)
        act = start.act if start.act.size else arm.initial_act
        self.y = np.concatenate([start.q, start.v, act, controller.memory])
        self.ends = np.cumsum([arm.nv, arm.nv, arm.na])
        self._rate(start.time, self.y)  # a controller without a continuous form rejects itself
        _require_declared_memory(controller, start, trajectory)

    def run(self, times: Vector, tolerance: float) -> MotionRecord:
        """Return samples at increasing ``times`` (n,) [s]; at a knot those after it."""
        y, rows, method = self.y, [], "LSODA" if self.arm.na else "DOP853"
        first, final, path = times[0], times[-1], self.trajectory
        resolution = 1e-12 * (final - first)
        knots = (path.start, path.end, *getattr(path, "knots", ()))
        between = {float(knot) for knot in knots if first + resolution < knot < final - resolution}
        for begin, end in pairwise([first, *sorted(between), final]):
            last = nextafter(end, begin)  # at a knot the reference may jump
            inside = times[(times >= begin) & (times < end)]
            solved = solve_ivp(
                lambda t, y, last=last: self._rate(min(t, last), y)[0],
                (begin, end), y, method, np.append(inside, end),
                rtol=tolerance, atol=tolerance / 10,
            )  # fmt: skip
            if not solved.success:
                raise InvalidValue(
                    f"continuous closed loop: no solution to {end:g} s: {solved.message}"
                )
            rows.extend(solved.y.T[:-1])
            y = solved.y[:, -1]
        samples = np.array([*rows, y])
        tau = [self._rate(t, row)[1] for t, row in zip(times.tolist(), samples, strict=True)]
        q, v = samples[:, : self.ends[0]], samples[:, self.ends[0] : self.ends[1]]
        return MotionRecord(
            self.arm, as_readonly(times), as_readonly(q), as_readonly(v), as_readonly(tau)
        )

    def _rate(self, t: float, y: Vector) -> tuple[Vector, Vector]:
        """Return ẏ at ``t`` [s], and the command (nv,)."""
        q, v, act, memory = np.split(y, self.ends)
        motion, interface = self.motion, self.controller.interface

        def acceleration(command: Vector) -> Vector:
            motion.set_command(Command(interface, command))
            return motion.acceleration(q, v, act)

        state, reference = State(t, q, v, np.full(q.size, np.nan), act), self.trajectory.at(t)
        command, memory_rate = self.controller.instant(state, reference, memory, acceleration)
        a = acceleration(command.value).copy()
        act_dot = act
        if act.size:
            decay, source = motion.act_dot_terms(q, v, act)
            act_dot = source - decay * act
        return np.concatenate([v, a, act_dot, memory_rate]), command.value


def _smooth_equations(arm: ArmModel) -> EquationsOfMotion:
    """Return the equations; raises InvalidValue for dry friction or prescribed motion, by joint."""
    motion = EquationsOfMotion(arm)
    for joint, actuator, has_dry_friction in zip(
        arm.joints, arm.actuators, motion.dry_friction_joints, strict=True
    ):
        where = f"continuous closed loop: joint '{joint.name}'"
        if actuator.prescribes_motion:
            raise InvalidValue(f"{where}: actuator with prescribed motion; expected an effort")
        if has_dry_friction or actuator.has_internal_friction:
            friction = joint.friction + actuator.breakaway_effort
            raise InvalidValue(
                f"{where}: dry friction = {friction:g} N·m; expected 0; use the sampled loop with a"
                " short period, or set friction to 0"
            )
    return motion


def _require_declared_memory(controller: Controller, start: State, trajectory: Trajectory) -> None:
    """Raise InvalidValue if the controller stores more than its ``memory`` contains."""
    twin = deepcopy(controller, {id(controller.arm): controller.arm})
    reference, moved = (
        trajectory.at(start.time),
        State.of(start.q + PERTURBATION, start.v + PERTURBATION),
    )
    twin.reset(start)
    memory, before = twin.memory, twin.update(start, reference, 0.0).value
    for _ in range(2):
        twin.update(moved, reference, PERTURBATION)
    twin.remember(memory)
    if not np.array_equal(before, twin.update(start, reference, 0.0).value):
        raise InvalidValue(
            f"controller {type(controller).__name__}: its command depends on earlier updates, but"
            f" its memory = {memory} does not; expected a controller that has its integrals and"
            " filters in 'memory' and sets them in 'remember'"
        )
