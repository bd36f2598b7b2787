"""Spheres in place of the links of an arm, for contact in closed form.

A shape is replaced by spheres of the largest radius that fits, from end to end: a cylinder or
capsule by spheres on its axis, a disc by spheres at its rim, a box by spheres in the plane of its
two longer sides. They lie within the shape. At most 0.42 radii are missing at the rim of a cylinder
and 0.73 at the corner of a box. A mesh is replaced by the spheres of its bounding box along its
principal axes.

``covering_spheres`` contain the shapes instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.collision.collision_filter import convex_parts
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel

SPACING = 1.5
"""Largest distance of neighbors, in radii: a third of a radius is missing between them."""
SHORT = 0.5
"""Length of a side, in radii beyond two, up to which one sphere is enough."""


MERGED = 0.35
"""Largest radius of a sphere in place of two of a link, relative to the largest one of the arm."""
CENTERING = 300
"""Steps of ``enclosing_sphere``."""


class LinkSphere(NamedTuple):
    """Sphere of a link: name, its joint, center (3,) [m] in the frame of the joint, radius [m].

    An ``end`` is a sphere that can touch a plane before its neighbors. Spheres of one ``shape``
    that cover it have equal radii.
    """

    link: str
    joint: int
    center: Vector
    radius: float
    end: bool
    shape: int = 0


def link_spheres(arm: ArmModel) -> list[LinkSphere]:
    """Return the spheres of the links that move; those within another one are omitted."""
    shapes, _ = collision_shapes(arm)
    found: list[LinkSphere] = []
    for one in convex_parts(shapes)[1].geometryObjects:
        joint, name = int(one.parentJoint), str(arm.model.frames[one.parentFrame].name)
        sides, radius, middle, turn = rounded_box(one.geometry)
        counts = [1 if s <= SHORT * radius else 1 + ceil(s / (SPACING * radius)) for s in sides]
        for index in np.ndindex(*counts) if joint > 0 else ():
            at = [s * (i / (n - 1) - 0.5) if n > 1 else 0.0
                  for s, i, n in zip(sides, index, counts, strict=True)]  # fmt: skip
            end = all(i in (0, n - 1) for i, n in zip(index, counts, strict=True))
            center = one.placement.act(middle + turn @ np.array(at))
            found.append(LinkSphere(name, joint, center, radius, end))
    return [x for i, x in enumerate(found) if not any(
        _contains(y, x) and not (j > i and _contains(x, y))
        for j, y in enumerate(found) if j != i
    )]  # fmt: skip


def covering_spheres(arm: ArmModel, most: int = 4) -> list[LinkSphere]:
    """Return spheres that cover the links that move, in a row along each shape's longest side.

    The length is divided into equal parts, each in a sphere about it. Small spheres of a link are
    replaced by one about them.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    most : int
        Largest number of spheres of a shape.

    """
    found: list[LinkSphere] = []
    parts = convex_parts(collision_shapes(arm)[0])[1].geometryObjects
    for k, one in enumerate(one for one in parts if int(one.parentJoint) > 0):
        name = str(arm.model.frames[one.parentFrame].name)
        covers = _cover(one.geometry, most)
        radius = max(size for _, size in covers)
        found += [LinkSphere(name, int(one.parentJoint), one.placement.act(center), radius, True, k)
                  for center, _ in covers]  # fmt: skip
    return _merged(found)


def _cover(geometry: Any, most: int) -> list[tuple[Vector, float]]:
    """Return centers (3,) [m] and radii [m] of spheres that cover a shape, in its own frame."""
    sides, radius, middle, turn = rounded_box(geometry)
    full = sides + 2 * radius
    short, width, length = np.argsort(full)
    count = min(max(round(full[length] / max(full[width], 1e-6)), 1), most)
    ends = full[length] * (np.arange(count + 1) / count - 0.5)
    if not sides.any():
        return [(middle, radius)]
    if hasattr(geometry, "num_points"):
        points = np.array([geometry.point(k) for k in range(geometry.num_points)])
        local = (points - middle) @ turn
        slabs = [enclosing_sphere(between(local, length, *pair)) for pair in pairwise(ends)]
        return [(middle + turn @ center, size) for center, size in slabs]
    is_round = hasattr(geometry, "radius") and full[length] > full[width]
    across = full[width] / 2 if is_round else float(np.hypot(full[short], full[width])) / 2
    cover = float(np.hypot(across, full[length] / (2 * count)))
    axis = turn[:, length]
    return [(middle + axis * (low + high) / 2, cover) for low, high in pairwise(ends)]


def between(points: Matrix, axis: int, low: float, high: float) -> Matrix:
    """Return points (n, 3) whose hull is that of ``points`` between two planes across an axis."""
    at, found = points[:, axis], []
    for plane in (low, high):
        below, above = points[at < plane], points[at > plane]
        start, end = below[:, None], above[None]
        part = (plane - start[..., axis]) / (end[..., axis] - start[..., axis])
        found.append((start + part[..., None] * (end - start)).reshape(-1, 3))
    return np.vstack([points[(at >= low - 1e-12) & (at <= high + 1e-12)], *found])


def enclosing_sphere(points: Matrix) -> tuple[Vector, float]:
    """Return center (3,) and radius of a sphere about points, hardly larger than the smallest.

    References
    ----------
    M. Badoiu, K. Clarkson, Smaller core-sets for balls, SODA 2003, section 3.

    """
    center: Vector = (points.min(axis=0) + points.max(axis=0)) / 2
    best = center, float(np.linalg.norm(points - center, axis=1).max())
    for k in range(1, CENTERING):
        distance = np.linalg.norm(points - center, axis=1)
        far = int(np.argmax(distance))
        if distance[far] < best[1]:
            best = center, float(distance[far])
        center = center + (points[far] - center) / (k + 1)
    return best


def _merged(spheres: Sequence[LinkSphere]) -> list[LinkSphere]:
    """Return the spheres without those within another, and one in place of two small ones."""
    found, number = list(spheres), len(spheres)
    limit = MERGED * max((x.radius for x in spheres), default=0.0)
    while True:
        pairs = ((a, b) for a, b in combinations(found, 2) if a.link == b.link)
        both = ((a, b, _about(a, b, number)) for a, b in pairs)
        merged = next((x for x in both if x[2].shape < number or x[2].radius <= limit), None)
        if merged is None:
            return found
        found = [x for x in found if x is not merged[0] and x is not merged[1]] + [merged[2]]
        number += 1


def _about(a: LinkSphere, b: LinkSphere, number: int) -> LinkSphere:
    """Return the sphere about two, a shape of that number, or the one that contains the other."""
    away = b.center - a.center
    distance = float(np.linalg.norm(away))
    for outer, inner in ((a, b), (b, a)):
        if distance + inner.radius <= outer.radius:
            return outer
    radius = (distance + a.radius + b.radius) / 2
    center = a.center + (radius - a.radius) / distance * away
    return a._replace(center=center, radius=radius, shape=number)


def rounded_box(geometry: Any) -> tuple[Vector, float, Vector, Matrix]:
    """Return sides (3,) [m] and radius [m] of the box of centers, its middle and its rotation."""
    middle, turn = np.zeros(3), np.eye(3)
    if hasattr(geometry, "halfSide"):
        sides = 2 * np.ravel(geometry.halfSide)
    elif hasattr(geometry, "halfLength"):
        radius, length = float(geometry.radius), 2 * float(geometry.halfLength)
        if type(geometry).__name__ == "Capsule":
            return np.array([0.0, 0.0, length]), radius, middle, turn
        if length < 2 * radius:  # a disc: the square within the circle of the centers
            sides = (radius - length / 2) * np.array([2**0.5, 2**0.5, 0.0])
            return sides, length / 2, middle, turn
        sides = np.array([2 * radius, 2 * radius, length])
    elif hasattr(geometry, "radius"):
        return np.zeros(3), float(geometry.radius), middle, turn
    else:
        points = np.array([geometry.point(k) for k in range(geometry.num_points)])
        _, turn = np.linalg.eigh(np.cov(points.T))
        turn[:, 0] *= np.sign(np.linalg.det(turn))
        along = points @ turn
        sides, middle = np.ptp(along, axis=0), turn @ (along.min(axis=0) + along.max(axis=0)) / 2
    radius = float(sides.min()) / 2
    return sides - 2 * radius, radius, middle, turn


def _contains(outer: LinkSphere, inner: LinkSphere) -> bool:
    """Return whether a sphere lies within another one of the same joint."""
    if outer.joint != inner.joint or inner.end > outer.end:
        return False
    return float(np.linalg.norm(outer.center - inner.center)) + inner.radius <= outer.radius
