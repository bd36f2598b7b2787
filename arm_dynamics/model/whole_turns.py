"""Positions of continuous joints modulo one turn: the nearest of equal configurations."""

from __future__ import annotations

from math import pi

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

TURN = 2 * pi
HALF_TURN_TOLERANCE = 1e-9
"""Distance [rad] from half a turn that counts as half a turn, which is not changed."""
MAX_POSITION = 1e6
"""Position [rad] beyond which rounding makes a turn inexact: such a position stays as it is."""


def whole_turns(arm: ArmModel, q: Vector, near: Vector) -> Vector:
    """Return the whole turns that bring ``q`` nearest to ``near``; 0 for joints that have limits.

    k_i = -2π sgn(d_i) ⌈|d_i| / 2π - 1/2⌉,  d = q - near,  for a continuous joint i

    So |d_i + k_i| <= π. Half a turn keeps its direction, as in joint_trajectory_controller.

    Parameters
    ----------
    arm : ArmModel
        The arm, whose joints of the URDF type ``continuous`` count their turns.
    q, near : Vector
        Positions (nv,) [rad or m].

    Returns
    -------
    Vector
        Multiples of 2π (nv,) [rad], to be added to ``q``.

    """
    d = q - near
    counted = arm.is_continuous & (np.abs(d) < MAX_POSITION) & (np.abs(q) < MAX_POSITION)
    with np.errstate(invalid="ignore"):
        turns = np.sign(d) * np.ceil(np.maximum(np.abs(d) - pi - HALF_TURN_TOLERANCE, 0.0) / TURN)
    return np.where(counted, -TURN * turns, 0.0)


def position_error(arm: ArmModel, reference: Vector, q: Vector) -> Vector:
    """Return ``reference - q`` (nv,) [rad or m], that of a continuous joint within ±π."""
    return reference - q + whole_turns(arm, reference, q)
