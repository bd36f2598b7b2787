"""One motion of one arm, sampled: what every figure is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.dynamics import kinetic_energy, potential_energy
from arm_dynamics.kinematics import chain_points
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.simulation import whole_steps
from arm_dynamics.state import Command, State

METHOD = "rk4"
"""Integrator of the demonstrations."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Samples of a motion: time (n,) [s]; q [rad], v [rad/s], tau [N·m], each (n, nv)."""

    arm: ArmModel
    time: Vector
    q: Vector
    v: Vector
    tau: Vector

    @cached_property
    def kinetic(self) -> Vector:
        """T(q, v) (n,) [J]."""
        pairs = zip(self.q, self.v, strict=True)
        return frozen([kinetic_energy(self.arm, q, v) for q, v in pairs])

    @cached_property
    def potential(self) -> Vector:
        """U(q) (n,) [J]."""
        return frozen([potential_energy(self.arm, q) for q in self.q])

    @property
    def energy(self) -> Vector:
        """T + U (n,) [J]."""
        return frozen(self.kinetic + self.potential)

    @cached_property
    def points(self) -> Vector:
        """Origins of the joints and of the tool (n, nv + 1, 3) [m]."""
        return frozen([chain_points(self.arm, q) for q in self.q])

    @property
    def tool(self) -> Vector:
        """Positions of the tool (n, 3) [m]."""
        return frozen(self.points[:, -1])

    def work(self, power: Vector) -> Vector:
        """∫ power dt (n,) [J] of ``power`` (n,) [W] by the trapezoidal rule."""
        mean = (power[1:] + power[:-1]) / 2
        return frozen(np.concatenate([[0.0], np.cumsum(mean * np.diff(self.time))]))


def record(
    arm: ArmModel,
    start: State,
    command: Command,
    *,
    seconds: float,
    interval: float,
    dt: float,
    method: str = METHOD,
) -> Trace:
    """Samples of the motion from ``start`` under one constant command.

    ``seconds`` in samples every ``interval`` [s], in time steps of dt [s]. Raises InvalidValue
    for times that are no whole multiples, and whatever ``Plant.step`` refuses.
    """
    plant, steps = Plant(arm, method), whole_steps(interval, dt)
    states = [start]
    for k in range(whole_steps(seconds, interval)):
        end = start.time + (k + 1) * steps * dt
        states.append(plant.step(states[-1], command, dt, steps, end=end))
    return Trace(
        arm,
        frozen(np.arange(len(states)) * interval),
        frozen([state.q for state in states]),
        frozen([state.v for state in states]),
        frozen([state.tau for state in states]),
    )


def released(arm: ArmModel, q: Vector, v: Vector | None = None) -> tuple[State, Command]:
    """State at ``q`` [rad], ``v`` [rad/s] (default: rest), and the command of no effort."""
    nothing = np.zeros(arm.nv)
    return State.of(q, v, nothing), Command.checked("effort", nothing, arm.nv)
