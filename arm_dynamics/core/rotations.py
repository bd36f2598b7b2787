"""Rotation vectors (axis times angle), and quaternions (x, y, z, w) with the scalar last."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.compiled_math import MATRIX, compiled_for
from arm_dynamics.core.errors import InvalidValue


@compiled_for(MATRIX, MATRIX)
def rotation_vector(start: Matrix, end: Matrix) -> Vector:
    """Return log(R_end R_startᵀ), computed by the quaternion with the largest component as pivot.

    Half a turn is therefore as exact as a small rotation.

    Parameters
    ----------
    start, end : Matrix
        Rotations (3, 3) in the same axes.

    Returns
    -------
    Vector
        Axis times angle (3,) [rad] in these axes, of length at most π.

    References
    ----------
    S. Shepperd, J. Guidance and Control 1 (1978), 223.

    """
    R, best = np.zeros((3, 3)), 0
    for i in range(3):
        for j in range(3):
            for k in range(3):
                R[i, j] += end[i, k] * start[j, k]
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    for i in range(3):
        if R[i, i] > (trace if best == 0 else R[best - 1, best - 1]):
            best = i + 1
    w, v = 0.0, np.zeros(3)
    if best == 0:
        w = 1.0 + trace
        v[0], v[1], v[2] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    else:
        i = best - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        w = R[k, j] - R[j, k]
        v[i], v[j], v[k] = 1.0 + R[i, i] - R[j, j] - R[k, k], R[j, i] + R[i, j], R[k, i] + R[i, k]
    length = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    angle = 2.0 * math.atan2(length, abs(w))
    turned = angle if w >= 0.0 else -angle
    return v * (turned / length if length > 0.0 else 0.0)


UNIT = 1e-3
"""Difference of a quaternion's length from 1 that counts as rounding."""


def rotation_from_quaternion(name: str, xyzw: ArrayLike) -> Matrix:
    """Return the rotation R(x, y, z, w) of a unit quaternion; q and -q give the same.

    Parameters
    ----------
    name : str
        Name of the quaternion in messages.
    xyzw : ArrayLike
        Quaternion (4,), scalar last.

    Returns
    -------
    Matrix
        Rotation (3, 3).

    Raises
    ------
    InvalidValue
        For a length outside 1 ± UNIT, for example 0.

    """
    q = check_vector(name, xyzw, 4)
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(q))
    if not abs(length - 1.0) <= UNIT:
        raise InvalidValue(
            f"{name} = {q.tolist()} (x, y, z, w): length = {length:.6g}; expected a unit"
            f" quaternion; (0, 0, 0, 1) is the identity"
        )
    return as_readonly(pin.Quaternion(q / length).toRotationMatrix())


def quaternion_from_rotation(rotation: Matrix) -> Vector:
    """Return the unit quaternion (x, y, z, w) (4,) of R (3, 3), with w >= 0."""
    xyzw = np.array(pin.Quaternion(np.asarray(rotation)).coeffs())
    return as_readonly(-xyzw if xyzw[3] < 0 else xyzw)
