"""Spheres in place of the links of an arm, for contact in closed form.

A shape is replaced by spheres of the largest radius that fits, from end to end: a cylinder or
capsule by spheres on its axis, a disc by spheres at its rim, a box by spheres in the plane of its
two longer sides. They lie within the shape. At most 0.42 radii are missing at the rim of a cylinder
and 0.73 at the corner of a box. A mesh is replaced by the spheres of its bounding box along its
principal axes.
"""

from __future__ import annotations

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


class LinkSphere(NamedTuple):
    """Sphere of a link: name, its joint, center (3,) [m] in the frame of the joint, radius [m].

    An ``end`` is a sphere that can touch a plane before its neighbors.
    """

    link: str
    joint: int
    center: Vector
    radius: float
    end: bool


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

    Parameters
    ----------
    arm : ArmModel
        Arm.
    most : int
        Largest number of spheres of a shape.

    """
    found: list[LinkSphere] = []
    for one in convex_parts(collision_shapes(arm)[0])[1].geometryObjects:
        joint, name = int(one.parentJoint), str(arm.model.frames[one.parentFrame].name)
        sides, radius, middle, turn = rounded_box(one.geometry)
        full = sides + 2 * radius
        order = np.argsort(full)
        count = min(max(round(full[order[2]] / max(full[order[1]], 1e-6)), 1), most)
        parts = np.where(np.arange(3) == order[2], full / count, full)
        cover = 0.5 * float(np.linalg.norm(parts)) if sides.any() else radius
        for k in range(count) if joint > 0 else ():
            at = np.where(np.arange(3) == order[2], full * ((k + 0.5) / count - 0.5), 0.0)
            center = one.placement.act(middle + turn @ at)
            found.append(LinkSphere(name, joint, center, cover, k in (0, count - 1)))
    return found


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
