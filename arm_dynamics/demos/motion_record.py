"""Motions of an arm under one constant command, sampled for figures."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import steps_per_period
from arm_dynamics.simulation.trace import MotionRecord

INTEGRATOR = "rk4"
"""Integrator of the demonstrations."""


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
    """Samples of the motion from ``start`` under one constant command.

    ``seconds`` in samples every ``interval`` [s], in time steps of dt [s]. Raises InvalidValue
    for times that are no whole multiples, and whatever ``Plant.step`` refuses.
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
    """State at ``q`` [rad], ``v`` [rad/s] (default: rest), and the command of no effort."""
    nothing = np.zeros(arm.nv)
    return State.of(q, v, nothing), Command.checked("effort", nothing, arm.nv)
