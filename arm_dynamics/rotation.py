"""Rotations as vectors: axis times angle."""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.scalar import MATRIX, compiled_for


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
