"""Closed-loop inverse kinematics (CLIK): joint motion that tracks a task-space reference.

It respects the joint limits, damps motion in singular directions and saturates the task-space
error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Matrix, Vector, check_vector
from arm_dynamics.core.compiled_math import (
    INDICES,
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    all_finite,
    clip,
    compiled,
    compiled_for,
    direct_call,
    maximum,
    minimum,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.core.small_matrices import damped_pseudoinverse, matvec
from arm_dynamics.core.state import TaskReference
from arm_dynamics.dynamics.kinematics.singular_escape import MIN_ALIGNMENT, escape, pressed
from arm_dynamics.dynamics.kinematics.tool_motion import (
    ToolKinematics,
    controlled_axes,
    reach_radius,
)
from arm_dynamics.model.arm_model import ArmModel


def has_valid_shapes(task: TaskReference, nv: int) -> bool:
    """Return whether all parts have the shapes of TaskReference; fast enough for every cycle."""
    try:
        return (
            task.q.shape == task.v.shape == task.a.shape == (nv,)
            and task.position.shape == (3,)
            and task.rotation.shape == (3, 3)
            and task.twist.shape == task.acceleration.shape == task.wrench.shape == (6,)
        )
    except AttributeError:
        return False


def invalid_reference_error(task: TaskReference, nv: int, dt: float) -> InvalidValue:
    """Return an error with the first part that has a wrong shape or is not finite."""
    sizes = dict.fromkeys("qva", nv) | {"position": 3, "twist": 6, "acceleration": 6, "wrench": 6}
    try:
        for name, size in sizes.items():
            check_vector(name, getattr(task, name), size)
        check_vector("rotation", np.ravel(task.rotation), 9)
    except InvalidValue as error:
        return InvalidValue(f"task-space reference: {error}")
    return InvalidValue(f"task-space reference: dt = {dt} s; expected arrays and a finite result")


MAX_VELOCITY = 100.0
"""Speed [rad/s or m/s] of joints without a velocity limit."""
MAX_ERROR_FRACTION = 0.1
"""Saturation of the task-space error as a fraction of the reach. Without it a target far out of
reach moves a stretched arm back and forth."""
NEGLIGIBLE = 1e-4
"""Error in singular directions, as a fraction of the reach, that causes no motion out of them."""
Axes = NDArray[np.intp]


class ClosedLoopIk:
    """q̇ = J# (ẋ_ref + rate e) + (1 - J# J) posture_rate (q_ref - q), within the arm's limits.

    Its tool stays within the workspace. For a target beyond, it comes to rest when the remaining
    directions of J no longer reduce the error. Joint accelerations are limited, and the error is
    reduced at a velocity that can be braked. It leaves a singular configuration along the null
    space of J if the second-order tool motion then approaches the target
    (``singular_escape``).
    Source: B. Siciliano et al., Robotics (2009), section 3.7 (closed-loop inverse kinematics);
    ``damped_pseudoinverse`` for J#.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._tool, self.scale = ToolKinematics(arm), np.array([1.0] * 3 + [reach_radius(arm)] * 3)
        self.axes: Axes = np.flatnonzero(controlled_axes(arm))
        self._controlled = (self.scale, self.axes, np.diag(self.scale)[self.axes].copy())
        self._fastest = np.minimum(arm.velocity_limit, MAX_VELOCITY)
        self._limits: Matrix = np.stack([arm.lower, arm.upper, self._fastest])
        self.reach = float(self.scale[3])
        self.joints: Matrix = np.zeros((4, arm.nv))
        """Rows q [rad], v [rad/s], a [rad/s²], and direction out of a singular configuration."""
        self.motion: Matrix = np.zeros((2, 6))
        """Twist and acceleration of its tool."""
        self.pose = np.zeros(3), np.eye(3)
        """Position and rotation of its tool."""
        self.min_singular_value = np.inf
        """Lower bound of the minimum singular value of J [m], rotations times reach."""
        self.reachability_error = 0.0
        """Distance of its tool from the reference [m]; rotations times reach."""
        self.time = 0.0
        """Sum of the control periods [s]."""
        self.task: TaskReference | None = None
        """Last reference."""

    @property
    def q(self) -> Vector:
        """Position (nv,) [rad or m]."""
        q: Vector = self.joints[0]
        return q

    @property
    def v(self) -> Vector:
        """Velocity (nv,) [rad/s or m/s]."""
        v: Vector = self.joints[1]
        return v

    @property
    def a(self) -> Vector:
        """Acceleration (nv,) [rad/s² or m/s²]."""
        a: Vector = self.joints[2]
        return a

    def reset(self, q: Vector, v: Vector | None = None) -> None:
        """Restart at ``q`` with velocity ``v`` (nv,) [rad/s] within the limits (default: 0)."""
        joints = np.zeros((4, q.size))
        joints[0] = q
        if v is not None:
            joints[1] = np.clip(v, -self._fastest, self._fastest)
        self.joints, self.reachability_error = joints, 0.0

    def update(self, task: TaskReference, dt: float, gains: Mapping[str, float]) -> TaskReference:
        """Advance by one control period; return joints and tool as a reachable reference.

        Parameters
        ----------
        task : TaskReference
            Task-space reference.
        dt : float
            Control period [s].
        gains : Mapping[str, float]
            ``controller_parameters`` of ``TaskSpaceController``.

        Returns
        -------
        TaskReference
            q, v, a (nv,) and the tool's pose, twist and acceleration; the wrench of ``task``.

        Raises
        ------
        InvalidValue
            For a reference of wrong shapes and for a non-finite result. The state is then
            unchanged.

        """
        if not has_valid_shapes(task, self.joints.shape[1]):
            raise invalid_reference_error(task, self.joints.shape[1], dt)
        self.advance(task, dt, gains)
        (q, v, a, _), (position, rotation), (twist, change) = self.joints, self.pose, self.motion
        return TaskReference(q, v, a, position, rotation, twist, change, task.wrench)

    def advance(self, task: TaskReference, dt: float, gains: Mapping[str, float]) -> None:
        """Advance as ``update``, which checks the shapes of ``task`` before."""
        before, joints, motion = self.joints, np.empty(self.joints.shape), np.empty((2, 6))
        direct_call(integrate_within_limits)(before, dt, self._limits, joints)
        at = self._tool.motion(joints[0], before[1])
        distance, singular_value, finite = direct_call(clik_step)(
            at[:], (task.position, task.rotation, task.twist, task.acceleration, task.q),
            before, self._limits, self._controlled,
            (dt, gains["tracking_rate"], gains["nullspace_rate"],
             gains["singular_value_threshold"] * self.reach, gains["max_joint_acceleration"]),
            (joints, motion),
        )  # fmt: skip
        if not finite:
            raise invalid_reference_error(task, task.q.size, dt)
        self.joints, self.motion, self.pose = joints, motion, at[:2]
        self.reachability_error, self.min_singular_value = distance, singular_value
        self.task, self.time = task, self.time + dt

    def copy_state(self, other: ClosedLoopIk) -> None:
        """Continue from the solution of another arm with the same joints."""
        self.joints, self.motion, self.pose = other.joints, other.motion, other.pose
        self.reachability_error = other.reachability_error
        self.min_singular_value = other.min_singular_value
        self.time, self.task = other.time, other.task


@compiled_for(MATRIX, NUMBER, MATRIX, MATRIX_OUT, direct=True)
def integrate_within_limits(joints: Matrix, dt: float, limits: Matrix, after: Matrix) -> None:
    """Write q + v dt + a dt²/2 within ``limits``, as of ``clik_step``, into the first row.

    ``joints`` and ``after`` (4, nv) are those of ``ClosedLoopIk``. A joint beyond a limit moves no
    further.
    """
    for i in range(joints.shape[1]):
        q = joints[0, i]
        moved = q + dt * joints[1, i] + 0.5 * dt * dt * joints[2, i]
        after[0, i] = clip(moved, minimum(limits[0, i], q), maximum(limits[1, i], q))


POSE = (VECTOR, MATRIX)
"""Kinds of position (3,) and rotation (3, 3)."""


TOOL = (VECTOR, MATRIX, MATRIX, VECTOR)
"""Kinds of ``ToolMotion``, as a plain tuple."""


@compiled_for(
    TOOL, (VECTOR, MATRIX, VECTOR, VECTOR, VECTOR), MATRIX, MATRIX, (VECTOR, INDICES, MATRIX),
    (NUMBER,) * 5, (MATRIX_OUT, MATRIX_OUT), on_demand=True, direct=True,
)  # fmt: skip
def clik_step(
    tool: tuple[Vector, Matrix, Matrix, Vector],
    reference: tuple[Vector, Matrix, Vector, Vector, Vector],
    joints: Matrix,
    limits: Matrix,
    controlled: tuple[Vector, Axes, Matrix],
    rates: tuple[float, float, float, float, float],
    result: tuple[Matrix, Matrix],
) -> tuple[float, float, bool]:
    """Return distance [m], σ_min [m], and whether q, q̇ and q̈ are finite; write the ``result``.

    Parameters
    ----------
    tool : tuple
        ``ToolMotion`` at q and the velocity of the last period.
    reference : tuple
        Position (3,) [m], rotation (3, 3), twist and acceleration (6,) of the tool, posture (nv,).
    joints : Matrix
        Rows (4, nv) of ``ClosedLoopIk`` of the last period.
    limits : Matrix
        Lower and upper position limits and velocity limits (3, nv).
    controlled : tuple
        Scale of the axes (6,), indices (k,) and weights (k, 6) of the controlled ones.
    rates : tuple
        Control period [s], tracking rate and null-space rate [1/s], threshold of singular values
        [m], largest joint acceleration [rad/s² or m/s²].
    result : tuple
        Rows of ``ClosedLoopIk`` after the period, with q given, and twist and acceleration of the
        tool (2, 6).

    """
    position, rotation, J, drift = tool
    position_ref, rotation_ref, twist, acceleration, posture_ref = reference
    q, before, leaving, (scale, axes, axis_weights) = result[0][0], joints[1], joints[3], controlled
    lower, upper, fastest = limits[0], limits[1], limits[2]
    posture = posture_ref - q
    dt, rate, posture_rate, weak, limit = rates
    error = pose_error((position, rotation), (position_ref, rotation_ref))
    rate /= maximum(1.0, rate * dt)  # no error is corrected more than once in a period
    posture_rate /= maximum(1.0, posture_rate * dt)
    correction, feedforward = np.empty(axes.size), np.empty(axes.size)
    bent, square = np.empty(axes.size), 0.0
    for k in range(axes.size):
        i = axes[k]
        correction[k], feedforward[k] = scale[i] * rate * error[i], scale[i] * twist[i]
        bent[k] = scale[i] * (acceleration[i] - drift[i])
        square += (scale[i] * error[i]) ** 2
    correction *= min(1.0, MAX_ERROR_FRACTION * scale[3] / max(math.sqrt(square), 1e-300))
    every, missed = scaled_rows(J, scale, axes), correction / rate
    rows, inner, left = every, posture_rate * posture, np.zeros(q.size)
    inverse, singular_value = damped_pseudoinverse(every, weak)
    desired, stopped, late = inner, np.zeros(q.size), correction
    near = singular_value < weak or (q <= lower).any() or (q >= upper).any()
    least = weak * math.sqrt(np.dot(missed, missed))
    pressing = pressed(matvec(every.T, missed), q, lower, upper, least)
    for _ in range(q.size + 1):  # a joint that is stopped may push another against its limit
        rows, inner, late = (
            every * (1.0 - stopped),
            (1.0 - stopped) * posture_rate * posture,
            correction,
        )
        if near:
            still = np.maximum(pressing, stopped)
            left, step, lost, lost_weight = escape(
                (rows, J, axis_weights), missed, (posture.copy(), q, lower, upper), weak,
                NEGLIGIBLE * scale[3], leaving.copy(), still,
            )  # fmt: skip
            gradient, size = matvec(rows.T, lost), np.dot(lost, lost)
            if size > 0.0:  # there the posture does not move the tool away from the target
                against = min(np.dot(inner, gradient), 0.0) * lost_weight
                inner = (
                    inner
                    - against / (np.dot(gradient, gradient) + size * (0.01 * weak) ** 2) * gradient
                )
            if np.dot(left, gradient) < 0.0:  # through the singularity
                uphill = -np.dot(left, gradient) / (MIN_ALIGNMENT * weak * math.sqrt(size))
                late = correction - min(uphill, 1.0) * rate * lost
            inner = inner + rate * step * left
            if left.any():  # joints that are stopped in the escape do not move
                rows, inner = rows * (1.0 - still), inner * (1.0 - still)
            inverse, _ = damped_pseudoinverse(rows, weak)
        slow = inner + matvec(inverse, late - matvec(rows, inner))
        slow = slow * limit_scale(slow, np.full(slow.size, limit / rate))
        desired = matvec(inverse, feedforward) + slow
        if not _stop_at_limits(desired, q, lower, upper, stopped):
            break
    desired = desired * limit_scale(desired, fastest)
    v = _accelerated(before, desired, limit * dt)
    _stop_at_limits(v, q, lower, upper, stopped)
    a = matvec(inverse, bent)
    a = a * limit_scale(a, np.full(a.size, limit))
    _write(result, (v, a, left), (matvec(J, v), matvec(J, a) + drift))
    return math.sqrt(square), singular_value, all_finite(q, v, a)


@compiled
def _accelerated(before: Vector, desired: Vector, change: float) -> Vector:
    """Return the velocity (nv,) nearest to ``desired`` within ``change`` of ``before``."""
    v = np.empty(desired.size)
    for i in range(v.size):
        v[i] = before[i] + clip(desired[i] - before[i], -change, change)
    return v


@compiled
def _write(
    result: tuple[Matrix, Matrix],
    joints: tuple[Vector, Vector, Vector],
    tool: tuple[Vector, Vector],
) -> None:
    """Write q̇, q̈ and d (nv,) of the joints, twist and acceleration of the tool (6,)."""
    (after, motion), (v, a, left), (twist, acceleration) = result, joints, tool
    for i in range(v.size):
        after[1, i], after[2, i], after[3, i] = v[i], a[i], left[i]
    for i in range(6):
        motion[0, i], motion[1, i] = twist[i], acceleration[i]


@compiled
def _stop_at_limits(v: Vector, q: Vector, lower: Vector, upper: Vector, stopped: Vector) -> bool:
    """Stop joints at a limit that would pass it: v = 0, ``stopped`` = 1; return if any did."""
    any_stopped = False
    for i in range(v.size):
        if (q[i] <= lower[i] and v[i] < 0.0) or (q[i] >= upper[i] and v[i] > 0.0):
            v[i], stopped[i], any_stopped = 0.0, 1.0, True
    return any_stopped


@compiled
def limit_scale(values: Vector, limits: Vector) -> float:
    """Return the largest factor up to 1 with |factor values_i| <= limits_i, both (n,)."""
    excess = 1.0
    for i in range(values.size):
        excess = max(excess, abs(values[i]) / limits[i])
    return 1.0 / excess


@compiled
def scaled_rows(J: Matrix, scale: Vector, axes: Axes) -> Matrix:
    """Return rows ``axes`` of J (6, nv), scaled."""
    rows = np.empty((axes.size, J.shape[1]))
    for k in range(axes.size):
        for j in range(J.shape[1]):
            rows[k, j] = scale[axes[k]] * J[axes[k], j]
    return rows


@compiled
def pose_error(pose: tuple[Vector, Matrix], pose_ref: tuple[Vector, Matrix]) -> Vector:
    """Return (p_ref - p, log(R_ref Rᵀ)) (6,) [m, rad], in base axes."""
    (position, rotation), (position_ref, rotation_ref) = pose, pose_ref
    error, turned = np.empty(6), rotation_vector(rotation, rotation_ref)
    for i in range(3):
        error[i], error[3 + i] = position_ref[i] - position[i], turned[i]
    return error
