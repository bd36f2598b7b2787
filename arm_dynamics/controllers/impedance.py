"""The tool on springs and dampers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.base import AXES, Gains
from arm_dynamics.controllers.task import TaskController
from arm_dynamics.dynamics import mass_matrix
from arm_dynamics.kinematics.tool_motion import damping_rate, tool_inertia
from arm_dynamics.kinematics.virtual_arm import Axes, chosen_rows, pose_error
from arm_dynamics.parameters import Parameter
from arm_dynamics.positive import applied, filtered_inverse
from arm_dynamics.scalar import compiled
from arm_dynamics.state import Command, Reference, State

BANDWIDTH = 15.0
"""Natural frequency [rad/s] of the tool on its springs when none are given."""
DAMPING = 1.4
"""Damping ratio times 2 of these."""
FASTEST = 300.0
"""Highest damping rate [1/s] of these, for control periods up to some 2 ms."""
POSTURE = 5.0
"""Natural frequency [rad/s] of the spare joints on theirs."""


class Impedance(TaskController):
    """tau = Jᵀ (K e + D ė + w) + C q̇ + g + Nᵀ (posture_stiffness (q_r - q) - posture_damping q̇).

    K [N/m, N·m/rad] and D [N·s/m, N·m·s/rad] are the tool's along and about the base's axes; its
    inertia stays the arm's own, so that no force has to be measured. w is the reference's wrench.
    Nᵀ = 1 - Jᵀ (Jᵀ)# takes from the posture what would push at the tool. Springs found from the
    model are soft where a light wrist without rotor inertia would let them ring: set them there.
    Source: N. Hogan, J. Dynamic Systems, Measurement and Control 107 (1985), 1; C. Ott, Cartesian
    Impedance Control of Redundant and Flexible-Joint Robots (2008), section 3.2.
    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", None, "N/m or N·m/rad", "spring of the tool", lower=0, upper=1e6),
        Parameter("damping", None, "N·s/m or N·m·s/rad", "damper of it", lower=0, upper=1e5),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("posture_stiffness", None, "N·m/rad", "spring of a joint", lower=0, upper=1e6),
        Parameter("posture_damping", None, "N·m·s/rad", "damper of a joint", lower=0, upper=1e5),
    )

    def found_from_model(self) -> Gains:
        """Springs and dampers of equal bandwidth for what moves with each axis and joint."""
        arm = self.arm
        moved, M = tool_inertia(arm), mass_matrix(arm, arm.pose("initial"))
        w = BANDWIDTH * min(1.0, FASTEST / damping_rate(arm, DAMPING * BANDWIDTH * moved))
        return {
            f"tool.{axis}": {"stiffness": w**2 * m, "damping": DAMPING * w * m}
            for axis, m in zip(AXES, moved.tolist(), strict=True)
        } | {
            joint: {"posture_stiffness": POSTURE**2 * m, "posture_damping": 2 * POSTURE * m}
            for joint, m in zip(arm.joint_names, np.diag(M).tolist(), strict=True)
        }

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        goal, virtual, q, v = self.within_reach(reference, dt), self.virtual, state.q, state.v
        at, tool, joint = self.tool.motion(q, v), self.axis_gains, self.gains
        effort = spring_effort(
            at.position, at.rotation, at.twist, at.jacobian,
            goal.position, goal.rotation, goal.twist, goal.wrench,
            tool["stiffness"], tool["damping"],
        )  # fmt: skip
        effort += self.body.nle(q, v)
        effort += spare_effort(
            q, v, goal.q, joint["posture_stiffness"], joint["posture_damping"],
            at.jacobian, virtual.scale, virtual.axes, self.law_gains["weak"] * virtual.reach,
        )  # fmt: skip
        return self.limited(effort, state)


@compiled
def spring_effort(
    position: Vector,
    rotation: Vector,
    twist: Vector,
    jacobian: Vector,
    position_ref: Vector,
    rotation_ref: Vector,
    twist_ref: Vector,
    wrench: Vector,
    stiffness: Vector,
    damping: Vector,
) -> Vector:
    """Jᵀ (K e + D ė + w) (nv,)."""
    push = pose_error(position, rotation, position_ref, rotation_ref)
    for i in range(6):
        push[i] = stiffness[i] * push[i] + damping[i] * (twist_ref[i] - twist[i]) + wrench[i]
    return applied(jacobian.T, push)


@compiled
def spare_effort(
    q: Vector,
    v: Vector,
    q_ref: Vector,
    stiffness: Vector,
    damping: Vector,
    jacobian: Vector,
    scale: Vector,
    axes: Axes,
    weak: float,
) -> Vector:
    """Nᵀ (K (q_r - q) - D q̇) (nv,)."""
    spare = np.empty(q.size)
    for i in range(q.size):
        spare[i] = stiffness[i] * (q_ref[i] - q[i]) - damping[i] * v[i]
    J = chosen_rows(jacobian, scale, axes)
    inverse, _ = filtered_inverse(J, weak)
    return spare - applied(J.T, applied(inverse.T, spare))
