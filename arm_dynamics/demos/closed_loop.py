"""One motion of an arm under a law: sampled as the law sees it, at every control period."""

from __future__ import annotations

from arm_dynamics.arrays import frozen
from arm_dynamics.controllers.base import Controller
from arm_dynamics.demos.trace import METHOD, Trace
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.simulation import whole_steps
from arm_dynamics.state import State
from arm_dynamics.trajectories.joint_trajectory import Trajectory


def followed(
    arm: ArmModel,
    law: Controller,
    trajectory: Trajectory,
    start: State,
    *,
    seconds: float,
    period: float,
    dt: float,
    method: str = METHOD,
) -> Trace:
    """``arm`` from ``start`` under ``law``, whose tau [N·m] are the commanded efforts.

    The law is told of the reference and of the state every ``period`` [s]; in between the arm
    takes time steps of dt [s]. Raises InvalidValue for times that are no whole multiples.
    """
    plant, steps = Plant(arm, method), whole_steps(period, dt)
    law.reset(start)
    state, rows = start, []
    for k in range(whole_steps(seconds, period) + 1):
        command = law.update(state, trajectory.at(state.time), period if k else 0.0)
        rows.append((state.time, state.q, state.v, command.value))
        state = plant.step(state, command, dt, steps, end=start.time + (k + 1) * steps * dt)
    time, q, v, tau = map(frozen, zip(*rows, strict=True))
    return Trace(arm, time, q, v, tau)
