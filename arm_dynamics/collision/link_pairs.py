"""Pairs of links, and of links and objects, that need no collision check in MoveIt."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.scene import Scene
from arm_dynamics.collision.scene_shapes import object_shape
from arm_dynamics.collision.self_collision import CONTACT, PERMANENT, collision_shapes
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.kinematics.inverse_kinematics import sampling_ranges
from arm_dynamics.model.arm_argument import check_arm, requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.srdf import disabled_pairs

COMPUTED = ("Adjacent", "Default", "Always", "Never")
"""Reasons that are computed again."""
SAMPLES = 10_000
"""Random configurations, as in the setup assistant of MoveIt."""


class DisabledPair(NamedTuple):
    """Two links without a collision check."""

    first: str
    second: str
    reason: str
    """Adjacent: one joint connects them; Default: they collide at the initial configuration;
    Always: at nearly every configuration; Never: at none. Other reasons are those of the SRDF."""


def collision_matrix(
    arm: ArmModel, samples: int = SAMPLES, seed: int = 0
) -> tuple[DisabledPair, ...]:
    """Return the pairs of links with collision geometry that need no collision check.

    Parameters
    ----------
    arm : ArmModel
        Arm with collision geometry in its URDF.
    samples : int
        Number of random configurations within the position limits.
    seed : int
        Seed of the configurations.

    Returns
    -------
    tuple of DisabledPair
        Names of the links in the order of the URDF, and the reason: Adjacent, Default, Always or
        Never; other reasons are those of the SRDF next to the URDF.

    References
    ----------
    MoveIt, moveit_setup_assistant, compute_default_collisions.

    """
    model = check_arm(arm).model
    shapes, _ = collision_shapes(arm)
    links = [shape.parentFrame for shape in shapes.geometryObjects]
    with_geometry = sorted(set(links))
    for i, j in combinations(range(len(links)), 2):
        if links[i] != links[j]:
            shapes.addCollisionPair(pin.CollisionPair(i, j))
    ends = [sorted((links[p.first], links[p.second])) for p in shapes.collisionPairs]
    pairs = [(first, second) for first, second in ends]
    counts = dict.fromkeys(combinations(with_geometry, 2), 0)
    data, results = model.createData(), shapes.createData()

    def colliding(q: Vector) -> set[tuple[int, int]]:
        pin.computeCollisions(model, data, shapes, results, q, False)
        return {p for p, r in zip(pairs, results.collisionResults, strict=True) if r.isCollision()}

    default = colliding(np.array(arm.configuration("initial")))
    lower, upper = sampling_ranges(arm, arm.configuration("initial"))
    random = np.random.default_rng(seed)
    for q in random.uniform(lower, upper, (samples, arm.nv)):
        for pair in colliding(q):
            counts[pair] += 1
    given = {pair: why for pair, why in disabled_pairs(arm).items() if why not in COMPUTED}
    disabled = []
    for (first, second), count in counts.items():
        names = [str(model.frames[i].name) for i in (first, second)]
        if frozenset(names) in given:
            reason = given[frozenset(names)]
        elif _are_adjacent(model, first, second):
            reason = "Adjacent"
        elif (first, second) in default:
            reason = "Default"
        elif count >= PERMANENT * samples:
            reason = "Always"
        elif count == 0:
            reason = "Never"
        else:
            continue
        disabled.append(DisabledPair(names[0], names[1], reason))
    return tuple(disabled)


@requires_arm
def touching_links(arm: ArmModel, scene: Scene) -> dict[str, tuple[str, ...]]:
    """Return the links in contact with fixed objects of a scene at the initial configuration.

    Parameters
    ----------
    arm : ArmModel
        Arm with collision geometry in its URDF; without it the visual geometry is used.
    scene : Scene
        Objects around the arm.

    Returns
    -------
    dict of str to tuple of str
        Name of each fixed object that is at most CONTACT [m] from a link; names of these links.

    """
    shapes, _ = collision_shapes(arm)
    links = range(shapes.ngeoms)
    for one in scene:
        if one.is_fixed:
            added = shapes.addGeometryObject(object_shape(one))
            for link in links:
                shapes.addCollisionPair(pin.CollisionPair(link, added))
    results = shapes.createData()
    initial = np.array(arm.configuration("initial"))
    pin.computeDistances(arm.model, arm.model.createData(), shapes, results, initial)
    touching: dict[str, tuple[str, ...]] = {}
    for pair, result in zip(shapes.collisionPairs, results.distanceResults, strict=True):
        link, one = (shapes.geometryObjects[k] for k in (pair.first, pair.second))
        if result.min_distance <= CONTACT:
            name = str(arm.model.frames[link.parentFrame].name)
            touching[one.name] = tuple(dict.fromkeys((*touching.get(one.name, ()), name)))
    return touching


def _are_adjacent(model: pin.Model, first: int, second: int) -> bool:
    """Return whether one joint, moving or fixed, connects two links, given as frames."""
    parents = (model.frames[model.frames[link].parentFrame].parentFrame for link in (first, second))
    above_first, above_second = parents
    return bool(above_first == second or above_second == first)
