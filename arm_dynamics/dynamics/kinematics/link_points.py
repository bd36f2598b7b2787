"""Points and bounding boxes of the links of an arm, by the visible geometry of its URDF."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.dynamics.kinematics.frames import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import visuals


class BoundingBox(NamedTuple):
    """Box along the axes of a frame."""

    lower: Vector
    """(3,) [m]"""
    upper: Vector
    """(3,) [m]"""

    @classmethod
    def of(cls, points: Matrix) -> BoundingBox:
        """Return the smallest box with ``points`` (n, 3) [m]."""
        return cls(points.min(axis=0), points.max(axis=0))

    def overlaps(self, other: BoundingBox) -> bool:
        """Return whether two boxes along the same axes have a common point."""
        return bool((self.lower <= other.upper).all() and (other.lower <= self.upper).all())

    def distance(self, point: Vector) -> float:
        """Return the distance [m] of a point (3,) from the box; 0 inside."""
        return float(np.linalg.norm(point - np.clip(point, self.lower, self.upper)))


class LinkPoints:
    """Points of an arm fixed in its links: link origins and corners of the visible geometry."""

    def __init__(self, arm: ArmModel) -> None:
        self._arm, folder = arm, arm.source.parent if arm.source else None
        corners = {frame.name: [np.zeros((1, 3))] for frame in arm.model.frames}
        for visual in visuals(arm):
            corners[visual.link].append(visual.corners(folder))
        self.local = {link: np.concatenate(boxes) for link, boxes in corners.items()}
        """Points (n, 3) [m] of each link in its frame."""
        self._fixed = {frame.name for frame in arm.model.frames if frame.parentJoint == 0}

    def placed(self, q: Vector) -> Matrix:
        """Return all points (n, 3) [m] in the base frame at ``q`` (nv,)."""
        return np.concatenate(list(self.of_links(q).values()))

    def base(self, q: Vector) -> Matrix:
        """Return the points (m, 3) [m] of the fixed links."""
        return np.concatenate([x for link, x in self.of_links(q).items() if link in self._fixed])

    def of_links(self, q: Vector) -> dict[str, Matrix]:
        """Return the points (n, 3) [m] of each link in the base frame at ``q`` (nv,)."""
        poses = link_poses(self._arm, q).items()
        return {link: self.local[link] @ turned.T + at for link, (at, turned) in poses}
