"""Rotations as the quaternions of messages: (x, y, z, w), the scalar last."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.errors import InvalidValue

UNIT = 1e-3
"""Difference of a quaternion's length from 1 that is taken for rounding."""


def rotation_of(name: str, xyzw: ArrayLike) -> Vector:
    """R(x, y, z, w) (3, 3) of a quaternion of length 1, q and -q alike.

    Raises InvalidValue naming ``name`` for another length than 1 ± UNIT, as (0, 0, 0, 0) has it.
    """
    q = vector(name, xyzw, 4)
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(q))
    if not abs(length - 1.0) <= UNIT:
        raise InvalidValue(
            f"{name} = {q.tolist()} (x, y, z, w): length {length:.6g}, a unit quaternion is"
            f" expected; (0, 0, 0, 1) is no rotation"
        )
    return frozen(pin.Quaternion(q / length).toRotationMatrix())


def quaternion_of(rotation: Vector) -> Vector:
    """(x, y, z, w) (4,) of R (3, 3), of length 1, with w >= 0."""
    xyzw = np.array(pin.Quaternion(np.asarray(rotation)).coeffs())
    return frozen(-xyzw if xyzw[3] < 0 else xyzw)
