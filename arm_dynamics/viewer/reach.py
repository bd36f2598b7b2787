"""What a camera has to hold: a sphere around most of the places that an arm gets to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan, sin

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.kinematics import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import visuals
from arm_dynamics.viewer.sliders import slider_range

VIEW = np.array([0.80, -1.0, 0.52]) / np.linalg.norm([0.80, -1.0, 0.52])
"""Direction from the arm to the camera."""
FILLED = 0.86
"""Radius of the sphere in view, as a fraction of that of the reach: few poses come to its edge."""
SMALLEST = 1e-3
"""Least radius [m] of the reach: of an arm without any extent."""
POSES = 300


@dataclass(frozen=True, slots=True)
class Reach:
    """A sphere around most of the places the arm gets to, and the floor below it [m]."""

    center: Vector
    radius: float
    floor: float = 0.0

    def camera_distance(self, half: float) -> float:
        """Distance [m] of a camera with the tangent ``half`` of half its angle of view."""
        return FILLED * self.radius / sin(atan(half))


def reach(
    placed: Callable[[Vector], Vector],
    base: Vector,
    limits: Sequence[tuple[float, float]],
    initial: Vector,
) -> Reach:
    """Return the sphere around an arm's points in configurations drawn within ``limits``.

    It contains the ``initial`` configuration, and all but 2 % of the points at each end of each
    axis. The floor is at the lowest point of what does not move, or of the initial configuration
    if that is lower.

    Parameters
    ----------
    placed : callable
        Points (n, 3) [m] of the arm in the base frame at a configuration (nv,).
    base : ndarray
        Points (m, 3) [m] of what does not move.
    limits : sequence of pairs
        Position limits [rad or m]; infinite ones of continuous joints.
    initial : ndarray
        Configuration (nv,) [rad or m] at the start.

    """
    ranges = [slider_range(low, high) for low, high in limits]
    lower, upper = np.array(ranges).reshape(-1, 2).T
    configurations = np.random.default_rng(0).uniform(lower, upper, (POSES, len(limits)))
    points, start = np.concatenate([placed(q) for q in configurations]), placed(initial)
    low, high = np.percentile(points, 2, axis=0), np.percentile(points, 98, axis=0)
    floor = min(start[:, 2].min(), base[:, 2].min())
    upright = high[2] - floor > 0.2 * np.ptp(points[:, 2])
    low[2] = max(low[2], floor) if upright else low[2]
    low, high = np.minimum(low, start.min(axis=0)), np.maximum(high, start.max(axis=0))
    radius = max(float(np.linalg.norm(high - low) / 2), SMALLEST)
    return Reach((low + high) / 2, radius, float(floor))


class ArmPoints:
    """Points of an arm, fixed in its links: their origins and the corners of what is drawn."""

    def __init__(self, arm: ArmModel) -> None:
        self._arm, folder = arm, arm.source.parent if arm.source else None
        corners = {frame.name: [np.zeros((1, 3))] for frame in arm.model.frames}
        for visual in visuals(arm):
            corners[visual.link].append(visual.corners(folder))
        self._local = {link: np.concatenate(boxes) for link, boxes in corners.items()}
        self._fixed = {frame.name for frame in arm.model.frames if frame.parentJoint == 0}

    def placed(self, q: Vector) -> Vector:
        """Return all points (n, 3) [m] in the base frame at ``q`` (nv,)."""
        return np.concatenate(list(self._links(q).values()))

    def base(self, q: Vector) -> Vector:
        """Return the points (m, 3) [m] of the links that no joint moves."""
        return np.concatenate([x for link, x in self._links(q).items() if link in self._fixed])

    def _links(self, q: Vector) -> dict[str, Vector]:
        poses = link_poses(self._arm, q).items()
        return {link: self._local[link] @ turned.T + at for link, (at, turned) in poses}


def arm_reach(arm: ArmModel) -> Reach:
    """Return the reach of ``arm``."""
    points, initial = ArmPoints(arm), arm.pose("initial")
    limits = [(joint.lower, joint.upper) for joint in arm.joints]
    return reach(points.placed, points.base(initial), limits, initial)
