"""Closed inverse kinematics of the arm ``four_joint``: its last link horizontal, both elbows.

Angles are from the vertical, J1 from +y towards +x; the hand points away from the base's axis.
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
"""Distance [m] beyond reach that is taken for rounding: the arm is stretched or folded there."""


def elbow_postures(position: ArrayLike) -> tuple[Vector, Vector]:
    """Joint angles (4,) [rad] with the elbow up, and with it down, that bring the tool there.

    r = hypot(x, y) - L3 and z are the wrist's, d² = r² + z²:
    θ1 = atan2(x, y), θ3 = ±acos((d² - L1² - L2²) / (2 L1 L2)), + with the elbow up,
    θ2 = atan2(r, z) - atan2(L2 sin θ3, L1 + L2 cos θ3), θ4 = π/2 - θ2 - θ3.
    On the base's axis, where any yaw does, θ1 is atan2's.

    ``position`` (3,) [m]. Raises InvalidValue for what is no point, and Unreachable, with the
    distance missed and the nearest reachable point, where d is not within [L1 - L2, L1 + L2].
    Source: the published arm's geometry; J. Craig, Introduction to Robotics, section 4.4.
    """
    point = check_coordinates("position", position, 3)
    goal = nearest_reachable_point(point)
    up, down = _posture(goal, 1.0), _posture(goal, -1.0)
    missed = float(np.linalg.norm(goal - point))
    if missed > ROUNDING:
        said = ", ".join(f"{x:.6g}" for x in point)
        raise Unreachable(f"position ({said}) m", missed, 0.0, goal.tolist(), up.tolist())
    return up, down


def nearest_reachable_point(position: ArrayLike) -> Vector:
    """The point (3,) [m] nearest to ``position`` that the tool reaches with the hand horizontal.

    The wrist's d is brought into [L1 - L2, L1 + L2] along its own direction, which is the
    vertical where it has none. Raises InvalidValue for what is no point.
    """
    x, y, z = check_coordinates("position", position, 3).tolist()
    first, second, hand = LENGTHS
    yaw, r = atan2(x, y), hypot(x, y) - hand
    d = hypot(r, z)
    held = min(max(d, abs(first - second)), first + second)
    if held == d:
        return as_readonly([x, y, z])
    r, z = (r * held / d, z * held / d) if d > 0 else (0.0, held)
    return as_readonly([(r + hand) * sin(yaw), (r + hand) * cos(yaw), z])


def _posture(point: Vector, elbow: float) -> Vector:
    x, y, z = point.tolist()
    first, second, hand = LENGTHS
    r = hypot(x, y) - hand
    square = r * r + z * z
    # The half angle keeps its digits where the cosine is flat: stretched, and folded.
    folded, stretched = square - (first - second) ** 2, (first + second) ** 2 - square
    bend = 2 * elbow * atan2(sqrt(max(stretched, 0.0)), sqrt(max(folded, 0.0)))
    shoulder = atan2(r, z) - atan2(second * sin(bend), first + second * cos(bend))
    return as_readonly([atan2(x, y), shoulder, bend, pi / 2 - shoulder - bend])
