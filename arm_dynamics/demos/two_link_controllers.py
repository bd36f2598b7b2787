"""The task-space controllers that the two-link arm was published with.

Their joint-space part is ``VelocityPid``; here is what asks it for joint velocities: damped least
squares along a line of the tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import NO_MEMORY
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.trajectories.joint_splines import cubic_trajectory
from arm_dynamics.core.arrays import Vector, check_vector
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics import jacobian, jacobian_derivative, pose
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.trace import MotionRecord

GAINS = {"J1": {"kv": 100.0, "kx": 200.0, "ka": 0.5}, "J2": {"kv": 20.0, "kx": 50.0, "ka": 0.05}}
"""As published: Kp, Ki, Kd of the velocity error."""
DAMPING = 0.05
"""λ of J# = Jᵀ (J Jᵀ + λ² 1)⁻¹ [m]."""
FEEDBACK = 4.0
"""Rate [1/s] at which the tool's error is taken back in task space."""
UNLIMITED = 1e6
"""Effort limit [N·m] of the published arm, which has none."""
PLANE = [0, 2]
"""x and z: the arm's vertical plane."""

ReferenceFunction = Callable[[float, Vector, Vector, Vector], tuple[Vector, Vector]]
"""(t, q, q̇, q_r) → q̇_r, q̈_r; q_r is the integral of q̇_r."""


@dataclass(frozen=True, eq=False)
class Cubic:
    """x(t) = start + (end - start) (3 s² - 2 s³), s = t / T up to 1."""

    start: Vector
    end: Vector
    duration: float

    @classmethod
    def between(cls, start: Sequence[float], end: Sequence[float], duration: float) -> Cubic:
        """From lists."""
        return cls(check_vector("start", start), check_vector("end", end), duration)

    def at(self, t: float) -> tuple[Vector, Vector, Vector]:
        """x, ẋ, ẍ at t [s]."""
        way, T = self.end - self.start, self.duration
        s = min(t / T, 1.0)
        if s == 1.0:
            return self.end, 0 * way, 0 * way
        slope, bend = (6 * s - 6 * s * s) / T, (6 - 12 * s) / T**2
        return self.start + way * (3 * s * s - 2 * s**3), way * slope, way * bend


def resolved_rate(arm: ArmModel, way: Cubic) -> ReferenceFunction:
    """q̇_r = J#(q_r) ẋ_r: rates of the reference's own joints, without feedback of the tool."""

    def asked(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q, v
        _, rate, bend = way.at(t)
        inverse, _ = _inverse(arm, q_r, np.zeros_like(q_r))
        v_r = inverse @ rate
        _, change = _inverse(arm, q_r, v_r)
        return v_r, change @ rate + inverse @ bend

    return asked


def task_space(arm: ArmModel, way: Cubic) -> ReferenceFunction:
    """q̇_r = J#(q) (ẋ_r + k (x_r - x)), k = FEEDBACK."""

    def asked(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q_r
        x, rate, bend = way.at(t)
        error = x - pose(arm, q)[0][PLANE]
        inverse, change = _inverse(arm, q, v)
        wanted = rate + FEEDBACK * error
        slope = bend + FEEDBACK * (rate - jacobian(arm, q)[PLANE] @ v)
        return inverse @ wanted, change @ wanted + inverse @ slope

    return asked


class RateControl(VelocityPid):
    """VelocityPid with the published gains along q_r = ∫ q̇_r dt, its memory."""

    def __init__(self, arm: ArmModel, asked: ReferenceFunction) -> None:
        super().__init__(arm, GAINS)
        self.asked = asked
        self.reset(State.of(arm.configuration("initial")))

    def reset(self, state: State) -> None:
        """Begin where the arm is."""
        super().reset(state)
        self._followed = state.q

    @property
    def memory(self) -> Vector:
        """q_r (nv,) [rad]."""
        memory: Vector = self._followed.copy()
        return memory

    def remember(self, memory: Vector) -> None:
        """Go on from q_r (nv,) [rad]."""
        self._followed = memory.copy()

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m]; the reference is not used."""
        v_r, a_r = self.asked(state.time, state.q, state.v, self._followed)
        command = super().update(state, Reference(self._followed, v_r, a_r), dt)
        self._followed = self._followed + dt * v_r
        return command

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """As in VelocityPid, and q̇_r."""
        v_r, a_r = self.asked(state.time, state.q, state.v, memory)
        asked = Reference(memory, v_r, a_r)
        return super().instant(state, asked, NO_MEMORY, acceleration)[0], v_r


def run(
    arm: ArmModel,
    start: Sequence[float],
    asked: ReferenceFunction,
    *,
    seconds: float,
    period: float,
    duration: float,
    tolerance: float,
) -> MotionRecord:
    """The arm from rest at ``start`` in continuous time, along a way of ``duration`` [s]."""
    free = replace(arm, joints=tuple(replace(j, effort=UNLIMITED) for j in arm.joints))
    still = cubic_trajectory([start, start], [0.0, duration])
    return simulate_closed_loop(
        free, RateControl(free, asked), still, State.of(start),
        seconds=seconds, period=period, continuous=True, tolerance=tolerance,
    )  # fmt: skip


def _inverse(arm: ArmModel, q: Vector, v: Vector) -> tuple[Vector, Vector]:
    """J# (nv, 2) and its rate of change along v."""
    J, slope = jacobian(arm, q)[PLANE], jacobian_derivative(arm, q, v)[PLANE]
    middle = np.linalg.inv(J @ J.T + DAMPING**2 * np.eye(len(PLANE)))
    inverse = J.T @ middle
    return inverse, slope.T @ middle - inverse @ (slope @ J.T + J @ slope.T) @ middle
