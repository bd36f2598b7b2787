"""The tool as a body of its own: operational-space control."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.task import TaskController
from arm_dynamics.dynamics import mass_matrix, nle
from arm_dynamics.parameters import Parameter
from arm_dynamics.scalar import compiled
from arm_dynamics.state import Command, Reference, State
from arm_dynamics.virtual_arm import task_error

BANDWIDTH = 20.0
"""Natural frequency [rad/s] of the tool's loop and of the posture's when no gains are given."""


class TaskSpace(TaskController):
    """tau = Jᵀ Λ (ẍ_r + kd ė + kp e - J̇ q̇) + Nᵀ M q̈_0 + C q̇ + g + Jᵀ w,  Λ = (J M⁻¹ Jᵀ)⁻¹.

    Nᵀ = 1 - Jᵀ Λ J M⁻¹; q̈_0 = q̈_r + posture_d (q̇_r - q̇) + posture_p (q_r - q) keeps the joints
    that the tool leaves free. Towards singularities Λ stays finite in the directions that the arm
    loses, and the posture takes these over. x_r is the tool of ``VirtualArm``: the reference
    within reach. w is the reference's wrench.
    Source: O. Khatib, IEEE J. Robotics and Automation 3 (1987), 43, eqs. 28 and 51.
    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", BANDWIDTH**2, "1/s²", "stiffness a unit of inertia", lower=0, upper=1e6),
        Parameter("d", 2 * BANDWIDTH, "1/s", "damping a unit of inertia", lower=0, upper=1e5),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("posture_p", BANDWIDTH**2, "1/s²", "posture's stiffness", lower=0, upper=1e6),
        Parameter("posture_d", 2 * BANDWIDTH, "1/s", "posture's damping", lower=0, upper=1e5),
    )

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        goal, virtual = self.within_reach(reference, dt), self.virtual
        at, axes, scale = self.tool.motion(state.q, state.v), virtual.axes, virtual.scale
        tool, joint = self.axis_gains, self.gains
        error, rate = task_error(at, goal), goal.twist - at.twist
        a = goal.acceleration - at.drift + tool["d"] * rate + tool["p"] * error
        spare = goal.a + joint["posture_d"] * (goal.v - state.v)
        spare += joint["posture_p"] * (goal.q - state.q)
        effort = operational_effort(
            mass_matrix(self.arm, state.q), (scale[:, None] * at.jacobian)[axes],
            (scale * a)[axes], spare, self.law_gains["weak"] * virtual.reach,
        )  # fmt: skip
        push = at.jacobian.T @ goal.wrench
        return self.limited(effort + nle(self.arm, state.q, state.v) + push, state)


@compiled
def operational_effort(M: Vector, J: Vector, a: Vector, spare: Vector, weak: float) -> Vector:
    """Jᵀ Λ a + (1 - Jᵀ Λ J M⁻¹) M q̈_0 (nv,), Λ filtered in directions weaker than ``weak``.

    M (nv, nv), J (k, nv), a (k,) of the tool less its drift, spare (nv,) q̈_0.
    """
    apparent = J @ np.linalg.solve(M, J.T.copy())
    squares, U = np.linalg.eigh(J @ J.T)
    mobility = np.trace(apparent) / max(squares.sum(), 1e-300)
    for i in range(squares.size):
        lost = mobility * max(weak * weak - squares[i], 0.0)
        for j in range(squares.size):
            for k in range(squares.size):
                apparent[j, k] += lost * U[j, i] * U[k, i]
    force = np.linalg.solve(apparent, a - J @ spare)
    effort: Vector = M @ spare + J.T @ force
    return effort
