"""Closed-form inverse kinematics of the arm ``four_joint`` with its last link horizontal.

Angles are measured from the vertical, J1 from +y toward +x. The last link, the hand, points away
from the axis of the base.
"""

from __future__ import annotations

from math import atan2, cos, hypot, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import Unreachable
from arm_dynamics.dynamics.kinematics.pose_target import check_coordinates

LENGTHS = (0.4, 0.35, 0.2)
"""Lengths of the planar links of ``four_joint`` [m]."""
ROUNDING = 1e-12
"""Position error [m] that counts as rounding at the boundary of the workspace."""


def elbow_postures(position: ArrayLike) -> tuple[Vector, Vector]:
    """Return both solutions of the inverse kinematics with a horizontal hand.

    With r = hypot(x, y) - L3 and z of the wrist, and d² = r² + z²:
    θ1 = atan2(x, y), θ3 = ±acos((d² - L1² - L2²) / (2 L1 L2)), + with the elbow up,
    θ2 = atan2(r, z) - atan2(L2 sin θ3, L1 + L2 cos θ3), θ4 = π/2 - θ2 - θ3.
    On the axis of the base, where θ1 is arbitrary, it is that of atan2.

    Parameters
    ----------
    position : array_like
        Position of the tool, shape (3,) [m].

    Returns
    -------
    up, down : Vector
        Joint angles with the elbow up and with the elbow down, shape (4,) [rad].

    Raises
    ------
    InvalidValue
        If ``position`` does not have three finite entries.
    Unreachable
        If d is outside [L1 - L2, L1 + L2]; with the position error and the nearest point.

    References
    ----------
    J. Craig, Introduction to Robotics, section 4.4; geometry of the published arm.

    """
    point = check_coordinates("position", position, 3)
    goal = nearest_reachable_point(point)
    up, down = _posture(goal, 1.0), _posture(goal, -1.0)
    error = float(np.linalg.norm(goal - point))
    if error > ROUNDING:
        text = ", ".join(f"{x:.6g}" for x in point)
        raise Unreachable(f"position ({text}) m", error, 0.0, goal.tolist(), up.tolist())
    return up, down


def nearest_reachable_point(position: ArrayLike) -> Vector:
    """Return the reachable point (3,) [m] nearest to ``position`` (3,) [m], with a horizontal hand.

    The wrist is moved along its direction until d is within [L1 - L2, L1 + L2]. For d = 0 the
    direction is the vertical.

    Raises
    ------
    InvalidValue
        If ``position`` does not have three finite entries.

    """
    x, y, z = check_coordinates("position", position, 3).tolist()
    first, second, hand = LENGTHS
    yaw, r = atan2(x, y), hypot(x, y) - hand
    d = hypot(r, z)
    clamped = min(max(d, abs(first - second)), first + second)
    if clamped == d:
        return as_readonly([x, y, z])
    r, z = (r * clamped / d, z * clamped / d) if d > 0 else (0.0, clamped)
    return as_readonly([(r + hand) * sin(yaw), (r + hand) * cos(yaw), z])


def _posture(point: Vector, elbow: float) -> Vector:
    """Return the joint angles of a reachable point; ``elbow`` is 1 for up, -1 for down."""
    x, y, z = point.tolist()
    first, second, hand = LENGTHS
    r = hypot(x, y) - hand
    square = r * r + z * z
    # The half angle is accurate where the cosine is flat: stretched and folded.
    folded, stretched = square - (first - second) ** 2, (first + second) ** 2 - square
    theta_3 = 2 * elbow * atan2(sqrt(max(stretched, 0.0)), sqrt(max(folded, 0.0)))
    shoulder = atan2(r, z) - atan2(second * sin(theta_3), first + second * cos(theta_3))
    return as_readonly([atan2(x, y), shoulder, theta_3, pi / 2 - shoulder - theta_3])
