"""Self-collision of an arm by the collision geometry of its URDF.

Pairs of links that one joint connects are omitted, and pairs in contact at the start or at nearly
every random configuration. The floor and the surroundings of the arm are not part of its URDF and
are not checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.collision_filter import CollisionFilter
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.mesh_files import find_mesh

TRIALS = 60
"""Random configurations that find pairs of links in permanent contact."""
PERMANENT = 0.95
"""Fraction of these configurations from which on a contact is permanent."""
CONTACT = 1e-3
"""Distance [m] at the start up to which two links are in contact."""
NEARER = 0.5
"""Clearance of shapes that are nearer at the start, relative to their distance there."""
BATCH = 128
"""Configurations that are filtered together."""


class SelfCollision:
    """Check of the distances between the links of an arm.

    Parameters
    ----------
    arm : ArmModel
        Arm with collision geometry in its URDF; without it no configuration collides.
    clearance : float
        Distance [m] below which two links collide. Shapes that are nearer at the start keep half of
        their distance there; shapes in contact there are omitted, and a RuntimeWarning names them.
    start : (nv,) array
        Configuration [rad or m] that does not collide.

    Attributes
    ----------
    missing : tuple of str
        Meshes that were not found; a RuntimeWarning names them.
    reach : (nv,) array
        Largest distance [m] that a point of the arm moves per unit of each joint's motion: at most
        Σ_i reach_i |Δq_i| between two configurations.

    """

    def __init__(self, arm: ArmModel, clearance: float, start: Vector) -> None:
        self._model = check_arm(arm).model
        text, self.missing = _with_mesh_files(arm)
        for uri in self.missing:
            warnings.warn(
                f"arm '{arm.name}': collision mesh = '{uri}', which was not found; self-collision"
                " is checked without it",
                RuntimeWarning,
                stacklevel=4,
            )
        self._shapes = pin.buildGeomFromUrdfString(self._model, text, pin.COLLISION)
        self._data = self._model.createData()
        self._filter = CollisionFilter(self._model, self._shapes)
        pairs = _distant_pairs(self._model, self._shapes)
        self._use_pairs(dict.fromkeys(pairs, clearance))
        self._use_pairs(self._not_permanent(arm, clearance))
        self._use_pairs(self._apart_at(np.array(start), clearance))
        self.reach = _reach(arm, self._shapes)

    @property
    def pairs(self) -> int:
        """Number of checked pairs of shapes."""
        return len(self._shapes.collisionPairs)

    def find(self, q: Vector) -> tuple[str, str] | None:
        """Return two links nearer than their clearance at ``q`` (nv,) [rad or m], or None."""
        for _, hit in self._collisions(q[None]):
            pair = self._shapes.collisionPairs[hit]
            return self._link(pair.first), self._link(pair.second)
        return None

    def depths(self, q: Matrix) -> Vector:
        """Return by how much [m] a pair is nearer than its clearance, (n,) for ``q`` (n, nv).

        It is the first colliding pair of each configuration; 0 without one.
        """
        found = np.zeros(len(q))
        for sample, hit in self._collisions(q):
            distance = pin.computeDistance(self._shapes, self._results, hit).min_distance
            margin = self._results.collisionRequests[hit].security_margin
            found[sample] = max(float(margin) - float(distance), 0.0)
        return found

    def any_of(self, q: Matrix) -> bool:
        """Return whether the arm collides at one of the configurations ``q`` (n, nv)."""
        return any(True for _ in self._collisions(q))

    def _collisions(self, q: Matrix, every: bool = False) -> Iterator[tuple[int, int]]:
        """Return the indices of configurations and of their first or of all colliding pairs.

        The placements of the shapes are those of the configuration.
        """
        for begin in range(0, len(q), BATCH):
            placed = hit = -1
            rows = q[begin : begin + BATCH]
            for sample, k in self._filter.near(rows):
                if sample == hit and not every:
                    continue
                if sample != placed:
                    pin.updateGeometryPlacements(
                        self._model, self._data, self._shapes, self._results, rows[sample]
                    )
                    placed = sample
                if pin.computeCollision(self._shapes, self._results, k):
                    hit = sample
                    yield begin + sample, k

    def _link(self, shape: int) -> str:
        frame = self._shapes.geometryObjects[shape].parentFrame
        return str(self._model.frames[frame].name)

    def _use_pairs(self, margins: dict[tuple[int, int], float]) -> None:
        """Check these pairs of shapes, each with its clearance [m]."""
        self._shapes.removeAllCollisionPairs()
        for pair in margins:
            self._shapes.addCollisionPair(pin.CollisionPair(*pair))
        self._results = self._shapes.createData()
        for request, margin in zip(self._results.collisionRequests, margins.values(), strict=True):
            request.security_margin = margin
        self._filter.use_pairs(margins)

    def _not_permanent(self, arm: ArmModel, clearance: float) -> dict[tuple[int, int], float]:
        """Return the pairs that are not in contact at nearly every random configuration."""
        random = np.random.default_rng(0)
        lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
        q = random.uniform(np.minimum(lower, upper), np.maximum(upper, lower), (TRIALS, arm.nv))
        counts = np.zeros(self.pairs)
        for _, hit in self._collisions(q, every=True):
            counts[hit] += 1
        return {
            (pair.first, pair.second): clearance
            for pair, count in zip(self._shapes.collisionPairs, counts, strict=True)
            if count < PERMANENT * TRIALS
        }

    def _apart_at(self, start: Vector, clearance: float) -> dict[tuple[int, int], float]:
        """Return the pairs that are not in contact at the start, with their clearance."""
        pin.computeDistances(self._model, self._data, self._shapes, self._results, start)
        margins, touching = {}, []
        for pair, result in zip(
            self._shapes.collisionPairs, self._results.distanceResults, strict=True
        ):
            if result.min_distance > CONTACT:
                margins[pair.first, pair.second] = min(clearance, NEARER * result.min_distance)
            else:
                touching.append(f"'{self._link(pair.first)}' and '{self._link(pair.second)}'")
        if touching:
            warnings.warn(
                "self-collision: links in contact at the start configuration ="
                f" {', '.join(dict.fromkeys(touching))}; these pairs are not checked",
                RuntimeWarning,
                stacklevel=5,
            )
        return margins


def _with_mesh_files(arm: ArmModel) -> tuple[str, tuple[str, ...]]:
    """Return the URDF with the paths of its collision meshes, and the meshes not found."""
    robot, missing = ElementTree.fromstring(arm.urdf), []
    folder = arm.source.parent if arm.source else None
    for link in robot.findall("link"):
        for shape in link.findall("collision"):
            mesh = shape.find("geometry/mesh")
            if mesh is None:
                continue
            uri = mesh.get("filename", "")
            file = find_mesh(uri, folder)
            if file is None:
                missing.append(uri)
                link.remove(shape)
            else:
                mesh.set("filename", str(file.resolve()))
    return ElementTree.tostring(robot, encoding="unicode"), tuple(dict.fromkeys(missing))


def _distant_pairs(model: pin.Model, shapes: pin.GeometryModel) -> list[tuple[int, int]]:
    """Return the pairs of shapes of two bodies that no joint connects directly."""
    bodies = [shape.parentJoint for shape in shapes.geometryObjects]
    return [
        (i, j)
        for i in range(len(bodies))
        for j in range(i + 1, len(bodies))
        if bodies[i] != bodies[j]
        and model.parents[bodies[i]] != bodies[j]
        and model.parents[bodies[j]] != bodies[i]
    ]


def _reach(arm: ArmModel, shapes: pin.GeometryModel) -> Vector:
    """Return an upper bound (nv,) of the distances moved per unit of each joint's motion."""
    model = arm.model
    reach = np.zeros(model.njoints)
    for shape in shapes.geometryObjects:
        shape.geometry.computeLocalAABB()
        size = np.linalg.norm(shape.geometry.aabb_center) + shape.geometry.aabb_radius
        own = np.linalg.norm(shape.placement.translation) + size
        reach[shape.parentJoint] = max(reach[shape.parentJoint], own)
    for body in range(model.njoints - 1, 0, -1):
        joint, parent = arm.joints[body - 1], model.parents[body]
        prismatic = joint.kind == "prismatic"
        travel = max(abs(joint.lower), abs(joint.upper)) if prismatic else 0.0
        offset = float(np.linalg.norm(model.jointPlacements[body].translation)) + travel
        reach[parent] = max(reach[parent], offset + reach[body])
        if prismatic:
            reach[body] = 1.0
    found: Vector = reach[1:]
    return found
