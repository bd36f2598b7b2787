"""Resolved-rate control: a task-space reference tracked in joint space."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State

BANDWIDTH = 20.0
"""Natural frequency of the joints' loops without given gains [rad/s]."""


class ResolvedRate(TaskSpaceController):
    """tau = M(q) (q̈_r + kd (q̇_r - q̇) + kp (q_r - q) + ki ∫) + C q̇ + g + F(q̇_r).

    q̇_r = J# (ẋ_ref + rate e).

    F is the friction compensation (``FrictionCompensation``).
    q_r is the CLIK solution (``ClosedLoopIk``), rate is tracking_rate, and e is the solution's
    task-space error: joint references are always feasible. The integral stops while a joint's
    effort is saturated in its direction.

    References
    ----------
    D. Whitney, IEEE Trans. Man-Machine Systems 10 (1969), 47, for the rates; B. Siciliano et al.,
    Robotics (2009), section 8.5.2, for the joint-space control law.

    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("kp", BANDWIDTH**2, "1/s²", "proportional gain", lower=0, upper=1e6, order=2),
        Parameter("kd", 2 * BANDWIDTH, "1/s", "derivative gain", lower=0, upper=1e5, order=1),
        Parameter("ki", BANDWIDTH**3 / 6, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
    )
    _integral: Vector

    def reset(self, state: State) -> None:
        """Start at the measured state with integral 0."""
        super().reset(state)
        self._integral = np.zeros(self.arm.nv)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        goal = self.reachable_reference(reference, dt)
        gains, error = self.gains, goal.q - state.q
        a = goal.a + gains["kd"] * (goal.v - state.v) + gains["kp"] * error + self._integral
        desired = self.dynamics.rnea(state.q, state.v, a) + self.friction.effort(goal.v)
        command = self.effort_command(desired, state)
        free = np.array_equal(desired, command.value) | (self._integral * error < 0)
        self._integral = np.where(free, self._integral + dt * gains["ki"] * error, self._integral)
        return command
