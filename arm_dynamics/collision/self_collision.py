"""Collisions of an arm with itself and with the fixed objects of a scene.

The shapes of the links are the collision geometry of the URDF. Pairs of links that one joint
connects are omitted, those that the SRDF disables, and those in contact at nearly every random
configuration. A link that does not move relative to the base forms no pair with an object. Pairs
in contact at the start are omitted, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.collision_filter import CollisionFilter, convex_parts
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.scene_shapes import object_shape
from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.mesh_files import find_mesh, scale_to_meters
from arm_dynamics.model.srdf import disabled_pairs

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


class PairChecks:
    """Checks of pairs of shapes that the links of an arm carry.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    shapes : pinocchio.GeometryModel
        Shapes; its pairs are replaced by those of ``use_pairs``.

    """

    def __init__(self, arm: ArmModel, shapes: pin.GeometryModel) -> None:
        self._model, self._data, self._shapes = arm.model, arm.model.createData(), shapes
        self._filter = CollisionFilter(arm, shapes)
        self.use_pairs({})

    @property
    def pairs(self) -> int:
        """Number of checked pairs of shapes."""
        return len(self._shapes.collisionPairs)

    @property
    def shapes(self) -> pin.GeometryModel:
        """Shapes and checked pairs."""
        return self._shapes

    @property
    def margins(self) -> Vector:
        """Clearance of each pair (pairs,) [m]."""
        return self._margins

    def use_pairs(self, margins: dict[tuple[int, int], float]) -> None:
        """Check these pairs of shapes, each with its clearance [m]."""
        self._shapes.removeAllCollisionPairs()
        for pair in margins:
            self._shapes.addCollisionPair(pin.CollisionPair(*pair))
        self._results = self._shapes.createData()
        self._margins = np.array(list(margins.values()), float)
        self._filter.use_pairs(margins)

    def collisions(self, q: Matrix, every: bool = False) -> Iterator[tuple[int, int, float]]:
        """Return indices of configurations, of their first or all colliding pairs, and depths."""
        hit = -1
        for sample, k in self.near(q):
            if (sample != hit or every) and (depth := self.depth(k)) > 0:
                hit = sample
                yield sample, k, depth

    def near(self, q: Matrix, more: Matrix | None = None) -> Iterator[tuple[int, int]]:
        """Return indices of configurations and pairs that may collide, with the shapes placed.

        A pair may collide if it is nearer than its clearance plus ``more`` (n, pairs) [m].
        """
        for begin in range(0, len(q), BATCH):
            part, placed = slice(begin, begin + BATCH), -1
            for sample, k in self._filter.near(q[part], None if more is None else more[part]):
                if sample != placed:
                    pin.updateGeometryPlacements(
                        self._model, self._data, self._shapes, self._results, q[begin + sample]
                    )
                    placed = sample
                yield begin + sample, k

    def depth(self, k: int) -> float:
        """Return by how much [m] pair ``k`` of the placed shapes is nearer than its clearance.

        Meshes have a distance in less time than a check of their collision with a margin.
        """
        distance = pin.computeDistance(self._shapes, self._results, k).min_distance
        return float(self._margins[k] - distance)


class SelfCollision(PairChecks):
    """Check of the distances between the links of an arm, and to the fixed objects of a scene.

    Parameters
    ----------
    arm : ArmModel
        Arm with collision geometry in its URDF; without it the visual geometry is used.
    clearance : float
        Distance [m] below which two links, or a link and an object, collide. Shapes that are nearer
        at the start keep half of their distance there; shapes in contact there are omitted, and a
        RuntimeWarning names them.
    start : (nv,) array
        Configuration [rad or m] that does not collide.
    scene : Scene
        Objects around the arm.
    convex : bool
        Cover meshes by the convex hulls of their parts: faster, and never at a larger distance.
        Links in contact at the start are omitted with all their shapes.

    Attributes
    ----------
    arm : ArmModel
        The arm.
    missing : tuple of str
        Meshes that were not found; a RuntimeWarning names them.
    wholes, whole_of
        Hulls of whole meshes, and the whole that each shape belongs to, if ``convex``.
    reach : (nv,) array
        Largest change of a distance [m] between two links per unit of each joint's motion: at most
        Σ_i reach_i |Δq_i| between two configurations.

    References
    ----------
    F. Schwarzer, M. Saha, J.-C. Latombe, Adaptive dynamic collision checking for single and
    multiple articulated robots in complex environments, IEEE T-RO 21 (2005), section III.

    """

    def __init__(
        self,
        arm: ArmModel,
        clearance: float,
        start: Vector,
        *,
        scene: Scene = EMPTY_SCENE,
        convex: bool = False,
    ) -> None:
        links = _links(check_arm(arm), clearance, convex)
        shapes, self.wholes = links.shapes.copy(), links.wholes.copy()
        self.whole_of = links.whole_of
        self._names, self._convex = list(links.names), convex
        for one in scene:
            if one.is_fixed:
                shape = object_shape(one)
                shapes.addGeometryObject(shape)
                self.whole_of = np.append(self.whole_of, self.wholes.addGeometryObject(shape))
                self._names.append(one.name)
        super().__init__(arm, shapes)
        self.arm, self.missing = arm, links.missing
        moving = [i for i in range(len(links.names)) if shapes.geometryObjects[i].parentJoint > 0]
        objects = range(len(links.names), len(self._names))
        self._first_object = objects.start
        self.use_pairs(dict.fromkeys((*links.pairs, *product(moving, objects)), clearance))
        self.use_pairs(self._separate_at(np.array(start), clearance))
        self._reaches = _reaches(arm, self._shapes)

    @property
    def reaches(self) -> Matrix:
        """Bounds (pairs, nv) of the change of each pair's distance per unit of a joint's motion."""
        return self._reaches

    def ends(self, k: int) -> tuple[str, str]:
        """Return the names of the links, or of the link and the object, of pair ``k``."""
        pair = self._shapes.collisionPairs[k]
        return self._names[pair.first], self._names[pair.second]

    def has_object(self, k: int) -> bool:
        """Return whether pair ``k`` is that of a link and an object."""
        return bool(self._shapes.collisionPairs[k].second >= self._first_object)

    def find(self, q: Vector) -> tuple[str, str] | None:
        """Return the ends of a pair nearer than its clearance at ``q`` (nv,), or None."""
        for _, k, _ in self.collisions(q[None]):
            return self.ends(k)
        return None

    def depths(self, q: Matrix) -> Vector:
        """Return by how much [m] a pair is nearer than its clearance, (n,) for ``q`` (n, nv).

        It is the first colliding pair of each configuration; 0 without one.
        """
        depths = np.zeros(len(q))
        for sample, _, depth in self.collisions(q):
            depths[sample] = depth
        return depths

    def any_of(self, q: Matrix) -> bool:
        """Return whether the arm collides at one of the configurations ``q`` (n, nv)."""
        return any(True for _ in self.collisions(q))

    def free_around(self, q: Matrix, moved: Matrix) -> BoolArray | None:
        """Return around which configurations the arm certainly does not collide.

        Parameters
        ----------
        q : (n, nv) array
            Configurations [rad or m].
        moved : (n, nv) array
            Largest distance of each joint from them [rad or m].

        Returns
        -------
        (n,) array or None
            True where all pairs keep half of their clearance within ``moved``; False where smaller
            distances have to be examined. None if the arm collides at one of the configurations.

        """
        changes = moved @ self._reaches.T
        more = np.maximum(changes - self._margins / 2, 0.0)
        is_free = np.ones(len(q), bool)
        for sample, k in self.near(q, more):
            depth = self.depth(k)
            if depth > 0:
                return None
            if more[sample, k] > -depth:
                is_free[sample] = False
        return is_free

    def _separate_at(self, start: Vector, clearance: float) -> dict[tuple[int, int], float]:
        """Return the pairs that are not in contact at the start, with their clearance."""
        pin.computeDistances(self._model, self._data, self._shapes, self._results, start)
        distances = np.array([result.min_distance for result in self._results.distanceResults])
        ends = list[tuple[str, str]]()
        for k in range(self.pairs):
            first, second = self.ends(k)
            ends.append((f"'{first}'", f"{'object ' if self.has_object(k) else ''}'{second}'"))
        omitted = _with_links(distances <= CONTACT, ends) if self._convex else distances <= CONTACT
        margins, touching = {}, dict[str, None]()
        for k, pair in enumerate(self._shapes.collisionPairs):
            if omitted[k]:
                touching[" and ".join(ends[k])] = None
            else:
                margins[pair.first, pair.second] = min(clearance, NEARER * float(distances[k]))
        if touching:
            warnings.warn(
                f"collisions: links in contact at the start configuration = {', '.join(touching)};"
                " these pairs are not checked",
                RuntimeWarning,
                stacklevel=5,
            )
        return margins


class _Links(NamedTuple):
    """Shapes of the links of an arm, and the pairs that may come into contact."""

    shapes: pin.GeometryModel
    wholes: pin.GeometryModel
    whole_of: IntArray
    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    missing: tuple[str, ...]


@lru_cache(maxsize=8)  # a scene that changes while an arm runs
def _links(arm: ArmModel, clearance: float, convex: bool) -> _Links:
    shapes, missing = collision_shapes(arm)
    wholes, whole_of = shapes, np.arange(shapes.ngeoms)
    if convex:
        shapes, wholes, whole_of = convex_parts(shapes)
    names = tuple(str(arm.model.frames[x.parentFrame].name) for x in shapes.geometryObjects)
    bodies, parents = [x.parentJoint for x in shapes.geometryObjects], arm.model.parents
    disabled = disabled_pairs(arm)
    follow = {mimic.name for mimic in arm.mimic_joints if mimic.joint in arm.gripper_joints}
    fingers = {arm.model.getJointId(name) for name in follow.union(arm.gripper_joints)}
    pairs = [
        (i, j)
        for i, j in combinations(range(len(bodies)), 2)
        if bodies[i] != bodies[j] and not {bodies[i], bodies[j]} <= fingers  # which close
        and bodies[j] != parents[bodies[i]]
        and bodies[i] != parents[bodies[j]] and frozenset((names[i], names[j])) not in disabled
    ]  # fmt: skip
    checks = PairChecks(arm, shapes)
    checks.use_pairs(dict.fromkeys(pairs, clearance))
    random = np.random.default_rng(0)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    q = random.uniform(np.minimum(lower, upper), np.maximum(upper, lower), (TRIALS, arm.nv))
    counts = np.zeros(len(pairs))
    for _, k, _ in checks.collisions(q, every=True):
        counts[k] += 1
    permanent = counts >= PERMANENT * TRIALS
    if convex:
        permanent = _with_links(permanent, [(names[i], names[j]) for i, j in pairs])
    kept = tuple(pair for pair, omitted in zip(pairs, permanent, strict=True) if not omitted)
    return _Links(shapes, wholes, whole_of, names, kept, missing)


def _with_links(touching: BoolArray, ends: list[tuple[str, str]]) -> BoolArray:
    """Return the pairs (pairs,) of all links that have one in contact.

    A mesh has many parts, and those next to a contact cannot keep a clearance.
    """
    links = {frozenset(pair) for pair, touch in zip(ends, touching, strict=True) if touch}
    return np.array([frozenset(pair) in links for pair in ends], bool)


def collision_shapes(arm: ArmModel) -> tuple[pin.GeometryModel, tuple[str, ...]]:
    """Return the shapes of an arm, without pairs, and the meshes that were not found.

    They are its collision geometry; an arm without any has its visual geometry, and a
    RuntimeWarning reports that. A RuntimeWarning names each missing mesh.
    """
    text, missing, from_visual = _with_mesh_files(arm)
    if from_visual:
        warnings.warn(
            f"arm '{arm.name}': no collision geometry; self-collision is checked with the visual"
            " geometry",
            RuntimeWarning,
            stacklevel=5,
        )
    for uri in missing:
        warnings.warn(
            f"arm '{arm.name}': collision mesh = '{uri}', which was not found; self-collision"
            " is checked without it",
            RuntimeWarning,
            stacklevel=5,
        )
    return pin.buildGeomFromUrdfString(arm.model, text, pin.COLLISION), missing


def _with_mesh_files(arm: ArmModel) -> tuple[str, tuple[str, ...], bool]:
    """Return the URDF with the meshes' paths and scales in meters, and the meshes not found.

    The last value is whether the visual geometry replaces the missing collision geometry.
    """
    robot, missing = ElementTree.fromstring(arm.urdf), []
    from_visual = robot.find("link/collision") is None and robot.find("link/visual") is not None
    for shape in robot.findall("link/visual") if from_visual else []:
        shape.tag = "collision"
    folder = arm.source.parent if arm.source else None
    for limit in robot.iter("limit"):  # Pinocchio's parser requires both, also of a kinematic arm
        limit.attrib = {"effort": "0", "velocity": "0"} | limit.attrib
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
                mesh.set("scale", scale_to_meters(mesh.get("scale"), file) or "1 1 1")
    text = ElementTree.tostring(robot, encoding="unicode")
    return text, tuple(dict.fromkeys(missing)), from_visual


def _reaches(arm: ArmModel, shapes: pin.GeometryModel) -> FloatArray:
    """Return upper bounds (pairs, nv) of the change of each pair's distance per joint's motion.

    A joint that moves both shapes does not change their distance. Any other one moves the points of
    a shape by at most their largest distance from its axis.
    """
    model = arm.tree
    limits = np.abs((model.lowerPositionLimit, model.upperPositionLimit)).max(axis=0)
    travels = {x.name: max(abs(x.lower), abs(x.upper)) for x in arm.joints if x.unit == "m"}
    for mimic in arm.mimic_joints:
        if mimic.kind == "prismatic":
            travels[mimic.name] = limits[model.getJointId(mimic.name) - 1]
    distances = np.zeros((len(shapes.geometryObjects), model.njoints))
    for own, shape in zip(distances, shapes.geometryObjects, strict=True):
        if shape.parentJoint == 0:  # a half space has no size
            continue
        shape.geometry.computeLocalAABB()
        size = np.linalg.norm(shape.geometry.aabb_center) + shape.geometry.aabb_radius
        longest = float(np.linalg.norm(shape.placement.translation) + size)
        body = shape.parentJoint
        while body > 0:
            travel = travels.get(model.names[body], 0.0)
            own[body] = 1.0 if model.names[body] in travels else longest
            longest += float(np.linalg.norm(model.jointPlacements[body].translation)) + travel
            body = model.parents[body]
    first, second = (
        distances[[getattr(pair, end) for pair in shapes.collisionPairs], 1:]
        for end in ("first", "second")
    )
    reaches: FloatArray = np.where((first > 0) & (second > 0), 0.0, first + second)
    return reaches @ np.abs(arm.mimic_matrix[0]) if arm.mimic_joints else reaches
