"""Cartesian impedance control: the tool on springs and dampers."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import AXES, STATE, Gains
from arm_dynamics.control.controllers.friction_compensation import compensated_friction
from arm_dynamics.control.controllers.task_space_base import (
    TaskSpaceController,
    joint_acceleration,
)
from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    INDICES,
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.small_matrices import damped_pseudoinverse, matvec
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.kinematics.closed_loop_ik import POSE, TOOL, pose_error, scaled_rows
from arm_dynamics.dynamics.kinematics.tool_motion import damping_rate, operational_inertia
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 15.0
"""Natural frequency of the tool without given gains [rad/s]."""
MAX_FREQUENCY = 150.0
"""Maximum natural frequency of any part of the arm without given gains [rad/s]."""
BY_INERTIA, BY_STIFFNESS = 19.0, 0.0085
"""Damping per inertia [1/s] and per stiffness [s]: ratios of 0.7 at both ends, 0.4 in between."""
POSTURE = 10.0
"""Natural frequency of the null-space posture [rad/s]."""
DAMPERS = {"stiffness": "damping", "posture_stiffness": "posture_damping"}


class Impedance(TaskSpaceController):
    """tau = Jᵀ (K e + D ė + w) + M (q̈_r + α (q̇_r - q̇)) + C q̇ + g + F(q̇_r) + Nᵀ tau_0.

    tau_0 = K_0 (q_r - q) + D_0 (q̇_r - q̇). F is the friction compensation
    (``FrictionCompensation``): 0 with the reference at rest, where the tool deflects by K⁻¹ times
    the external wrench within the joints' friction.

    K [N/m, N·m/rad] and D [N·s/m, N·m·s/rad] act along and about the base's axes. The inertia Λ of
    the tool stays the arm's, so that no force has to be measured. α = mass_proportional_damping
    adds α Λ to D at every configuration: the same decay for heavy and light parts. w is the
    reference's wrench. K_0 and D_0 act on the posture; Nᵀ = 1 - Jᵀ (Jᵀ)# removes their effort at
    the tool.

    Without gains: K = w² Λ_ii with w = BANDWIDTH, for translation and rotation separately, or less
    if the lightest part of the arm would oscillate faster than MAX_FREQUENCY. Light wrists without
    rotor inertia thus have soft rotations and no stiffness of translation. D = 0.0085 s K. A
    stiffness without a damping keeps the damping ratio: D changes with the square root of K.

    References
    ----------
    N. Hogan, J. Dynamic Systems, Measurement and Control 107 (1985), 1; C. Ott, Cartesian
    Impedance Control of Redundant and Flexible-Joint Robots (2008), section 3.2; for damping by
    inertia and stiffness: R. Clough and J. Penzien, Dynamics of Structures (1975), section 12-3.

    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "stiffness", None, "N/m or N·m/rad", "stiffness of the tool", lower=0, upper=1e6,
            order=2,
        ),
        Parameter(
            "damping", None, "N·s/m or N·m·s/rad", "damping of the tool", lower=0, upper=1e5,
            order=1,
        ),
    )  # fmt: skip
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "posture_stiffness", None, "N·m/rad", "posture stiffness", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "posture_damping", None, "N·m·s/rad", "posture damping", lower=0, upper=1e5, order=1
        ),
    )

    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        *TaskSpaceController.controller_parameters,
        Parameter("mass_proportional_damping", BY_INERTIA, "1/s", "damping per inertia", lower=0,
                  upper=1e3, order=1),
    )  # fmt: skip

    def default_gains(self) -> Gains:
        """Return stiffness and damping of uniform bandwidth for the inertia of axes and joints."""
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
        """Return D = D_default √(K / K_default), of the same damping ratio, for a K without D.

        Along an axis whose default K is 0, D = 0.0085 s K.
        """
        damping = {}
        for spring, damper in DAMPERS.items():
            if spring in given and damper not in given:
                k, usual = given[spring], default[spring]
                root = default[damper] * sqrt(k / usual) if usual > 0 else BY_STIFFNESS * k
                damping[damper] = root
        return damping

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the memory stays. Errors as in Controller."""
        super().set_gains(gains)
        damping = self.controller_gains["mass_proportional_damping"]
        self._rates = np.zeros(self.arm.nv), np.full(self.arm.nv, damping)
        self._acceleration = np.zeros(self.arm.nv)
        axes, joints = [*self.axis_gains.values()], [*self.gains.values()]
        self._tables = np.stack(axes), np.stack(joints)

    def track(self, effort: Vector, state: State, wrench: Vector, dt: float) -> None:
        """Write the effort (nv,) [N·m] that tracks ``clik``; the inputs are valid."""
        del dt
        q, v, clik, friction, a = state.q, state.v, self.clik, self.friction, self._acceleration
        direct_call(joint_acceleration)((q, v), clik.joints, self._rates, self._rates[0], a)
        threshold = self.controller_gains["singular_value_threshold"] * clik.reach
        direct_call(impedance_efforts)(
            self.tool.motion(q, v)[:], (q, v),
            (self.dynamics.rnea(q, v, a), friction.viscous, friction.dry),
            (*clik.pose, clik.joints, clik.motion, wrench), self._tables,
            (clik.scale, clik.axes, threshold), (self._limit, effort),
        )  # fmt: skip


def default_stiffness(arm: ArmModel) -> Vector:
    """Return the stiffness (6,) [N/m, N·m/rad] along and about the controlled axes."""
    inertia, stiffness, remaining = operational_inertia(arm), np.zeros(6), MAX_FREQUENCY**2
    for axes, fraction in ((slice(0, 3), 0.5), (slice(3, 6), 1.0)):
        m = np.zeros(6)
        m[axes] = inertia[axes]
        if m.any():
            squared = damping_rate(arm, m)  # of the lightest part, for 1 1/s² of the axes
            scale = min(BANDWIDTH**2, fraction * remaining / squared)
            stiffness += scale * m
            remaining -= scale * squared
    return stiffness


@compiled_for(
    TOOL, STATE, (VECTOR,) * 3, (*POSE, MATRIX, MATRIX, VECTOR), (MATRIX, MATRIX),
    (VECTOR, INDICES, NUMBER), (VECTOR, VECTOR_OUT), direct=True,
)  # fmt: skip
def impedance_efforts(
    tool: tuple[Vector, Matrix, Matrix, Vector],
    state: tuple[Vector, Vector],
    dynamics: tuple[Vector, Vector, Vector],
    goal: tuple[Vector, Matrix, Matrix, Matrix, Vector],
    gains: tuple[Matrix, Matrix],
    controlled: tuple[Vector, IntArray, float],
    result: tuple[Vector, Vector],
) -> None:
    """Write the effort within the limit.

    Jᵀ (K e + D ė + w) + Nᵀ (K_0 (q_r - q) + D_0 (q̇_r - q̇)), inverse dynamics and friction.

    Parameters
    ----------
    tool : tuple
        ``ToolMotion`` of the measured state.
    state : tuple
        q and q̇ (nv,).
    dynamics : tuple
        Inverse dynamics, and the viscous and dry friction (nv,) compensated.
    goal : tuple
        Position (3,) and rotation (3, 3), ``joints`` and ``motion`` of ``ClosedLoopIk``, wrench.
    gains : tuple
        Rows of the axes (2, 6), K and D, and of the joints (2, nv), K_0 and D_0.
    controlled : tuple
        Scale (6,) of the axes, indices of the controlled ones, threshold of singular values [m].
    result : tuple
        Effort limits and efforts (nv,) [N·m].

    """
    (position, rotation, jacobian, _), (q, v), (tau, viscous, dry) = tool, state, dynamics
    position_ref, rotation_ref, joints, motion, wrench = goal
    (axis, joint), (scale, axes, threshold), (limit, effort) = gains, controlled, result
    twist, posture = matvec(jacobian, v), np.empty(q.size)
    force = pose_error((position, rotation), (position_ref, rotation_ref))
    for i in range(6):
        force[i] = axis[0, i] * force[i] + axis[1, i] * (motion[0, i] - twist[i]) + wrench[i]
    for i in range(q.size):
        slower = joints[1, i] - v[i]
        posture[i] = joint[0, i] * (joints[0, i] - q[i]) + joint[1, i] * slower
    J = scaled_rows(jacobian, scale, axes)
    inverse, _ = damped_pseudoinverse(J, threshold)
    at_tool, seen = matvec(jacobian.T, force), matvec(J.T, matvec(inverse.T, posture))
    for i in range(q.size):
        v_ref = joints[1, i]
        friction = compensated_friction(viscous[i], dry[i], v_ref, v_ref)
        desired = at_tool[i] + tau[i] + friction + posture[i] - seen[i]
        effort[i] = clip(desired, -limit[i], limit[i])
