"""Objects of a scene as shapes of coal."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.collision_filter import convex_hull
from arm_dynamics.collision.scene import SceneObject


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
