"""Where a frame should be, and along which axes that counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.errors import InvalidValue, UnknownName

ORTHONORMAL = 1e-6
"""Largest entry of RᵀR - 1 that is taken for rounding."""
FARTHEST = 1e6
"""Largest coordinate [m] of a target: a posture's millimetres are lost in the digits of more."""
ALONG = ("base", "target")


@dataclass(frozen=True, slots=True, eq=False)
class PoseTarget:
    """Position p* (3,) [m], rotation R* (3, 3), weights w (6,) up to 1, their axes A (3, 3).

    e = (Aᵀ (p* - p), Aᵀ log(R* Rᵀ)) (6,) [m, rad]; a weight of 0 leaves that axis free.
    """

    position: Vector
    rotation: Vector
    weights: Vector
    axes: Vector

    @classmethod
    def of(
        cls,
        position: ArrayLike,
        rotation: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        along: str = "base",
    ) -> PoseTarget:
        """Checked target: the whole pose, or the position alone where no rotation is given.

        Raises InvalidValue naming a wrong size, an entry that is not finite, a matrix that is no
        rotation, a negative weight; UnknownName for axes ``along`` neither "base" nor "target".
        """
        if along not in ALONG:
            raise UnknownName("axes of the weights", str(along), ALONG)
        turned = frozen(np.eye(3)) if rotation is None else rotation_matrix("rotation", rotation)
        default = [1.0] * 3 + [0.0 if rotation is None else 1.0] * 3
        weight = _weights(default if weights is None else weights)
        if rotation is None and weight[3:].any():
            raise InvalidValue(f"weights {weight.tolist()} count rotation, and none is given")
        axes = turned if along == "target" else frozen(np.eye(3))
        return cls(place("position", position, 3), turned, weight, axes)

    def error(self, position: Vector, rotation: Vector) -> Vector:
        """e (6,) of a frame that stands there; no angles where none counts."""
        e = np.zeros(6)
        e[:3] = self.axes.T @ (self.position - position)
        if self.weights[3:].any():
            e[3:] = self.axes.T @ pin.log3(self.rotation @ rotation.T)
        return e

    def slope(self, rotation: Vector, J: Vector) -> Vector:
        """∂e/∂q (6, nv) of a frame with the LOCAL_WORLD_ALIGNED Jacobian J (6, nv).

        R* Rᵀ becomes R* Rᵀ exp(-δ) as the frame turns by δ: ∂e/∂δ = -Jlog(R* Rᵀ). No slope of
        angles where none counts.
        """
        found = np.empty_like(J)
        found[:3] = -self.axes.T @ J[:3]
        found[3:] = 0.0
        if self.weights[3:].any():
            found[3:] = -self.axes.T @ pin.Jlog3(self.rotation @ rotation.T) @ J[3:]
        return found

    def __str__(self) -> str:
        """The target in words, with the axes that count where these are not whole."""
        point = ", ".join(f"{x:.6g}" for x in self.position)
        turn = " and its rotation" if self.weights[3:].any() else ""
        kept = ", ".join(f"{w:g}" for w in self.weights)
        whole = self.weights[:3].all() and (self.weights[3:].all() or not turn)
        return f"position ({point}) m{turn}" + ("" if whole else f" under weights ({kept})")


def place(name: str, value: ArrayLike, size: int | None = None) -> Vector:
    """Return ``value`` as a vector of coordinates [m]; raises InvalidValue for one out of sight."""
    found = vector(name, value, size)
    for i in np.flatnonzero(np.abs(found) > FARTHEST):
        raise InvalidValue(f"{name}[{i}] = {found[i]:.6g} m: at most {FARTHEST:g} m is expected")
    return found


def rotation_matrix(name: str, value: ArrayLike) -> Vector:
    """Return ``value`` as a read-only rotation matrix (3, 3); raises InvalidValue if it is none."""
    R = frozen(value)
    if R.shape != (3, 3):
        raise InvalidValue(f"{name}: shape {R.shape} given, (3, 3) expected")
    vector(name, R.ravel())
    off = float(np.abs(R.T @ R - np.eye(3)).max())
    if off > ORTHONORMAL or np.linalg.det(R) < 0:
        raise InvalidValue(
            f"{name}: no rotation matrix (RᵀR is off by {off:.3g}, determinant"
            f" {np.linalg.det(R):.3g}); orthonormal columns with determinant 1 are expected"
        )
    return R


def _weights(value: ArrayLike) -> Vector:
    weights = vector("weights", value, 6)
    if (weights < 0).any() or not weights.any():
        raise InvalidValue(f"weights {weights.tolist()}: none below 0, one above it are expected")
    return frozen(weights / weights.max())  # the best posture is the same, whatever their scale
