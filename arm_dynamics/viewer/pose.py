"""A rigid pose in plain floats: what a scene node of the page is given.

Poses of single joints are tiny; plain float arithmetic is several times faster here than
numpy, and the tuples go to the page as they are.
"""

from __future__ import annotations

from math import cos, sin
from typing import NamedTuple

Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


class Pose(NamedTuple):
    """``x_parent = position + R(wxyz) x_local``; position in m, wxyz a unit quaternion."""

    position: Triple = (0.0, 0.0, 0.0)
    wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def __matmul__(self, other: Pose) -> Pose:
        """Return this pose followed by ``other``: T = T_self T_other."""
        return Pose(self.apply(other.position), product(self.wxyz, other.wxyz))

    def apply(self, point: Triple) -> Triple:
        """Return ``position + R point``."""
        x, y, z = rotate(self.wxyz, point)
        return (self.position[0] + x, self.position[1] + y, self.position[2] + z)


def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the Hamilton product a b."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def rotate(wxyz: Quaternion, point: Triple) -> Triple:
    """Return R(wxyz) point = p + 2 w (u x p) + 2 u x (u x p), with wxyz = (w, u)."""
    w, x, y, z = wxyz
    px, py, pz = point
    cx, cy, cz = 2 * (y * pz - z * py), 2 * (z * px - x * pz), 2 * (x * py - y * px)
    return (
        px + w * cx + y * cz - z * cy,
        py + w * cy + z * cx - x * cz,
        pz + w * cz + x * cy - y * cx,
    )


def about(axis: Triple, angle: float) -> Quaternion:
    """Return the rotation by ``angle`` [rad] about the unit vector ``axis``."""
    s = sin(angle / 2)
    return (cos(angle / 2), s * axis[0], s * axis[1], s * axis[2])
