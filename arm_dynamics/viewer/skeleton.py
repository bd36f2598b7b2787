"""Forward kinematics of the scene: poses of all links of a URDF, joints without motors included.

Poses are tuples of floats. For single poses they are several times faster than numpy, and the page
accepts them without conversion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.errors import InvalidValue, UnknownName

Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


class ScenePose(NamedTuple):
    """``x_parent = position + R(wxyz) x_local``; position in m, wxyz a unit quaternion."""

    position: Triple = (0.0, 0.0, 0.0)
    wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def __matmul__(self, other: ScenePose) -> ScenePose:
        """Return this pose followed by ``other``: T = T_self T_other."""
        return ScenePose(self.apply(other.position), quaternion_product(self.wxyz, other.wxyz))

    def apply(self, point: Triple) -> Triple:
        """Return ``position + R point``."""
        x, y, z = rotate(self.wxyz, point)
        return (self.position[0] + x, self.position[1] + y, self.position[2] + z)


def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
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


def axis_angle_quaternion(axis: Triple, angle: float) -> Quaternion:
    """Return the rotation by ``angle`` [rad] about the unit vector ``axis``."""
    s = sin(angle / 2)
    return (cos(angle / 2), s * axis[0], s * axis[1], s * axis[2])


TURNING = ("revolute", "continuous")
KINDS = (*TURNING, "prismatic", "fixed")


@dataclass(frozen=True, slots=True)
class Link:
    """A link and its joint; ``index`` is the index of the joint in q, or None."""

    name: str
    parent: str
    origin: ScenePose
    kind: str = "fixed"
    axis: Triple = (1.0, 0.0, 0.0)
    index: int | None = None
    multiplier: float = 1.0
    offset: float = 0.0

    def pose(self, q: Sequence[float]) -> ScenePose:
        """Return the pose of the link in its parent: ``origin`` followed by the joint motion."""
        if self.index is None or self.kind == "fixed":
            return self.origin
        value = self.multiplier * q[self.index] + self.offset
        if self.kind in TURNING:
            return ScenePose(
                self.origin.position,
                quaternion_product(self.origin.wxyz, axis_angle_quaternion(self.axis, value)),
            )
        x, y, z = self.axis
        return self.origin @ ScenePose((value * x, value * y, value * z))


class Skeleton:
    """Links of a loaded URDF from the base outwards, with the indices of their joints in q.

    Joints that are not in ``joint_names`` are at zero; a mimic joint follows its driven joint.
    """

    def __init__(self, urdf: Any, joint_names: Sequence[str]) -> None:
        for name in joint_names:
            if name not in urdf.joint_map:
                raise UnknownName("joint of the URDF", name, tuple(urdf.joint_map))
        self.base: str = urdf.base_link
        index = {name: i for i, name in enumerate(joint_names)}
        links = [_link(joint, urdf.joint_map, index) for joint in urdf.joint_map.values()]
        self.links = tuple(_outwards(self.base, links))

    def poses(self, q: Sequence[float]) -> dict[str, ScenePose]:
        """Return the pose of every link in the base frame."""
        placed = {self.base: ScenePose()}
        for link in self.links:
            placed[link.name] = placed[link.parent] @ link.pose(q)
        return placed

    def chain(self, name: str) -> tuple[Link, ...]:
        """Return the links from the base to link ``name``; raise UnknownName without it."""
        by_name = {link.name: link for link in self.links}
        if name != self.base and name not in by_name:
            raise UnknownName("link of the URDF", name, (self.base, *by_name))
        links: list[Link] = []
        while name != self.base:
            links.append(by_name[name])
            name = by_name[name].parent
        return tuple(reversed(links))


def tip(chain: Sequence[Link], q: Sequence[float]) -> Triple:
    """Return the position [m] in the base frame of the last link of ``chain``."""
    point: Triple = (0.0, 0.0, 0.0)
    for link in reversed(chain):
        point = link.pose(q).apply(point)
    return point


def pose_of(matrix: Any) -> ScenePose:
    """Return the pose of a homogeneous 4x4 ``matrix``; the identity for None."""
    if matrix is None:
        return ScenePose()
    array = np.asarray(matrix, dtype=float)
    x, y, z, w = Rotation.from_matrix(array[:3, :3]).as_quat().tolist()
    px, py, pz = array[:3, 3].tolist()
    return ScenePose((px, py, pz), (w, x, y, z))


def rotation_matrix(wxyz: ArrayLike) -> Matrix:
    """Return the rotation matrix (3, 3) of a quaternion."""
    matrix: Matrix = Rotation.from_quat(np.roll(wxyz, -1)).as_matrix()
    return matrix


def _link(joint: Any, joints: Mapping[str, Any], index: Mapping[str, int]) -> Link:
    """Return the link of a joint of yourdfpy; raises InvalidValue for another type of joint."""
    if joint.type not in KINDS:
        raise InvalidValue(
            f"joint {joint.name}: type = '{joint.type}'; expected one of {', '.join(KINDS)}, which"
            " can be drawn"
        )
    driven, multiplier, offset = joint, 1.0, 0.0
    for _ in joints:  # locked joints may form a circle
        mimic = driven.mimic
        if mimic is None or mimic.joint not in joints:
            break
        multiplier, offset = multiplier * mimic.multiplier, offset + multiplier * mimic.offset
        driven = joints[mimic.joint]
    axis = np.asarray((1, 0, 0) if joint.axis is None else joint.axis, dtype=float)
    x, y, z = (axis / (np.linalg.norm(axis) or 1.0)).tolist()
    return Link(
        name=joint.child,
        parent=joint.parent,
        origin=pose_of(joint.origin),
        kind=joint.type,
        axis=(x, y, z),
        index=index.get(driven.name),
        multiplier=multiplier,
        offset=offset,
    )


def _outwards(base: str, links: Sequence[Link]) -> Iterator[Link]:
    """Yield the links from ``base`` on, each after its parent."""
    children = [link for link in links if link.parent == base]
    for child in children:
        yield child
        yield from _outwards(child.name, links)
