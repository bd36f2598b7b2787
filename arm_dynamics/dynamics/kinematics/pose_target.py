"""Target pose of a frame, with the weights of its axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

ORTHONORMAL = 1e-6
"""Largest entry of RᵀR - 1 that counts as rounding."""
MAX_COORDINATE = 1e6
"""Largest coordinate [m] of a target: beyond it, rounding exceeds the accuracy of a solution."""
WEIGHTS_FRAMES = ("base", "target")
IDENTITY = as_readonly(np.eye(3))
POSE_WEIGHTS, POSITION_WEIGHTS = as_readonly([1.0] * 6), as_readonly([1.0] * 3 + [0.0] * 3)
"""Weights of a full pose and of its position only."""


@dataclass(frozen=True, slots=True, eq=False)
class PoseTarget:
    """Position p* (3,) [m], rotation R* (3, 3), weights w (6,) up to 1, their axes A (3, 3).

    e = (Aᵀ (p* - p), Aᵀ log(R* Rᵀ)) (6,) [m, rad]; a weight of 0 leaves that axis free.
    """

    position: Vector
    rotation: Matrix
    weights: Vector
    axes: Matrix

    @classmethod
    def of(
        cls,
        position: ArrayLike,
        rotation: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        weights_frame: str = "base",
    ) -> PoseTarget:
        """Return a checked target: the full pose, or only the position without a rotation.

        Parameters
        ----------
        position : ArrayLike
            p* (3,) [m] in the base frame.
        rotation : ArrayLike, optional
            R* (3, 3).
        weights : ArrayLike, optional
            w (6,) [1/m, 1/rad], at least 0; they are divided by the largest one.
        weights_frame : str
            Axes of the weights: "base" or "target".

        Returns
        -------
        PoseTarget
            The target.

        Raises
        ------
        InvalidValue
            For a wrong size, a non-finite entry, a matrix that is not a rotation, or a negative
            weight.
        UnknownName
            For another ``weights_frame``.

        """
        if weights_frame not in WEIGHTS_FRAMES:
            raise UnknownName("axes of the weights", str(weights_frame), WEIGHTS_FRAMES)
        own = IDENTITY if rotation is None else rotation_matrix("rotation", rotation)
        weight = POSITION_WEIGHTS if rotation is None else POSE_WEIGHTS
        if weights is not None:
            weight = check_vector("weights", weights, 6)
            if (weight < 0).any() or not weight.any():
                raise InvalidValue(
                    f"weights = {weight.tolist()}; expected none below 0 and one above 0"
                )
            weight = as_readonly(weight / weight.max())  # the scale does not change the solution
        if rotation is None and weight[3:].any():
            raise InvalidValue(
                f"weights = {weight.tolist()} without a rotation; expected 0 for rx, ry, rz"
            )
        axes = own if weights_frame == "target" else IDENTITY
        return cls(check_coordinates("position", position, 3), own, weight, axes)

    def __str__(self) -> str:
        """Return the target in words, with the weights unless they are the default."""
        point = ", ".join(f"{x:.6g}" for x in self.position)
        turn = " and its rotation" if self.weights[3:].any() else ""
        kept = ", ".join(f"{w:g}" for w in self.weights)
        whole = self.weights[:3].all() and (self.weights[3:].all() or not turn)
        return f"position ({point}) m{turn}" + ("" if whole else f" under weights ({kept})")


def check_coordinates(name: str, value: ArrayLike, size: int | None = None) -> Vector:
    """Return ``value`` as coordinates (n,) [m]; raises InvalidValue beyond MAX_COORDINATE."""
    coordinates = check_vector(name, value, size)
    for i, x in enumerate(coordinates.tolist()):
        if abs(x) > MAX_COORDINATE:
            raise InvalidValue(f"{name}[{i}] = {x:.6g} m; expected at most {MAX_COORDINATE:g} m")
    return coordinates


def rotation_matrix(name: str, value: ArrayLike) -> Matrix:
    """Return ``value`` as a read-only rotation matrix (3, 3); else raise InvalidValue."""
    R = as_readonly(value)
    if R.shape != (3, 3):
        raise InvalidValue(f"{name}: shape = {R.shape}; expected (3, 3)")
    a, b, c = zip(*R.tolist(), strict=True)  # for nine numbers faster than numpy
    lengths = max(abs(_dot(a, a) - 1.0), abs(_dot(b, b) - 1.0), abs(_dot(c, c) - 1.0))
    off = max(lengths, abs(_dot(a, b)), abs(_dot(b, c)), abs(_dot(c, a)))
    determinant = _dot(
        a, (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    )
    if not (off <= ORTHONORMAL and determinant > 0):
        check_vector(name, R.ravel())  # raises for entries that are not finite
        raise InvalidValue(
            f"{name}: max |RᵀR - 1| = {off:.3g}, det R = {determinant:.3g}; expected a rotation"
            " matrix: orthonormal columns and determinant 1"
        )
    return R


def _dot(u: tuple[float, ...], v: tuple[float, ...]) -> float:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
