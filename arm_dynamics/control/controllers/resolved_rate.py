"""A reference of the tool, followed in joint space."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State

BANDWIDTH = 20.0
"""Natural frequency [rad/s] of the joints' loops when no gains are given."""


class ResolvedRate(TaskSpaceController):
    """tau = M(q) (q̈_r + kd (q̇_r - q̇) + kp (q_r - q) + ki ∫) + C q̇ + g,  q̇_r = J# (ẋ_ref + rate e).

    e is the error of the massless arm that follows the tool's reference (``ClosedLoopIk``), so that
    the joints are asked for nothing that they can not do. The integral stands still while a
    joint's effort is saturated in its direction.
    Source: D. Whitney, IEEE Trans. Man-Machine Systems 10 (1969), 47, for the rates; B. Siciliano
    et al., Robotics (2009), section 8.5.2, for the joints' law.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("kp", BANDWIDTH**2, "1/s²", "proportional gain", lower=0, upper=1e6, order=2),
        Parameter("kd", 2 * BANDWIDTH, "1/s", "derivative gain", lower=0, upper=1e5, order=1),
        Parameter("ki", BANDWIDTH**3 / 6, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
    )
    _sum: Vector

    def reset(self, state: State) -> None:
        """Follow anew from where the arm is, without a memory."""
        super().reset(state)
        self._sum = np.zeros(self.arm.nv)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        goal = self.reachable_reference(reference, dt)
        gains, error = self.gains, goal.q - state.q
        a = goal.a + gains["kd"] * (goal.v - state.v) + gains["kp"] * error + self._sum
        wanted = self.dynamics.rnea(state.q, state.v, a)
        command = self.effort_command(wanted, state)
        grown = self._sum + dt * gains["ki"] * error
        free = np.array_equal(wanted, command.value) | (self._sum * error < 0)
        self._sum = np.where(free, grown, self._sum)
        return command
