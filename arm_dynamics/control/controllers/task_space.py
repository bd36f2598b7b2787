"""Operational-space control: the tool as a body with its own inertia."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import anti_windup_steps
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    INDICES,
    MATRIX,
    NUMBER,
    VECTOR,
    compiled,
    compiled_for,
    is_finite,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.small_matrices import matmul, matmul_transposed, matvec, solve_spd
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics.closed_loop_ik import POSE, pose_error, scaled_rows

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

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the effort command (nv,) [N·m] within the effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        goal, clik, q, v = self.reachable_reference(reference, dt), self.clik, state.q, state.v
        at, tool, joint = self.tool.motion(q, v), self.axis_gains, self.gains
        a = tool_acceleration(
            (at.position, at.rotation), at.twist, at.drift,
            (goal.position, goal.rotation), goal.twist, goal.acceleration, (tool["p"], tool["d"]),
        )  # fmt: skip
        posture = joint_acceleration(
            q, v, goal.q, goal.v, goal.a, joint["posture_p"], joint["posture_d"]
        )
        threshold = self.controller_gains["singular_value_threshold"] * clik.reach
        effort = operational_effort(
            self.dynamics.mass_matrix(q), self.dynamics.rnea(q, v, self._integral), at.jacobian,
            (a, posture, goal.wrench), clik.scale, clik.axes, threshold,
        )  # fmt: skip
        effort += self.friction.effort(goal.v)
        command = self.effort_command(effort, state)
        saturated = not np.array_equal(effort, command.value)
        # with a wrench the integral would push back, and hunt against dry friction
        free = 0.0 if goal.wrench.any() else dt
        self._integral = anti_windup_steps(
            joint["ki"], joint["i_clamp"], goal.q - q, saturated, self._integral, free
        )
        return command


@compiled_for(POSE, VECTOR, VECTOR, POSE, VECTOR, VECTOR, (VECTOR, VECTOR))
def tool_acceleration(
    pose: tuple[Vector, Matrix],
    twist: Vector,
    drift: Vector,
    pose_ref: tuple[Vector, Matrix],
    twist_ref: Vector,
    acceleration_ref: Vector,
    gains: tuple[Vector, Vector],
) -> Vector:
    """Return ẍ_r + d ė + p e minus the drift J̇ q̇ (6,).

    Poses are position and rotation, ``gains`` p and d.
    """
    (p, d), a = gains, pose_error(pose, pose_ref)
    for i in range(6):
        a[i] = acceleration_ref[i] + d[i] * (twist_ref[i] - twist[i]) + p[i] * a[i] - drift[i]
    return a


@compiled_for(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def joint_acceleration(
    q: Vector, v: Vector, q_ref: Vector, v_ref: Vector, a_ref: Vector, p: Vector, d: Vector
) -> Vector:
    """Return q̈_r + d (q̇_r - q̇) + p (q_r - q) (nv,)."""
    a = np.empty(q.size)
    for i in range(q.size):
        a[i] = a_ref[i] + d[i] * (v_ref[i] - v[i]) + p[i] * (q_ref[i] - q[i])
    return a


@compiled_for(MATRIX, VECTOR, MATRIX, (VECTOR, VECTOR, VECTOR), VECTOR, INDICES, NUMBER)
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
