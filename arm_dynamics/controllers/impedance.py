"""The tool on springs and dampers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.controllers.base import AXES, Gains
from arm_dynamics.controllers.task import TaskController
from arm_dynamics.dynamics import mass_matrix, nle
from arm_dynamics.kinematics.tool_motion import damping_rate, tool_inertia
from arm_dynamics.kinematics.virtual_arm import chosen_rows, pose_error
from arm_dynamics.parameters import Parameter
from arm_dynamics.positive import filtered_inverse
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
    Nᵀ = 1 - Jᵀ (Jᵀ)# takes from the posture what would push at the tool.
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
        goal, virtual = self.within_reach(reference, dt), self.virtual
        at, tool, joint = self.tool.motion(state.q, state.v), self.axis_gains, self.gains
        push = tool["stiffness"] * pose_error(
            at.position, at.rotation, goal.position, goal.rotation
        )
        push += tool["damping"] * (goal.twist - at.twist) + goal.wrench
        spare = joint["posture_stiffness"] * (goal.q - state.q)
        spare -= joint["posture_damping"] * state.v
        J = chosen_rows(at.jacobian, virtual.scale, virtual.axes)
        inverse, _ = filtered_inverse(J, self.law_gains["weak"] * virtual.reach)
        spare -= J.T @ (inverse.T @ spare)
        return self.limited(at.jacobian.T @ push + spare + nle(self.arm, state.q, state.v), state)
