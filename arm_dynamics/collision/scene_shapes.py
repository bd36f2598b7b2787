"""Objects of a scene as shapes of coal, and as triangles to draw."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.collision_filter import convex_hull
from arm_dynamics.collision.scene import SceneObject
from arm_dynamics.core.arrays import IntArray, Matrix
from arm_dynamics.model.inertia_estimate import hull_triangles
from arm_dynamics.model.solids import Shape

DRAWN_GROUND = 10.0
"""Edge [m] of the square that shows a ground."""
GROUND_BOX = (10.0, 10.0, 1.0)
"""Edges [m] of the box in place of a ground."""
SIDES = 32
"""Sides of a drawn cylinder, and meridians of a sphere."""


def object_shape(one: SceneObject) -> pin.GeometryObject:
    """Return an object as a shape in base axes."""
    import coal  # noqa: PLC0415 - not in every Pinocchio

    size = one.shape.size
    if one.vertices is not None:
        geometry = convex_hull(coal.BVHModelOBBRSS, one.vertices)
    else:
        geometry = {
            "box": lambda: coal.Box(*size),
            "cylinder": lambda: coal.Cylinder(*size),
            "sphere": lambda: coal.Sphere(*size),
            "ground": lambda: coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0),
        }[one.shape.kind]()
    placement = pin.SE3(np.array(one.rotation), np.array(one.position))
    return pin.GeometryObject(one.name, 0, 0, placement, geometry)


def ground_box(one: SceneObject) -> SceneObject:
    """Return a box in place of a ground: its top is in the plane, its center below the base."""
    normal = one.rotation[:, 2]
    center = normal * (normal @ one.position - GROUND_BOX[2] / 2)
    return SceneObject(one.name, Shape("box", GROUND_BOX), center, one.rotation)


def object_triangles(one: SceneObject) -> tuple[Matrix, IntArray]:
    """Return corners (n, 3) [m] in the axes of an object, and triangles (m, 3) to draw it."""
    angle = 2 * np.pi * np.arange(SIDES) / SIDES
    circle = np.column_stack((np.cos(angle), np.sin(angle)))
    size, kind = one.shape.size, one.shape.kind
    corners = np.array([*np.ndindex(2, 2, 2)]) - 0.5
    if kind == "ground":
        return DRAWN_GROUND * corners[::2] * (1, 1, 0), np.array([[0, 2, 3], [0, 3, 1]])
    if one.vertices is not None:
        points = np.array(one.vertices)
    elif kind == "box":
        points = corners * size
    elif kind == "cylinder":
        heights = np.repeat((-0.5, 0.5), SIDES)[:, None]
        points = np.hstack((np.tile(circle, (2, 1)), heights)) * (size[0], size[0], size[1])
    else:
        polar = np.pi * np.arange(SIDES // 2 + 1) / (SIDES // 2)
        rings = [np.column_stack((np.sin(t) * circle, np.full(SIDES, np.cos(t)))) for t in polar]
        points = size[0] * np.unique(np.vstack(rings).round(12), axis=0)
    triangles = hull_triangles(points)
    assert triangles is not None  # an object has a volume
    return points, triangles


def object_corners(one: SceneObject) -> Matrix:
    """Return the corners (n, 3) [m] of the drawn triangles of an object in base axes."""
    corners: Matrix = object_triangles(one)[0] @ one.rotation.T + one.position
    return corners
