"""The tool as a body of its own: operational-space control."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.anti_windup import anti_windup_steps
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core.arrays import Vector
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
from arm_dynamics.dynamics.kinematics.closed_loop_ik import Axes, pose_error, scaled_rows

BANDWIDTH = 20.0
"""Natural frequency [rad/s] of the tool's loop and of the posture's when no gains are given."""


class TaskSpace(TaskSpaceController):
    """tau = Jᵀ Λ (ẍ_r + d ė + p e - J̇ q̇) + Nᵀ M q̈_0 + M ∫ki (q_r - q) + C q̇ + g + Jᵀ w.

    Λ = (J M⁻¹ Jᵀ)⁻¹ is the inertia of the tool.
    Nᵀ = 1 - Jᵀ Λ J M⁻¹; q̈_0 = q̈_r + posture_d (q̇_r - q̇) + posture_p (q_r - q) keeps the joints
    that the tool leaves free. Towards singularities Λ stays finite in the directions that the arm
    loses, and the posture takes these over. x_r is the tool of ``ClosedLoopIk``: the reference
    within reach. w is the reference's wrench. The integral is of the joints' errors, so that it
    holds in singular poses, too, and brings tool and posture home together; while any effort is
    saturated it only shrinks, and while a wrench is told it stands still.
    Source: O. Khatib, IEEE J. Robotics and Automation 3 (1987), 43, eqs. 28 and 51.
    """

    axis_parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "p", BANDWIDTH**2, "1/s²", "stiffness a unit of inertia", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "d", 2 * BANDWIDTH, "1/s", "damping a unit of inertia", lower=0, upper=1e5, order=1
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "posture_p", BANDWIDTH**2, "1/s²", "posture's stiffness", lower=0, upper=1e6, order=2
        ),
        Parameter(
            "posture_d", 2 * BANDWIDTH, "1/s", "posture's damping", lower=0, upper=1e5, order=1
        ),
        Parameter("ki", BANDWIDTH**3 / 6, "1/s³", "integral gain", lower=0, upper=1e8, order=3),
        Parameter("i_clamp", inf, "rad/s²", "largest acceleration of the integral", lower=0),
    )
    _integral: Vector

    def reset(self, state: State) -> None:
        """Follow anew from where the arm is, without a memory."""
        super().reset(state)
        self._integral = np.zeros(self.arm.nv)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits."""
        state, reference = self.bounded_inputs(state, reference, dt)
        goal, virtual, q, v = self.reachable_reference(reference, dt), self.clik, state.q, state.v
        at, tool, joint = self.tool.motion(q, v), self.axis_gains, self.gains
        a = tool_acceleration(
            at.position, at.rotation, at.twist, at.drift,
            goal.position, goal.rotation, goal.twist, goal.acceleration, tool["p"], tool["d"],
        )  # fmt: skip
        spare = joint_acceleration(
            q, v, goal.q, goal.v, goal.a, joint["posture_p"], joint["posture_d"]
        )
        effort = operational_effort(
            self.dynamics.mass_matrix(q), self.dynamics.rnea(q, v, self._integral), at.jacobian, a, spare,
            goal.wrench, virtual.scale, virtual.axes, self.controller_gains["weak"] * virtual.reach,
        )  # fmt: skip
        command = self.effort_command(effort, state)
        saturated = not np.array_equal(effort, command.value)
        free = 0.0 if goal.wrench.any() else dt  # it would push back, and hunt against friction
        self._integral = anti_windup_steps(
            joint["ki"], joint["i_clamp"], goal.q - q, saturated, self._integral, free
        )
        return command


@compiled_for(VECTOR, MATRIX, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR)
def tool_acceleration(
    position: Vector,
    rotation: Vector,
    twist: Vector,
    drift: Vector,
    position_ref: Vector,
    rotation_ref: Vector,
    twist_ref: Vector,
    acceleration_ref: Vector,
    p: Vector,
    d: Vector,
) -> Vector:
    """ẍ_r + d ė + p e less the drift J̇ q̇ (6,)."""
    a = pose_error(position, rotation, position_ref, rotation_ref)
    for i in range(6):
        a[i] = acceleration_ref[i] + d[i] * (twist_ref[i] - twist[i]) + p[i] * a[i] - drift[i]
    return a


@compiled_for(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def joint_acceleration(
    q: Vector, v: Vector, q_ref: Vector, v_ref: Vector, a_ref: Vector, p: Vector, d: Vector
) -> Vector:
    """q̈_r + d (q̇_r - q̇) + p (q_r - q) (nv,)."""
    a = np.empty(q.size)
    for i in range(q.size):
        a[i] = a_ref[i] + d[i] * (v_ref[i] - v[i]) + p[i] * (q_ref[i] - q[i])
    return a


@compiled_for(MATRIX, VECTOR, MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, INDICES, NUMBER)
def operational_effort(
    M: Vector,
    bias: Vector,
    jacobian: Vector,
    a: Vector,
    spare: Vector,
    wrench: Vector,
    scale: Vector,
    axes: Axes,
    weak: float,
) -> Vector:
    """Jᵀ Λ a + (1 - Jᵀ Λ J M⁻¹) M q̈_0 + h + Jᵀ w (nv,), Λ filtered where weaker than ``weak``.

    M (nv, nv), bias h (nv,), jacobian (6, nv), a (6,) of the tool less its drift, spare q̈_0 (nv,),
    wrench (6,).
    """
    J, asked = scaled_rows(jacobian, scale, axes), np.empty((axes.size, 1))
    turned = matvec(jacobian, spare)
    for k in range(axes.size):
        asked[k, 0] = scale[axes[k]] * (a[axes[k]] - turned[axes[k]])
    yielding, square = matmul(J, solve_spd(M, J.T)), matmul_transposed(J, J)
    inverse, total = solve_spd(square, np.eye(axes.size)), 0.0
    for k in range(axes.size):
        total += inverse[k, k]
    if not total * weak * weak <= 1.0 and is_finite(square.ravel()):
        _fill_lost(yielding, square, weak)
    force = solve_spd(yielding, asked)
    pushed = matvec(J.T, force[:, 0]) + matvec(jacobian.T, wrench)
    return matvec(M, spare) + bias + pushed


@compiled
def _fill_lost(yielding: Vector, square: Vector, weak: float) -> None:
    """Add to J M⁻¹ Jᵀ what directions weaker than ``weak`` lack, at the mean mobility."""
    squares, U = np.linalg.eigh(square)
    mobility = np.trace(yielding) / max(squares.sum(), 1e-300)
    for i in range(squares.size):
        lost = mobility * max(weak * weak - squares[i], 0.0)
        for j in range(squares.size):
            for k in range(squares.size):
                yielding[j, k] += lost * U[j, i] * U[k, i]
