"""Tool kinematics for task-space controllers: pose, Jacobian and drift at one instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector, as_readonly
from arm_dynamics.dynamics.kinematics.frames import AXES, frame_id, jacobian
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_argument import check_arm, requires_arm
from arm_dynamics.model.arm_model import ArmModel

SAMPLES, RANK, ALIVE = 16, 1e-6, 1e-9
"""Number of configurations that determine the axes of the tool, and two tolerances of rank."""


class ToolMotion(NamedTuple):
    """Position (3,), rotation (3, 3), J (6, nv) and drift J̇ v (6,) of the tool.

    In the base's axes at the tool's origin (LOCAL_WORLD_ALIGNED), linear parts first.
    """

    position: Vector
    rotation: Matrix
    jacobian: Matrix
    drift: Vector


class ToolKinematics:
    """Tool kinematics of one arm without checks, for control cycles."""

    def __init__(self, arm: ArmModel) -> None:
        self._model, self._data = check_arm(arm).model, arm.model.createData()
        self._number, self._nothing = frame_id(arm, None), np.zeros(arm.nv)

    def motion(self, q: Vector, v: Vector) -> ToolMotion:
        """Return the motion at q and v (nv,), which must be finite."""
        model, scratch, number = self._model, self._data, self._number
        pin.forwardKinematics(model, scratch, q, v, self._nothing)
        pin.computeJointJacobians(model, scratch)
        placed = pin.updateFramePlacement(model, scratch, number)
        J = pin.getFrameJacobian(model, scratch, number, AXES)
        J = J if J.ndim == 2 else J.reshape(6, 1)  # Pinocchio's is flat for one joint
        drift = pin.getFrameClassicalAcceleration(model, scratch, number, AXES).vector
        return ToolMotion(placed.translation, placed.rotation, J, drift)


@requires_arm
def controlled_axes(arm: ArmModel) -> tuple[bool, ...]:
    """Return which of x, y, z, rx, ry, rz of the tool can be controlled together.

    All axes that the arm can move, if it has a joint for each; else those of the position. If
    these are also dependent: one after the other while each adds a direction.

    Parameters
    ----------
    arm : ArmModel
        The arm.

    Returns
    -------
    tuple of bool
        Mask (6,), in base axes.

    """
    jacobians = [jacobian(arm, q) for q in _sample_configurations(arm)]

    def rank(rows: BoolArray) -> int:
        return max(int(np.linalg.matrix_rank(J[rows], tol=RANK)) for J in jacobians)

    moving = np.abs(jacobians).max(axis=(0, 2)) > ALIVE
    for chosen in (moving, moving & (np.arange(6) < 3)):
        if rank(chosen) == chosen.sum():
            return tuple(chosen.tolist())
    independent = np.zeros(6, dtype=bool)
    for axis in range(3):
        independent[axis] = True
        independent[axis] = rank(independent) == independent.sum()
    return tuple((moving & independent).tolist())


@requires_arm
def operational_inertia(arm: ArmModel) -> Vector:
    """Return diag (J M⁻¹ Jᵀ)⁻¹ of the controlled axes, the median over SAMPLES configurations.

    Parameters
    ----------
    arm : ArmModel
        The arm.

    Returns
    -------
    Vector
        Inertia (6,) [kg, kg·m²]; 0 for an axis that is not controlled.

    References
    ----------
    O. Khatib, IEEE J. Robotics and Automation 3 (1987), 43.

    """
    return _along_axes(arm, lambda q: mass_matrix(arm, q))


@requires_arm
def axis_weights(arm: ArmModel, weights: ArrayLike) -> Vector:
    """Return diag (J Q⁻¹ Jᵀ)⁻¹ (6,) as ``operational_inertia``, for Q = diag(weights (nv,)) > 0.

    It is the least eᵀ Q e of joint errors e that displace the tool by 1 along one controlled axis
    alone.
    """
    Q = np.diag(weights)
    return _along_axes(arm, lambda _: Q)


def _along_axes(arm: ArmModel, matrix: Callable[[Vector], Matrix]) -> Vector:
    """Return diag (J X⁻¹ Jᵀ)⁻¹ (6,) of the controlled axes for X(q), the median over SAMPLES."""
    axes, values = np.array(controlled_axes(arm)), np.zeros(6)
    diagonals = []
    for q in _sample_configurations(arm):
        J = jacobian(arm, q)[axes]
        mobility = J @ np.linalg.solve(matrix(q), J.T)
        diagonals.append(np.diag(np.linalg.pinv(mobility, rcond=RANK, hermitian=True)))
    values[axes] = np.median(diagonals, axis=0)
    return as_readonly(values)


@requires_arm
def damping_rate(arm: ArmModel, damping: Vector) -> float:
    """Return the largest eigenvalue [1/s] of M⁻¹ Jᵀ D J over SAMPLES configurations.

    D = diag(damping (6,)) [N·s/m, N·m·s/rad] at the tool.
    """
    largest = []
    for q in _sample_configurations(arm):
        J = jacobian(arm, q)
        rates = np.linalg.eigvals(np.linalg.solve(mass_matrix(arm, q), J.T @ (damping * J.T).T))
        largest.append(float(rates.real.max()))
    return max(largest)


@requires_arm
def reach_radius(arm: ArmModel) -> float:
    """Return the sum [m] of the offsets of the tool and of all joints but the first; 1 if 0.

    With revolute joints no tool is further from the first joint. Prismatic travel is not included.
    """
    placed = [*arm.model.jointPlacements[2:], arm.model.frames[frame_id(arm, None)].placement]
    return float(sum(np.linalg.norm(p.translation) for p in placed)) or 1.0


def _sample_configurations(arm: ArmModel) -> Matrix:
    """Return SAMPLES configurations (n, nv) within the limits, the same at each call."""
    middle = np.clip(0.0, arm.lower, arm.upper)
    lower, upper = np.maximum(arm.lower, middle - np.pi), np.minimum(arm.upper, middle + np.pi)
    return np.random.default_rng(0).uniform(lower, upper, (SAMPLES, arm.nv))
