"""Task-space controllers with which the two-link arm was published.

Damped least squares along a line of the tool computes joint velocities. ``VelocityPid`` tracks
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import NO_MEMORY
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.trajectories.joint_splines import cubic_trajectory
from arm_dynamics.core.arrays import Matrix, Vector, check_vector
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics.frames import jacobian, jacobian_derivative, pose
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.trace import MotionRecord

GAINS = {"J1": {"kv": 100.0, "kx": 200.0, "ka": 0.5}, "J2": {"kv": 20.0, "kx": 50.0, "ka": 0.05}}
"""Published gains Kp, Ki, Kd of the velocity error."""
DAMPING = 0.05
"""λ of J# = Jᵀ (J Jᵀ + λ² 1)⁻¹ [m]."""
FEEDBACK = 4.0
"""Gain k [1/s] of the position error in task space."""
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
        """Return the cubic between two points (n,)."""
        return cls(check_vector("start", start), check_vector("end", end), duration)

    def at(self, t: float) -> tuple[Vector, Vector, Vector]:
        """Return x, ẋ, ẍ at time t [s]."""
        step, T = self.end - self.start, self.duration
        s = min(t / T, 1.0)
        if s == 1.0:
            return self.end, 0 * step, 0 * step
        rate, acceleration = (6 * s - 6 * s * s) / T, (6 - 12 * s) / T**2
        return self.start + step * (3 * s * s - 2 * s**3), step * rate, step * acceleration


def resolved_rate(arm: ArmModel, line: Cubic) -> ReferenceFunction:
    """Return q̇_r = J#(q_r) ẋ_r, evaluated at the reference, without feedback of the tool."""

    def reference(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q, v
        _, rate, acceleration = line.at(t)
        inverse, _ = _inverse(arm, q_r, np.zeros_like(q_r))
        v_r = inverse @ rate
        _, inverse_rate = _inverse(arm, q_r, v_r)
        return v_r, inverse_rate @ rate + inverse @ acceleration

    return reference


def task_space(arm: ArmModel, line: Cubic) -> ReferenceFunction:
    """Return q̇_r = J#(q) (ẋ_r + k (x_r - x)) with k = FEEDBACK."""

    def reference(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q_r
        x, rate, acceleration = line.at(t)
        error = x - pose(arm, q)[0][PLANE]
        inverse, inverse_rate = _inverse(arm, q, v)
        velocity = rate + FEEDBACK * error
        velocity_rate = acceleration + FEEDBACK * (rate - jacobian(arm, q)[PLANE] @ v)
        return inverse @ velocity, inverse_rate @ velocity + inverse @ velocity_rate

    return reference


class RateControl(VelocityPid):
    """VelocityPid with the published gains; its reference is its memory q_r = ∫ q̇_r dt."""

    def __init__(self, arm: ArmModel, reference: ReferenceFunction) -> None:
        super().__init__(arm, GAINS)
        self.reference = reference
        self.reset(State.of(arm.configuration("initial")))

    def reset(self, state: State) -> None:
        """Restart at the measured configuration."""
        super().reset(state)
        self._q_r = state.q

    @property
    def memory(self) -> Vector:
        """Integrated reference q_r (nv,) [rad]."""
        memory: Vector = self._q_r.copy()
        return memory

    def remember(self, memory: Vector) -> None:
        """Continue from q_r (nv,) [rad]."""
        self._q_r = memory.copy()

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m]; ``reference`` is not used."""
        v_r, a_r = self.reference(state.time, state.q, state.v, self._q_r)
        command = super().update(state, Reference(self._q_r, v_r, a_r), dt)
        self._q_r = self._q_r + dt * v_r
        return command

    def instant(
        self,
        state: State,
        reference: Reference,
        memory: Vector,
        acceleration: Callable[[Vector], Vector],
    ) -> tuple[Command, Vector]:
        """Return the command of VelocityPid and the derivative q̇_r of the memory."""
        v_r, a_r = self.reference(state.time, state.q, state.v, memory)
        tracked = Reference(memory, v_r, a_r)
        return super().instant(state, tracked, NO_MEMORY, acceleration)[0], v_r


def run(
    arm: ArmModel,
    start: Sequence[float],
    reference: ReferenceFunction,
    *,
    seconds: float,
    period: float,
    duration: float,
    tolerance: float,
) -> MotionRecord:
    """Simulate an arm without effort limits from rest at ``start`` in continuous time.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    start : sequence of float
        Initial configuration (nv,) [rad].
    reference : ReferenceFunction
        Joint velocities and accelerations along the line.
    seconds, period : float
        Simulated time and sampling interval [s].
    duration : float
        Time [s] of the line.
    tolerance : float
        Tolerance of the integration.

    Returns
    -------
    MotionRecord
        The sampled states.

    """
    free = replace(arm, joints=tuple(replace(j, effort=UNLIMITED) for j in arm.joints))
    still = cubic_trajectory([start, start], [0.0, duration])
    return simulate_closed_loop(
        free, RateControl(free, reference), still, State.of(start),
        seconds=seconds, period=period, continuous=True, tolerance=tolerance,
    )  # fmt: skip


def _inverse(arm: ArmModel, q: Vector, v: Vector) -> tuple[Matrix, Matrix]:
    """Return J# = Jᵀ (J Jᵀ + λ² 1)⁻¹ (nv, 2) and its time derivative for velocity v."""
    J, J_dot = jacobian(arm, q)[PLANE], jacobian_derivative(arm, q, v)[PLANE]
    middle = np.linalg.inv(J @ J.T + DAMPING**2 * np.eye(len(PLANE)))
    inverse = J.T @ middle
    return inverse, J_dot.T @ middle - inverse @ (J_dot @ J.T + J @ J_dot.T) @ middle
