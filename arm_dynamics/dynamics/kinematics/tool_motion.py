"""Kinematics of a task-space controller at one instant, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.dynamics.kinematics import AXES, frame_id, jacobian
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_argument import check_arm, requires_arm
from arm_dynamics.model.arm_model import ArmModel

SAMPLES, RANK, ALIVE = 16, 1e-6, 1e-9
"""Number of configurations that determine the axes of the tool, and two tolerances of rank."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolMotion:
    """Position (3,), rotation (3, 3), J (6, nv), twist J v (6,) and drift J̇ v (6,) of the tool.

    In the base's axes at the tool's origin (LOCAL_WORLD_ALIGNED), linear parts first.
    """

    position: Vector
    rotation: Vector
    jacobian: Vector
    twist: Vector
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
        J = pin.getFrameJacobian(model, scratch, number, AXES).reshape(6, q.size)
        drift = pin.getFrameClassicalAcceleration(model, scratch, number, AXES).vector
        return ToolMotion(placed.translation.copy(), placed.rotation.copy(), J, J @ v, drift)


@requires_arm
def controlled_axes(arm: ArmModel) -> tuple[bool, ...]:
    """Return which of x, y, z, rx, ry, rz of the tool can be controlled together.

    All that the arm can move, if it has a joint for each; else those of the position.
    """
    every = [jacobian(arm, q) for q in _poses(arm)]
    alive = np.abs(every).max(axis=(0, 2)) > ALIVE
    for chosen in (alive, alive & (np.arange(6) < 3)):
        rank = max(np.linalg.matrix_rank(J[chosen], tol=RANK) for J in every)
        if rank == chosen.sum():
            return tuple(chosen.tolist())
    return tuple((alive & _independent(every)).tolist())


@requires_arm
def operational_inertia(arm: ArmModel) -> Vector:
    """diag (J M⁻¹ Jᵀ)⁻¹ (6,) [kg, kg·m²] of the controlled axes: the median over some poses.

    0 for an axis that is not controlled.
    """
    on, found = np.array(controlled_axes(arm)), np.zeros(6)
    every = []
    for q in _poses(arm):
        J = jacobian(arm, q)[on]
        yielding = J @ np.linalg.solve(mass_matrix(arm, q), J.T)
        every.append(np.diag(np.linalg.pinv(yielding, rcond=RANK, hermitian=True)))
    found[on] = np.median(every, axis=0)
    return as_readonly(found)


@requires_arm
def damping_rate(arm: ArmModel, damping: Vector) -> float:
    """Largest eigenvalue [1/s] of M⁻¹ Jᵀ D J in some poses, D = diag(damping (6,)) at the tool."""
    found = []
    for q in _poses(arm):
        J = jacobian(arm, q)
        rates = np.linalg.eigvals(np.linalg.solve(mass_matrix(arm, q), J.T @ (damping * J.T).T))
        found.append(float(rates.real.max()))
    return max(found)


@requires_arm
def reach_radius(arm: ArmModel) -> float:
    """Offsets [m] of the joints after the first and of the tool, summed; 1 m where there are none.

    No tool of revolute joints is further from its first joint; what slides is not counted.
    """
    placed = [*arm.model.jointPlacements[2:], arm.model.frames[frame_id(arm, None)].placement]
    return float(sum(np.linalg.norm(p.translation) for p in placed)) or 1.0


def _poses(arm: ArmModel) -> Vector:
    """Some poses within the limits (n, nv), the same each time."""
    middle = np.clip(0.0, arm.lower, arm.upper)
    lower, upper = np.maximum(arm.lower, middle - np.pi), np.minimum(arm.upper, middle + np.pi)
    return np.random.default_rng(0).uniform(lower, upper, (SAMPLES, arm.nv))


def _independent(every: list[Vector]) -> Vector:
    """Axes of the position taken one after the other while each adds a direction."""
    taken = np.zeros(6, dtype=bool)
    for axis in range(3):
        taken[axis] = True
        if max(np.linalg.matrix_rank(J[taken], tol=RANK) for J in every) < taken.sum():
            taken[axis] = False
    return taken
