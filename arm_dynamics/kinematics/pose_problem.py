"""A frame of an arm and where it should be: the residual of a posture, and its slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.dynamics import data
from arm_dynamics.kinematics import AXES, frame_number
from arm_dynamics.kinematics.pose_target import PoseTarget
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, slots=True, eq=False)
class PoseProblem:
    """The weighted error of a frame as a function of q."""

    arm: ArmModel
    target: PoseTarget
    tip: int
    tolerance: float
    scratch: Any
    counts: NDArray[np.bool_]
    weights: Vector

    @classmethod
    def of(
        cls, arm: ArmModel, target: PoseTarget, frame: str | None, tolerance: float
    ) -> PoseProblem:
        """Raises UnknownName for an unknown frame, InvalidValue for a tolerance of 0 or less."""
        limit = scalar("tolerance", tolerance, above=0)
        counts = target.weights > 0
        tip, weights = frame_number(arm, frame), target.weights[counts]
        return cls(arm, target, tip, limit, data(arm), counts, weights)

    def pose(self, q: Vector) -> tuple[Vector, Vector]:
        """Where the frame is, (3,) and (3, 3), not copied; its Jacobian is ready to be read."""
        pin.computeJointJacobians(self.arm.model, self.scratch, q)
        placed = pin.updateFramePlacement(self.arm.model, self.scratch, self.tip)
        return placed.translation, placed.rotation

    def residual(self, q: Vector) -> Vector:
        """w e(q), the entries that count (m,)."""
        e = self.target.error(*self.pose(q))
        return np.asarray(self.weights * e[self.counts])

    def slope(self, _: Vector) -> Vector:
        """∂(w e)/∂q (m, nv) where ``residual`` was last asked."""
        J = pin.getFrameJacobian(self.arm.model, self.scratch, self.tip, AXES)
        J = J.reshape(6, self.arm.nv)  # Pinocchio's is flat for one joint
        rotation = self.scratch.oMf[self.tip].rotation
        return np.asarray(self.weights[:, None] * self.target.slope(rotation, J)[self.counts])

    def missed(self, residual: Vector) -> tuple[float, float]:
        """Distance [m] and angle [rad] in a weighted residual."""
        e = np.zeros(6)
        e[self.counts] = residual / self.weights
        return float(np.linalg.norm(e[:3])), float(np.linalg.norm(e[3:]))

    def reached(self, residual: Vector) -> bool:
        """Whether neither is more than the tolerance."""
        return max(self.missed(residual)) <= self.tolerance
