"""Simulate an arm under one constant command, sampled for figures."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import steps_per_period
from arm_dynamics.simulation.trace import MotionRecord

INTEGRATOR = "rk4"
"""Default integrator of the demonstrations."""


def simulate_constant_command(
    arm: ArmModel,
    start: State,
    command: Command,
    *,
    seconds: float,
    interval: float,
    dt: float,
    integrator: str = INTEGRATOR,
) -> MotionRecord:
    """Simulate the motion from ``start`` under one constant command.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    start : State
        Initial state.
    command : Command
        Command of every time step.
    seconds : float
        Duration [s], a multiple of ``interval``.
    interval : float
        Time [s] between two samples, a multiple of ``dt``.
    dt : float
        Time step [s].
    integrator : str
        Name of the integrator.

    Returns
    -------
    MotionRecord
        The sampled states.

    Raises
    ------
    InvalidValue
        If a time is not a multiple of the shorter one, or ``Plant.step`` rejects the command.

    """
    plant, steps = Plant(arm, integrator), steps_per_period(interval, dt)
    states = [start]
    for k in range(steps_per_period(seconds, interval)):
        end = start.time + (k + 1) * steps * dt
        states.append(plant.step(states[-1], command, dt, steps, end=end))
    return MotionRecord(
        arm,
        as_readonly(np.arange(len(states)) * interval),
        as_readonly([state.q for state in states]),
        as_readonly([state.v for state in states]),
        as_readonly([state.tau for state in states]),
    )


def release_from_rest(arm: ArmModel, q: Vector, v: Vector | None = None) -> tuple[State, Command]:
    """Return the state at ``q`` [rad], ``v`` [rad/s] (default: 0), and a zero effort command."""
    zero = np.zeros(arm.nv)
    return State.of(q, v, zero), Command.checked("effort", zero, arm.nv)
