"""The tool on springs and dampers."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import AXES, Gains
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import INDICES, MATRIX, NUMBER, VECTOR, compiled_for
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.small_matrices import damped_pseudoinverse, matvec
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics.closed_loop_ik import Axes, pose_error, scaled_rows
from arm_dynamics.dynamics.kinematics.tool_motion import damping_rate, operational_inertia
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 15.0
"""Natural frequency [rad/s] of the tool on its springs when none are given."""
MAX_FREQUENCY = 150.0
"""Highest natural frequency [rad/s] of any part of the arm on these."""
BY_INERTIA, BY_STIFFNESS = 19.0, 0.0085
"""Damping a unit of inertia [1/s] and of stiffness [s]: ratios of 0.7 at both ends, 0.4 between."""
POSTURE = 10.0
"""Natural frequency [rad/s] of the spare joints on theirs."""
DAMPERS = {"stiffness": "damping", "posture_stiffness": "posture_damping"}


class Impedance(TaskSpaceController):
    """tau = Jᵀ (K e + D ė + w) + α M (q̇_r - q̇) + C q̇ + g + Nᵀ (K_0 (q_r - q) - D_0 q̇).

    K [N/m, N·m/rad] and D [N·s/m, N·m·s/rad] are the tool's along and about the base's axes; its
    inertia Λ stays the arm's own, so that no force has to be measured. α = inertial_damping adds
    α Λ to D, whatever the pose: the same decay to heavy and to light parts. w is the reference's
    wrench. K_0, D_0 are the posture's; Nᵀ = 1 - Jᵀ (Jᵀ)# takes from it what would push at the tool.

    Without gains: K = w² Λ_ii with w = BANDWIDTH, for translations and for rotations by
    themselves, or less where the lightest part of the arm would swing faster than STIFFEST; light
    wrists without rotor inertia so have soft rotations and no soft translations. D = 0.0085 s K.
    A stiffness without a damping keeps the damping ratio: D changes with the root of K.
    Source: N. Hogan, J. Dynamic Systems, Measurement and Control 107 (1985), 1; C. Ott, Cartesian
    Impedance Control of Redundant and Flexible-Joint Robots (2008), section 3.2; for damping by
    inertia and stiffness: R. Clough and J. Penzien, Dynamics of Structures (1975), section 12-3.
    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "stiffness", None, "N/m or N·m/rad", "spring of the tool", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "damping", None, "N·s/m or N·m·s/rad", "damper of it", lower=0, upper=1e5, order=1
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "posture_stiffness", None, "N·m/rad", "spring of a joint", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "posture_damping", None, "N·m·s/rad", "damper of a joint", lower=0, upper=1e5, order=1
        ),
    )

    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        *TaskSpaceController.controller_parameters,
        Parameter("inertial_damping", BY_INERTIA, "1/s", "damping a unit of inertia", lower=0,
                  upper=1e3, order=1),
    )  # fmt: skip

    def default_gains(self) -> Gains:
        """Springs and dampers of equal bandwidth for what moves with each axis and joint."""
        arm, K = self.arm, default_stiffness(self.arm).tolist()
        M = np.diag(mass_matrix(arm, arm.configuration("initial"))).tolist()
        return {
            f"tool.{axis}": {"stiffness": k, "damping": BY_STIFFNESS * k}
            for axis, k in zip(AXES, K, strict=True)
        } | {
            joint: {"posture_stiffness": POSTURE**2 * m, "posture_damping": POSTURE * m}
            for joint, m in zip(arm.joint_names, M, strict=True)
        }

    def matched(self, given: Mapping[str, float], default: Mapping[str, float]) -> dict[str, float]:
        """D = D_default √(K / K_default), of the same damping ratio, for a K given without D.

        Along an axis whose default K is 0, D = 0.0085 s K.
        """
        found = {}
        for spring, damper in DAMPERS.items():
            if spring in given and damper not in given:
                k, usual = given[spring], default[spring]
                found[damper] = default[damper] * sqrt(k / usual) if usual > 0 else BY_STIFFNESS * k
        return found

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        goal, virtual, q, v = self.reachable_reference(reference, dt), self.clik, state.q, state.v
        at, tool, joint = self.tool.motion(q, v), self.axis_gains, self.gains
        effort = impedance_effort(
            at.position, at.rotation, at.twist, at.jacobian,
            goal.position, goal.rotation, goal.twist, goal.wrench,
            tool["stiffness"], tool["damping"],
        )  # fmt: skip
        effort += self.dynamics.rnea(q, v, self.controller_gains["inertial_damping"] * (goal.v - v))
        effort += nullspace_effort(
            q, v, goal.q, joint["posture_stiffness"], joint["posture_damping"],
            at.jacobian, virtual.scale, virtual.axes, self.controller_gains["weak"] * virtual.reach,
        )  # fmt: skip
        return self.effort_command(effort, state)


def default_stiffness(arm: ArmModel) -> Vector:
    """Stiffness (6,) [N/m, N·m/rad] of the tool along and about its controlled axes."""
    moved, found, left = operational_inertia(arm), np.zeros(6), MAX_FREQUENCY**2
    for axes, share in ((slice(0, 3), 0.5), (slice(3, 6), 1.0)):
        m = np.zeros(6)
        m[axes] = moved[axes]
        if m.any():
            squared = damping_rate(arm, m)  # of the lightest part, for 1 1/s² of the axes
            scale = min(BANDWIDTH**2, share * left / squared)
            found += scale * m
            left -= scale * squared
    return found


@compiled_for(VECTOR, MATRIX, VECTOR, MATRIX, VECTOR, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR)
def impedance_effort(
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
    return matvec(jacobian.T, push)


@compiled_for(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, INDICES, NUMBER)
def nullspace_effort(
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
    J = scaled_rows(jacobian, scale, axes)
    inverse, _ = damped_pseudoinverse(J, weak)
    return spare - matvec(J.T, matvec(inverse.T, spare))
