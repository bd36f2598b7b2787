"""Distances between the links of an arm.

May import ``dynamics`` and below; requires coal, a part of Pinocchio. ``SelfCollision`` checks
configurations and motions, ``collision_matrix`` lists the pairs of links that need no check.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.collision.link_pairs import collision_matrix
    from arm_dynamics.collision.self_collision import SelfCollision

_MODULES = {"SelfCollision": ".self_collision", "collision_matrix": ".link_pairs"}

__all__ = ["SelfCollision", "collision_matrix"]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
