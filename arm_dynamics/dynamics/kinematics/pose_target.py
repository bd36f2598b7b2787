"""Target pose of a frame, with the weights of its axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

ORTHONORMAL = 1e-6
"""Largest entry of RᵀR - 1 that is taken for rounding."""
MAX_COORDINATE = 1e6
"""Largest coordinate [m] of a target: a posture's millimetres are lost in the digits of more."""
WEIGHTS_FRAMES = ("base", "target")
UNTURNED = as_readonly(np.eye(3))
WHOLE, PLACE = as_readonly([1.0] * 6), as_readonly([1.0] * 3 + [0.0] * 3)
"""Weights of a whole pose and of its position only."""


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
        weights_frame: str = "base",
    ) -> PoseTarget:
        """Return a checked target: the whole pose, or only the position without a rotation.

        Raises InvalidValue for a wrong size, a non-finite entry, a matrix that is not a rotation
        or a negative weight; UnknownName for a ``weights_frame`` other than "base" and "target".
        """
        if weights_frame not in WEIGHTS_FRAMES:
            raise UnknownName("axes of the weights", str(weights_frame), WEIGHTS_FRAMES)
        own = UNTURNED if rotation is None else rotation_matrix("rotation", rotation)
        weight = (PLACE if rotation is None else WHOLE) if weights is None else _weights(weights)
        if rotation is None and weight is not PLACE and weight[3:].any():
            raise InvalidValue(f"weights {weight.tolist()} count rotation, but rotation is missing")
        axes = own if weights_frame == "target" else UNTURNED
        return cls(check_coordinates("position", position, 3), own, weight, axes)

    def __str__(self) -> str:
        """The target in words, with the axes that count where these are not whole."""
        point = ", ".join(f"{x:.6g}" for x in self.position)
        turn = " and its rotation" if self.weights[3:].any() else ""
        kept = ", ".join(f"{w:g}" for w in self.weights)
        whole = self.weights[:3].all() and (self.weights[3:].all() or not turn)
        return f"position ({point}) m{turn}" + ("" if whole else f" under weights ({kept})")


def check_coordinates(name: str, value: ArrayLike, size: int | None = None) -> Vector:
    """Return ``value`` as a vector of coordinates [m]; raises InvalidValue for one out of sight."""
    found = check_vector(name, value, size)
    for i, x in enumerate(found.tolist()):
        if abs(x) > MAX_COORDINATE:
            raise InvalidValue(f"{name}[{i}] = {x:.6g} m: at most {MAX_COORDINATE:g} m is expected")
    return found


def rotation_matrix(name: str, value: ArrayLike) -> Vector:
    """Return ``value`` as a read-only rotation matrix (3, 3); else raise InvalidValue."""
    R = as_readonly(value)
    if R.shape != (3, 3):
        raise InvalidValue(f"{name}: shape {R.shape} given, (3, 3) expected")
    a, b, c = zip(*R.tolist(), strict=True)  # for nine numbers faster than numpy
    lengths = max(abs(_dot(a, a) - 1.0), abs(_dot(b, b) - 1.0), abs(_dot(c, c) - 1.0))
    off = max(lengths, abs(_dot(a, b)), abs(_dot(b, c)), abs(_dot(c, a)))
    determinant = _dot(
        a, (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    )
    if not (off <= ORTHONORMAL and determinant > 0):
        check_vector(name, R.ravel())  # raises for what is not finite
        raise InvalidValue(
            f"{name}: no rotation matrix (RᵀR is off by {off:.3g}, determinant {determinant:.3g});"
            " orthonormal columns with determinant 1 are expected"
        )
    return R


def _dot(u: tuple[float, ...], v: tuple[float, ...]) -> float:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def _weights(value: ArrayLike) -> Vector:
    weights = check_vector("weights", value, 6)
    if (weights < 0).any() or not weights.any():
        raise InvalidValue(f"weights {weights.tolist()}: none below 0, one above it are expected")
    return as_readonly(
        weights / weights.max()
    )  # the best posture is the same, whatever their scale
