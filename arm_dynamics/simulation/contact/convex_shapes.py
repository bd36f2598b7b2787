"""Convex shapes of links and objects in the form in which their points of contact are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.simulation.contact.contact_points import (
    CYLINDER,
    GROUND,
    POLYTOPE,
    SOLID,
    SPHERE,
    Polytope,
    Shapes,
)

SIDES = 48
"""Sides of the prism that replaces a cylinder except against a ground or a sphere."""
COPLANAR = 1e-6
"""Sine of the angle, and distance relative to the size, up to which facets are one face."""
KINDS = {"ground": GROUND, "polytope": POLYTOPE, "cylinder": CYLINDER, "sphere": SPHERE}
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


NO_POLYTOPE: Polytope = (
    np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 0), np.int64), np.zeros((0, 3))
)  # fmt: skip


class Solid(NamedTuple):
    """A convex shape of a body, in the frame of that number, with its surface."""

    name: str
    shape: ConvexShape
    frame: int
    friction: float
    restitution: float
    compliance: float


def shape_table(solids: Sequence[Solid]) -> Shapes:
    """Return solids as arrays for compiled code."""
    table, parts = np.zeros(len(solids), SOLID), [NO_POLYTOPE]
    for row, (_, shape, frame, *surface) in zip(table, solids, strict=True):
        row["kind"], row["size"][: len(shape.size)] = KINDS[shape.kind], shape.size
        row["position"], row["rotation"], row["radius"] = (
            shape.position,
            shape.rotation,
            shape.radius,
        )
        row["frame"] = frame
        row["friction"], row["restitution"], row["compliance"] = surface
        parts.append(shape.polytope if shape.kind in ("polytope", "cylinder") else NO_POLYTOPE)
    starts = np.cumsum([[len(part[k]) for k in (0, 1, 4)] for part in parts], axis=0)
    width = max(part[3].shape[1] for part in parts)
    faces = [np.pad(x[3], ((0, 0), (0, width - x[3].shape[1])), constant_values=-1) for x in parts]
    vertices, normals, offsets, directions = (
        np.concatenate([part[k] for part in parts]) for k in (0, 1, 2, 4)
    )
    return table, (vertices, normals, offsets, np.concatenate(faces), directions, starts)


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
