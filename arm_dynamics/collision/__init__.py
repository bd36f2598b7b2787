"""Distances between the links of an arm, and to the objects around it.

May import ``dynamics`` and below; requires coal, a part of Pinocchio. ``Scene`` contains the
objects around an arm, ``SelfCollision`` checks configurations and motions, ``collision_matrix``
lists the pairs of links that need no check.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.collision.free_inverse_kinematics import free_inverse_kinematics
    from arm_dynamics.collision.link_pairs import collision_matrix
    from arm_dynamics.collision.scene import Scene, SceneObject
    from arm_dynamics.collision.scene_files import load_scene
    from arm_dynamics.collision.self_collision import SelfCollision

_MODULES = {
    "Scene": ".scene",
    "SceneObject": ".scene",
    "SelfCollision": ".self_collision",
    "collision_matrix": ".link_pairs",
    "free_inverse_kinematics": ".free_inverse_kinematics",
    "load_scene": ".scene_files",
}

__all__ = [
    "Scene",
    "SceneObject",
    "SelfCollision",
    "collision_matrix",
    "free_inverse_kinematics",
    "load_scene",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
