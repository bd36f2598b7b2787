"""Convex shapes of links and objects in the form in which their points of contact are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.simulation.contact.contact_points import (
    ROWS,
    Polytope,
    ground_points,
    placed_polytope,
    polytope_points,
    round_points,
    sphere_points,
)

SIDES = 48
"""Sides of the prism that replaces a cylinder except against a ground or a sphere."""
COPLANAR = 1e-6
"""Sine of the angle, and distance relative to the size, up to which facets are one face."""
BOX = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


@dataclass(frozen=True, eq=False)
class ConvexShape:
    """A convex shape in the frame of its body: "ground", "sphere", "cylinder" or "polytope".

    Attributes
    ----------
    kind : str
        A ground is the half space z <= 0 of its frame.
    size : tuple of float
        (radius,) of a sphere, (radius, length) of a cylinder along z [m].
    position, rotation : (3,), (3, 3) array
        Placement of its frame in the body.
    points : (n, 3) array
        Vertices of a polytope in its frame [m].

    """

    kind: str
    size: tuple[float, ...]
    position: Vector
    rotation: Matrix
    points: Matrix | None = None

    @cached_property
    def radius(self) -> float:
        """Radius [m] of the sphere about its origin that contains it."""
        if self.kind == "ground":
            return np.inf
        if self.kind == "sphere":
            return self.size[0]
        return float(np.linalg.norm(self.polytope[0], axis=1).max())

    @cached_property
    def polytope(self) -> Polytope:
        """Vertices, normals, offsets, faces and edge directions in the frame of the shape."""
        if self.kind == "cylinder":
            radius, length = self.size
            turn = 2 * np.pi * np.arange(SIDES) / SIDES
            ring = radius * np.column_stack([np.cos(turn), np.sin(turn)])
            ends = [np.column_stack([ring, np.full(SIDES, z)]) for z in (-length / 2, length / 2)]
            return polytope_of(np.vstack(ends))
        assert self.points is not None
        return polytope_of(self.points)


class Placed:
    """A shape at a pose: origin (3,) [m] and rotation (3, 3), in base axes."""

    __slots__ = "_polytope", "position", "rotation", "shape"

    def __init__(self, shape: ConvexShape, position: Vector, rotation: Matrix) -> None:
        self.shape, self.position, self.rotation = shape, position, rotation
        self._polytope: Polytope | None = None

    @property
    def polytope(self) -> Polytope:
        """The polytope of the shape in base axes."""
        if self._polytope is None:
            self._polytope = placed_polytope(self.shape.polytope, self.position, self.rotation)
        return self._polytope


def polytope_of(points: FloatArray) -> Polytope:
    """Return the convex hull of points (n, 3) with coplanar facets joined to faces.

    Raises scipy's QhullError for points in a plane.
    """
    from scipy.spatial import ConvexHull, cKDTree  # noqa: PLC0415 - slow to import

    hull = ConvexHull(points)
    vertices = points[hull.vertices]
    size = float(np.ptp(vertices, axis=0).max())
    planes = hull.equations * [1, 1, 1, -1 / size]
    groups = cKDTree(planes).query_ball_point(planes, COPLANAR)
    faces, normals, offsets, seen = [], [], [], np.zeros(len(planes), bool)
    for k, group in enumerate(groups):
        if seen[k]:
            continue
        seen[group] = True
        normal = hull.equations[k, :3]
        corners = np.unique(hull.simplices[group])
        offset = float((points[corners] @ normal).mean())
        across = points[corners] - points[corners].mean(axis=0)
        axis = across[np.argmax(np.linalg.norm(across, axis=1))]
        axis = axis / np.linalg.norm(axis)
        order = np.argsort(np.arctan2(across @ np.cross(normal, axis), across @ axis))
        faces.append(np.searchsorted(np.sort(hull.vertices), corners[order]))
        normals.append(normal)
        offsets.append(offset)
    vertices = points[np.sort(hull.vertices)]
    table = np.full((len(faces), max(len(f) for f in faces)), -1, np.int64)
    edges = []
    for row, face in zip(table, faces, strict=True):
        row[: len(face)] = face
        edges.append(vertices[np.roll(face, -1)] - vertices[face])
    directions = np.vstack(edges)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    directions *= np.where(directions @ [1.0, 0.618, 0.382] < 0, -1.0, 1.0)[:, None]
    near = cKDTree(directions).query_ball_point(directions, COPLANAR)
    unique = directions[[k == min(group) for k, group in enumerate(near)]]
    return vertices, np.array(normals), np.array(offsets), table, unique


class ContactPoints:
    """Contacts of two placed shapes, in memory that is used again by the next pair."""

    def __init__(self) -> None:
        self._rows = np.empty((ROWS, 7))

    def of(self, first: Placed, second: Placed, margin: float) -> Matrix:
        """Return rows (n, 7) of point, normal from the first to the second shape, and gap."""
        a, b = first.shape.kind, second.shape.kind
        order = ("ground", "polytope", "cylinder", "sphere")
        if order.index(a) > order.index(b):
            rows: Matrix = self.of(second, first, margin).copy()
            rows[:, 3:6] *= -1.0
            return rows
        rows = self._rows
        if a == "ground":
            points, shift = _lowest(second, first.rotation[:, 2])
            count = ground_points(
                first.position, first.rotation[:, 2], points, margin + shift, rows
            )
            rows[:count, 6] -= shift
            rows[:count, :3] -= 0.5 * shift * first.rotation[:, 2]
        elif b == "sphere" and a == "sphere":
            count = round_points(
                first.position, first.shape.size[0], second.position, second.shape.size[0],
                np.array([0.0, 0.0, 1.0]), rows,
            )  # fmt: skip
        elif b == "sphere" and a == "cylinder":
            count = _cylinder_and_sphere(first, second, rows)
        elif b == "sphere":
            count = sphere_points(
                first.polytope, second.position, second.shape.size[0], margin, rows
            )
        else:
            count = polytope_points(first.polytope, second.polytope, margin, rows)
        found: Matrix = rows[:count]
        below: Matrix = found[found[:, 6] < margin]
        return below


def _lowest(placed: Placed, normal: Vector) -> tuple[Matrix, float]:
    """Return points (n, 3) of a shape that are lowest against a normal, and their radius [m]."""
    if placed.shape.kind == "sphere":
        return placed.position[None], placed.shape.size[0]
    if placed.shape.kind == "polytope":
        return placed.polytope[0], 0.0
    radius, length = placed.shape.size
    axis = placed.rotation[:, 2]
    down = -(normal - (normal @ axis) * axis)
    size = float(np.linalg.norm(down))
    down = down / size if size > COPLANAR else placed.rotation[:, 0]
    across = np.cross(axis, down)
    rim = radius * np.array([down, across, -down, -across])
    half = 0.5 * length * axis
    return placed.position + np.vstack([rim + half, rim - half]), 0.0


def _cylinder_and_sphere(first: Placed, second: Placed, rows: Matrix) -> int:
    """Write the contact of a cylinder with a sphere; return 1."""
    radius, length = first.shape.size
    local = first.rotation.T @ (second.position - first.position)
    across = float(np.hypot(local[0], local[1]))
    out = local[:2] / across if across > 0 else np.array([1.0, 0.0])
    inside = across < radius and abs(local[2]) < length / 2
    if inside:
        to_side, to_end = radius - across, length / 2 - abs(local[2])
        normal = np.array([*out, 0.0]) if to_side < to_end else [0.0, 0.0, np.sign(local[2])]
        gap = -min(to_side, to_end) - second.shape.size[0]
        normal = first.rotation @ normal
        surface = second.position + min(to_side, to_end) * normal
        rows[0] = [*(surface + 0.5 * gap * normal), *normal, gap]
        return 1
    nearest = np.array([*(out * min(across, radius)), np.clip(local[2], -length / 2, length / 2)])
    point = first.position + first.rotation @ nearest
    return int(
        round_points(point, 0.0, second.position, second.shape.size[0], first.rotation[:, 2], rows)
    )
