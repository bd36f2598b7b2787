"""Resolved-rate control: a task-space reference tracked in joint space."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import clamp_and_integrate
from arm_dynamics.control.controllers.friction_compensation import compensated_friction
from arm_dynamics.control.controllers.task_space_base import (
    TaskSpaceController,
    joint_acceleration,
)
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import State

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
    _acceleration: Vector

    def reset(self, state: State) -> None:
        """Start at the measured state with integral 0."""
        super().reset(state)
        self._integral, self._acceleration = np.zeros((2, self.arm.nv))

    def track(self, effort: Vector, state: State, wrench: Vector, dt: float) -> None:
        """Write the effort (nv,) [N·m] that tracks ``clik``; the inputs are valid."""
        del wrench
        gains, friction, joints, a = self.gains, self.friction, self.clik.joints, self._acceleration
        direct_call(joint_acceleration)(
            (state.q, state.v), joints, (gains["kp"], gains["kd"]), self._integral, a
        )
        dynamics = self.dynamics.rnea(state.q, state.v, a)
        direct_call(resolved_rate_efforts)(
            (dynamics, friction.viscous, friction.dry), joints, state.q, gains["ki"],
            (self._integral, dt), (self._limit, effort),
        )  # fmt: skip


@compiled_for(
    (VECTOR,) * 3, MATRIX, VECTOR, VECTOR, (VECTOR_OUT, NUMBER), (VECTOR, VECTOR_OUT), direct=True
)
def resolved_rate_efforts(
    dynamics: tuple[Vector, Vector, Vector],
    joints: Matrix,
    q: Vector,
    ki: Vector,
    integration: tuple[Vector, float],
    result: tuple[Vector, Vector],
) -> None:
    """Write the effort within the limit, and advance the integral in place.

    ``dynamics``: inverse dynamics, and the viscous and dry friction (nv,) compensated; ``joints``:
    rows of ``ClosedLoopIk``; ``integration``: integral (nv,) and dt; ``result``: limits and
    efforts (nv,) [N·m].
    """
    (tau, viscous, dry), (integral, dt), (limit, effort) = dynamics, integration, result
    error, clamp = np.empty(q.size), np.empty(q.size)
    for i in range(q.size):
        v_ref = joints[1, i]
        effort[i] = tau[i] + compensated_friction(viscous[i], dry[i], v_ref, v_ref)
        error[i], clamp[i] = joints[0, i] - q[i], np.inf
    clamp_and_integrate(effort, limit, (ki, clamp, error, integral), dt)
