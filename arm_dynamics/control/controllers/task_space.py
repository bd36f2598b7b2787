"""Operational-space control: the tool as a body with its own inertia."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import clamp_and_integrate
from arm_dynamics.control.controllers.controller import STATE, Gains
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
    compiled,
    compiled_for,
    direct_call,
    is_finite,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.small_matrices import (
    matmul,
    matmul_transposed,
    matvec,
    solve_spd,
    symmetric_from_upper,
)
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.kinematics.closed_loop_ik import POSE, TOOL, pose_error, scaled_rows

BANDWIDTH = 20.0
"""Natural frequency of tool and posture without given gains [rad/s]."""


class TaskSpace(TaskSpaceController):
    """tau = Jᵀ Λ (ẍ_r + d ė + p e - J̇ q̇) + Nᵀ M q̈_0 + M ∫ki (q_r - q) + h.

    h = C q̇ + g + Jᵀ w + F(q̇_r).

    F is the friction compensation (``FrictionCompensation``).
    Λ = (J M⁻¹ Jᵀ)⁻¹ is the operational inertia. Nᵀ = 1 - Jᵀ Λ J M⁻¹, and
    q̈_0 = q̈_r + posture_d (q̇_r - q̇) + posture_p (q_r - q) controls the null-space posture. Near
    singularities Λ stays finite in the directions that the arm loses, and the posture controls
    them. x_r is the tool of ``ClosedLoopIk``: the reachable reference. w is the reference's wrench.

    The integral is of the joint errors, so that it also acts at singular configurations. While any
    effort is saturated it only decreases; while a wrench is commanded it is constant.

    References
    ----------
    O. Khatib, IEEE J. Robotics and Automation 3 (1987), 43, eqs. 28 and 51.

    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("p", BANDWIDTH**2, "1/s²", "stiffness per inertia", lower=0, upper=1e6, order=2),
        Parameter("d", 2 * BANDWIDTH, "1/s", "damping per inertia", lower=0, upper=1e5, order=1),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "posture_p", BANDWIDTH**2, "1/s²", "posture stiffness", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "posture_d", 2 * BANDWIDTH, "1/s", "posture damping", lower=0, upper=1e5, order=1
        ),
        Parameter("ki", BANDWIDTH**3 / 6, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
        Parameter("i_clamp", inf, "rad/s²", "maximum acceleration of the integral", lower=0),
    )
    _integral: Vector

    def reset(self, state: State) -> None:
        """Start at the measured state with integral 0."""
        super().reset(state)
        self._integral = np.zeros(self.arm.nv)

    def set_gains(self, gains: Gains) -> None:
        """Set gains; the memory stays. Errors as in Controller."""
        super().set_gains(gains)
        axes, joints = [*self.axis_gains.values()], [*self.gains.values()]
        self._tables = np.stack(axes), np.stack(joints)

    def track(self, effort: Vector, state: State, wrench: Vector, dt: float) -> None:
        """Write the effort (nv,) [N·m] that tracks ``clik``; the inputs are valid."""
        q, v, clik, friction = state.q, state.v, self.clik, self.friction
        upper = self.dynamics.upper_mass_matrix(q)
        bias = self.dynamics.rnea(q, v, self._integral)
        threshold = self.controller_gains["singular_value_threshold"] * clik.reach
        direct_call(operational_efforts)(
            self.tool.motion(q, v)[:], (q, v), (upper, bias, friction.viscous, friction.dry),
            (*clik.pose, clik.joints, clik.motion, wrench), self._tables,
            (clik.scale, clik.axes, threshold), (self._integral, dt), (self._limit, effort),
        )  # fmt: skip


@compiled_for(
    TOOL, STATE, (MATRIX, VECTOR, VECTOR, VECTOR), (*POSE, MATRIX, MATRIX, VECTOR),
    (MATRIX, MATRIX), (VECTOR, INDICES, NUMBER), (VECTOR_OUT, NUMBER), (VECTOR, VECTOR_OUT),
    direct=True,
)  # fmt: skip
def operational_efforts(
    tool: tuple[Vector, Matrix, Matrix, Vector],
    state: tuple[Vector, Vector],
    dynamics: tuple[Matrix, Vector, Vector, Vector],
    goal: tuple[Vector, Matrix, Matrix, Matrix, Vector],
    gains: tuple[Matrix, Matrix],
    controlled: tuple[Vector, IntArray, float],
    integration: tuple[Vector, float],
    result: tuple[Vector, Vector],
) -> None:
    """Write the effort within the limit, and advance the integral in place.

    Parameters
    ----------
    tool : tuple
        ``ToolMotion`` of the measured state.
    state : tuple
        q and q̇ (nv,).
    dynamics : tuple
        Upper triangle of M (nv, nv), bias h (nv,), viscous and dry friction (nv,) compensated.
    goal : tuple
        Position (3,) and rotation (3, 3), ``joints`` and ``motion`` of ``ClosedLoopIk``, wrench.
    gains : tuple
        Rows of the axes (2, 6) and of the joints (4, nv): the parameters.
    controlled : tuple
        Scale (6,) of the axes, indices of the controlled ones, threshold of singular values [m].
    integration : tuple
        Integral (nv,) [rad/s²] and dt [s].
    result : tuple
        Effort limits and efforts (nv,) [N·m].

    """
    (position, rotation, J, drift), (q, v), (upper, bias, viscous, dry) = tool, state, dynamics
    position_ref, rotation_ref, joints, motion, wrench = goal
    (axis, joint), (scale, axes, threshold), (integral, dt) = gains, controlled, integration
    limit, effort = result
    twist, error = matvec(J, v), pose_error((position, rotation), (position_ref, rotation_ref))
    a, posture = np.empty(6), np.empty(q.size)
    for i in range(6):
        feedback = axis[1, i] * (motion[0, i] - twist[i]) + axis[0, i] * error[i]
        a[i] = motion[1, i] + feedback - drift[i]
    joint_acceleration(state, joints, (joint[0], joint[1]), np.zeros(q.size), posture)
    M = symmetric_from_upper(upper)
    desired = operational_effort(M, bias, J, (a, posture, wrench), scale, axes, threshold)
    away = np.empty(q.size)
    for i in range(q.size):
        v_ref = joints[1, i]
        effort[i] = desired[i] + compensated_friction(viscous[i], dry[i], v_ref, v_ref)
        away[i] = joints[0, i] - q[i]
    # with a wrench the integral would push back, and hunt against dry friction
    for i in range(6):
        dt = dt if wrench[i] == 0.0 else 0.0
    clamp_and_integrate(effort, limit, (joint[2], joint[3], away, integral), dt)


@compiled
def operational_effort(
    M: Matrix,
    bias: Vector,
    jacobian: Matrix,
    desired_motion: tuple[Vector, Vector, Vector],
    scale: Vector,
    axes: IntArray,
    threshold: float,
) -> Vector:
    """Return Jᵀ Λ a + (1 - Jᵀ Λ J M⁻¹) M q̈_0 + h + Jᵀ w (nv,).

    Λ is damped where singular values are below ``threshold``. M (nv, nv), bias h (nv,), jacobian
    (6, nv); ``desired_motion``: a (6,) of the tool minus its drift, posture q̈_0 (nv,), wrench w
    (6,).
    """
    a, posture, wrench = desired_motion
    J, desired = scaled_rows(jacobian, scale, axes), np.empty((axes.size, 1))
    turned = matvec(jacobian, posture)
    for k in range(axes.size):
        desired[k, 0] = scale[axes[k]] * (a[axes[k]] - turned[axes[k]])
    mobility, square = matmul(J, solve_spd(M, J.T)), matmul_transposed(J, J)
    inverse, total = solve_spd(square, np.eye(axes.size)), 0.0
    for k in range(axes.size):
        total += inverse[k, k]
    if not total * threshold * threshold <= 1.0 and is_finite(square.ravel()):
        _add_lost_mobility(mobility, square, threshold)
    force = solve_spd(mobility, desired)
    effort = matvec(J.T, force[:, 0]) + matvec(jacobian.T, wrench)
    return matvec(M, posture) + bias + effort


@compiled
def _add_lost_mobility(mobility: Matrix, square: Matrix, threshold: float) -> None:
    """Add the mean mobility to J M⁻¹ Jᵀ in directions with singular values below ``threshold``."""
    squares, U = np.linalg.eigh(square)
    mean = np.trace(mobility) / max(squares.sum(), 1e-300)
    for i in range(squares.size):
        lost = mean * max(threshold * threshold - squares[i], 0.0)
        for j in range(squares.size):
            for k in range(squares.size):
                mobility[j, k] += lost * U[j, i] * U[k, i]
