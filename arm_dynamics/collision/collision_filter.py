"""Conservative filter of collision checks: pairs of shapes at a distance.

A mesh is covered by the convex hulls of its parts, and each hull by a sphere; a primitive shape by
the spheres of its slices. Shapes whose spheres or hulls keep a margin keep it also. Only the
remaining pairs need the exact and slow check.

References
----------
C. Ericson, Real-Time Collision Detection (2005), chapters 4 and 6.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel

PARTS = 8
"""Parts of a mesh."""
SLACK = 1e-5
"""Increase of the margins [m], above the errors of the distances of hulls."""
HALF_SPACE = 1e6
"""Radius [m] of the sphere of a half space: 4 m from the origin of the base it is 8 µm below."""
THICKNESS = 1e-4
"""Thickness of the hull of points in a plane [m], and relative to their size above 1 m."""


class CollisionFilter:
    """Pairs of shapes that may be nearer than their margins.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    shapes : pinocchio.GeometryModel
        Collision geometry of the arm.

    """

    def __init__(self, arm: ArmModel, shapes: pin.GeometryModel) -> None:
        self._arm, self._model, self._data = arm, arm.model, arm.model.createData()
        self._axes = _joint_axes(arm.tree)
        covers = [_Cover.of(shape) for shape in shapes.geometryObjects]
        self._bodies = np.array([shape.parentJoint for shape in shapes.geometryObjects], int)
        self._centers = np.array([cover.centers[0] for cover in covers]).reshape(-1, 3)
        self._radii = np.array([cover.radii[0] for cover in covers])
        self._part_centers = np.full((len(covers), PARTS, 3), np.nan)
        self._part_radii = np.zeros((len(covers), PARTS))
        self._hulls = pin.GeometryModel()
        hulls: list[list[int]] = []
        for k, (shape, cover) in enumerate(zip(shapes.geometryObjects, covers, strict=True)):
            count = len(cover.radii) - 1
            self._part_centers[k, :count] = cover.centers[1:]
            self._part_radii[k, :count] = cover.radii[1:]
            hulls.append([])
            for i, hull in enumerate(cover.hulls):
                own = shape.copy()
                own.name, own.geometry = f"{k}.{i}", hull
                hulls[k].append(int(self._hulls.addGeometryObject(own)))
        self._covers, self._indices = covers, hulls
        self.use_pairs({})

    def use_pairs(self, margins: Mapping[tuple[int, int], float]) -> None:
        """Filter these pairs of shapes, each with its margin [m]."""
        self._pairs = np.array(list(margins), int).reshape(-1, 2)
        self._margins = np.array(list(margins.values()), float) + SLACK
        self._hulls.removeAllCollisionPairs()
        self._checks = [self._hull_pairs(i, j) for i, j in margins]
        self._results = self._hulls.createData()
        for (whole, parts), margin in zip(self._checks, self._margins.tolist(), strict=True):
            for k in [] if whole is None else [whole, *np.unique(parts[parts > 0]).tolist()]:
                self._results.collisionRequests[k].security_margin = margin
        self._wide_results = self._hulls.createData()  # with margins of each check

    def near(self, q: Matrix, more: Matrix | None = None) -> Iterator[tuple[int, int]]:
        """Return indices of configurations ``q`` (n, nv) and of pairs that may be too near.

        The indices are in ascending order, those of the configurations first. ``more`` (n, pairs)
        [m] is added to the margins.
        """
        if not len(self._pairs):
            return
        margins = np.broadcast_to(self._margins, (len(q), len(self._pairs)))
        results = self._results
        if more is not None:
            margins, results = margins + more, self._wide_results
        samples, pairs, parts = self._near_spheres(q, margins)
        placed = -1
        for n, (sample, k) in enumerate(zip(samples.tolist(), pairs.tolist(), strict=True)):
            whole, checks = self._checks[k]
            if whole is not None:
                if placed != sample:
                    pin.updateGeometryPlacements(
                        self._model, self._data, self._hulls, results, q[sample]
                    )
                    placed = sample
                hulls = set(checks[parts[n]].tolist())
                if more is not None:
                    for i in (whole, *hulls):
                        results.collisionRequests[i].security_margin = margins[sample, k]
                if not pin.computeCollision(self._hulls, results, whole):
                    continue
                if not any(pin.computeCollision(self._hulls, results, i) for i in hulls):
                    continue
            yield sample, k

    def _hull_pairs(self, i: int, j: int) -> tuple[int | None, IntArray]:
        """Return the index of a pair's whole hulls, and those (PARTS, PARTS) of their parts.

        Two primitive shapes have no index: their exact check is the one of their hulls.
        """
        parts = np.zeros((PARTS, PARTS), int)
        own, other = self._covers[i], self._covers[j]
        if len(own.hulls) == len(other.hulls) == 1:
            return None, parts
        begin = len(self._hulls.collisionPairs)
        found = {(0, 0): begin}
        for a, b in np.ndindex(len(own.radii) - 1, len(other.radii) - 1):
            pair = min(a + 1, len(own.hulls) - 1), min(b + 1, len(other.hulls) - 1)
            parts[a, b] = found.setdefault(pair, begin + len(found))
        for a, b in found:
            ends = self._indices[i][a], self._indices[j][b]
            self._hulls.addCollisionPair(pin.CollisionPair(*ends))
        return begin, parts

    def _near_spheres(self, q: Matrix, margins: Matrix) -> tuple[IntArray, IntArray, BoolArray]:
        """Return samples and pairs (m,) of near spheres, and near parts (m, PARTS, PARTS)."""
        rotations, origins = _placements(self._arm.tree, self._axes, self._arm.tree_positions(q))
        centers = origins[:, self._bodies] + np.einsum(
            "nbij,bj->nbi", rotations[:, self._bodies], self._centers
        )
        first, second = self._pairs.T
        reach = self._radii[first] + self._radii[second] + margins
        samples, pairs = np.nonzero(
            ((centers[:, first] - centers[:, second]) ** 2).sum(axis=2) <= reach**2
        )
        ends = []
        for shapes in (first[pairs], second[pairs]):
            body = self._bodies[shapes]
            turned = self._part_centers[shapes] @ rotations[samples, body].swapaxes(1, 2)
            ends.append(turned + origins[samples, body][:, None])
        square = np.zeros((len(pairs), PARTS, PARTS))
        for axis in range(3):
            square += (ends[0][:, :, None, axis] - ends[1][:, None, :, axis]) ** 2
        reaches = self._part_radii[first][:, :, None] + self._part_radii[second][:, None]
        parts = square <= (reaches[pairs] + margins[samples, pairs, None, None]) ** 2
        kept = parts.any(axis=(1, 2))
        return samples[kept], pairs[kept], parts[kept]


def convex_parts(
    shapes: pin.GeometryModel,
) -> tuple[pin.GeometryModel, pin.GeometryModel, IntArray]:
    """Return convex shapes that cover ``shapes``, without pairs.

    They are the convex hulls of the parts of each mesh, the convex hull of each whole mesh, and the
    whole (n,) that each part belongs to. A primitive shape is its own hull.
    """
    parts, wholes, belongs = pin.GeometryModel(), pin.GeometryModel(), []
    for k, shape in enumerate(shapes.geometryObjects):
        hulls = _Cover.of(shape).hulls
        for model, geometry in [
            (wholes, hulls[0]),
            *((parts, hull) for hull in hulls[1:] or hulls),
        ]:
            hull_object = shape.copy()
            hull_object.name, hull_object.geometry = f"{shape.name}.{model.ngeoms}", geometry
            model.addGeometryObject(hull_object)
        belongs += [k] * max(len(hulls) - 1, 1)
    return parts, wholes, np.array(belongs, int)


@dataclass(frozen=True, slots=True, eq=False)
class _Cover:
    """Hulls of a shape and their spheres in the body's frame, the first one around all others.

    A primitive shape is its only hull, and the spheres are those of its slices.
    """

    hulls: list[Any]
    centers: Matrix
    radii: Vector

    @classmethod
    def of(cls, shape: pin.GeometryObject) -> _Cover:
        geometry, placement = shape.geometry, shape.placement
        if not hasattr(geometry, "tri_indices"):
            if type(geometry).__name__ == "Halfspace":
                normal = placement.rotation @ geometry.n
                height = geometry.d + float(normal @ placement.translation)
                center = (height - HALF_SPACE) * normal
                return cls([geometry], np.tile(center, (2, 1)), np.full(2, HALF_SPACE))
            geometry.computeLocalAABB()
            sides = np.array(geometry.aabb_local.max_ - geometry.aabb_local.min_)
            longest = int(np.argmax(sides))
            slices = np.repeat(np.array(geometry.aabb_center)[None], PARTS + 1, axis=0)
            slices[1:, longest] += ((np.arange(PARTS) + 0.5) / PARTS - 0.5) * sides[longest]
            cut = sides.copy()
            cut[longest] /= PARTS
            sizes = np.full(PARTS + 1, np.linalg.norm(cut) / 2)
            sizes[0] = geometry.aabb_radius
            return cls([geometry], np.array([placement.act(x) for x in slices]), sizes)
        triangles = map(geometry.tri_indices, range(geometry.num_tris))
        corners = np.array([(t[0], t[1], t[2]) for t in triangles], int)
        vertices = np.array(geometry.vertices())
        hulls, centers, radii = [], [], []
        for part in (corners, *_parts(vertices, corners)):
            points = vertices[np.unique(part)]
            center = (points.min(axis=0) + points.max(axis=0)) / 2
            hulls.append(convex_hull(type(geometry), points))
            centers.append(placement.act(center))
            radii.append(float(np.linalg.norm(points - center, axis=1).max()))
        return cls(hulls, np.array(centers), np.array(radii))


def _parts(vertices: Matrix, corners: IntArray) -> list[IntArray]:
    """Return at most PARTS sets of triangles: the longest set is divided in the middle."""
    middles = vertices[corners].mean(axis=1)
    parts: list[IntArray] = [np.arange(len(corners))]
    found: list[IntArray] = []
    while parts and len(parts) + len(found) < PARTS:
        k = int(np.argmax([np.linalg.norm(np.ptp(middles[part], axis=0)) for part in parts]))
        part = parts.pop(k)
        _, axes = np.linalg.eigh(np.cov(middles[part].T, bias=True))
        along = middles[part] @ axes[:, -1]
        low = along <= (along.min() + along.max()) / 2
        if low.all():
            found.append(part)
        else:
            parts += [part[low], part[~low]]
    return [corners[part] for part in parts + found]


def convex_hull(kind: type, points: Matrix) -> Any:
    """Return the convex hull of points (n, 3) [m] and of a small octahedron in their middle.

    The octahedron makes the hull of points in a plane a solid, which Qhull needs. Where a vertex of
    the hull has more edges than coal can store, the bounding box replaces the hull.
    """
    size = max(THICKNESS * float(np.ptp(points, axis=0).max()), THICKNESS)
    corners = np.vstack((points, points.mean(axis=0) + size * np.vstack((np.eye(3), -np.eye(3)))))
    bounds = corners.min(axis=0), corners.max(axis=0)
    box = np.array([[bounds[b][i] for i, b in enumerate(bits)] for bits in np.ndindex(2, 2, 2)])
    try:
        return _convex(kind, corners)
    except RuntimeError:
        return _convex(kind, box)


def _convex(kind: type, corners: Matrix) -> Any:
    cloud = kind()
    cloud.beginModel(0, len(corners))
    cloud.addVertices(corners)
    cloud.buildConvexHull(True, "Qt")
    return cloud.convex


def _joint_axes(model: pin.Model) -> Matrix:
    """Return the axes (nv, 6) of translation and rotation of each joint in its frame."""
    axes = np.zeros((model.nv, 6))
    for body in range(1, model.njoints):
        joint = model.joints[body]
        data = joint.createData()
        joint.calc(data, np.zeros(model.nq))
        axes[body - 1] = np.ravel(data.S)
    return axes


def _placements(model: pin.Model, axes: Matrix, q: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return rotations (n, bodies, 3, 3) and origins (n, bodies, 3) [m] of all bodies.

    R(q) = I + sin q K + (1 - cos q) K²,  K = [axis]×
    """
    rotations = np.zeros((len(q), model.njoints, 3, 3))
    origins = np.zeros((len(q), model.njoints, 3))
    rotations[:, 0] = np.eye(3)
    sine, cosine = np.sin(q), np.cos(q)
    for i, axis in enumerate(axes):
        body, parent = i + 1, model.parents[i + 1]
        placement, turned = model.jointPlacements[body], pin.skew(axis[3:])
        step = placement.translation + np.outer(q[:, i], placement.rotation @ axis[:3])
        origins[:, body] = origins[:, parent] + (rotations[:, parent] @ step[:, :, None])[:, :, 0]
        own = placement.rotation @ (
            np.eye(3)
            + sine[:, i, None, None] * turned
            + (1 - cosine[:, i, None, None]) * (turned @ turned)
        )
        rotations[:, body] = rotations[:, parent] @ own
    return rotations, origins
