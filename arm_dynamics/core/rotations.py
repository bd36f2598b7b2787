"""Rotations as vectors: axis times angle.

Rotations as the quaternions of messages: (x, y, z, w), the scalar last.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.compiled_math import MATRIX, compiled_for
from arm_dynamics.core.errors import InvalidValue


@compiled_for(MATRIX, MATRIX)
def rotation_vector(start: Vector, end: Vector) -> Vector:
    """log(R_end R_startᵀ) (3,) [rad], in the axes both are given in; at most π long.

    By the quaternion of the larger of its four forms, so that half a turn is as exact as a small
    one. Source: S. Shepperd, J. Guidance and Control 1 (1978), 223.
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
"""Difference of a quaternion's length from 1 that is taken for rounding."""


def rotation_from_quaternion(name: str, xyzw: ArrayLike) -> Vector:
    """R(x, y, z, w) (3, 3) of a quaternion of length 1, q and -q alike.

    Raises InvalidValue naming ``name`` for a length outside 1 ± UNIT, for example 0.
    """
    q = check_vector(name, xyzw, 4)
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(q))
    if not abs(length - 1.0) <= UNIT:
        raise InvalidValue(
            f"{name} = {q.tolist()} (x, y, z, w): length {length:.6g}, a unit quaternion is"
            f" expected; (0, 0, 0, 1) is no rotation"
        )
    return as_readonly(pin.Quaternion(q / length).toRotationMatrix())


def quaternion_from_rotation(rotation: Vector) -> Vector:
    """(x, y, z, w) (4,) of R (3, 3), of length 1, with w >= 0."""
    xyzw = np.array(pin.Quaternion(np.asarray(rotation)).coeffs())
    return as_readonly(-xyzw if xyzw[3] < 0 else xyzw)
