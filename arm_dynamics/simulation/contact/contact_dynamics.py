"""Unilateral contact with Coulomb friction of free bodies, fixed objects and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from arm_dynamics.collision.collision_filter import convex_parts
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import Body, bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_step import (
    Arm,
    Found,
    Links,
    contact_steps,
    contacts_of_links,
)
from arm_dynamics.simulation.contact.convex_shapes import (
    BOX,
    ConvexShape,
    Solid,
    polytope_of,
    shape_table,
)
from arm_dynamics.simulation.contact.free_bodies import BodyStates, Frames, FreeBodies

GRAVITY = (0.0, 0.0, -9.81)
START_OVERLAP = 1e-4
"""Largest overlap [m] of two objects at the start."""
LINK_FRICTION = 0.8
"""Coulomb coefficient of the links of an arm."""
RESIDUAL = 1e-6
"""Residual velocity [m/s] from which on a solution counts as not converged."""


@dataclass(frozen=True, slots=True, eq=False)
class Contacts:
    """Contacts of one step, read-only.

    Attributes
    ----------
    first, second : tuple of str
        Names of the links or objects of each contact.
    point, normal : (n, 3) array
        Points [m] and normals from the first to the second, in base axes.
    gap : (n,) array
        Distances [m], negative where the shapes overlap.
    force : (n, 3) array
        Mean force [N] of the step on the second, in base axes.
    residual : float
        Residual velocity [m/s] of the solution; of a call with several steps the largest one.

    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    point: Matrix
    normal: Matrix
    gap: Vector
    force: Matrix
    residual: float

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.gap)

    @property
    def converged(self) -> bool:
        """Whether the residual is below RESIDUAL."""
        return self.residual <= RESIDUAL

    def force_on(self, name: str) -> Vector:
        """Return the sum of the contact forces (3,) [N] on a link or object."""
        total = np.zeros(3)
        for first, second, force in zip(self.first, self.second, self.force, strict=True):
            total += force if second == name else -force if first == name else 0.0
        return total


_NONE, _NO_POINTS = as_readonly(np.zeros(0)), as_readonly(np.zeros((0, 3)))
NO_CONTACTS = Contacts((), (), _NO_POINTS, _NO_POINTS, _NONE, _NO_POINTS, 0.0)


NO_JOINTS = np.zeros(0)
NOTHING: Found = (np.zeros((0, 7)), np.zeros((0, 2), np.int64))


class ContactStep(NamedTuple):
    """Result of ``contact_steps``: arrays of the bodies, of the arm and of the contacts."""

    states: Frames
    velocity: Vector
    found: Found
    force: Matrix
    residual: float


class ContactDynamics:
    """Motion of the free objects of a scene and of an arm in contact.

    M (u⁺ - u) = dt f + Jᵀ λ,  0 <= λ_n ⟂ v_n⁺ + φ/dt >= 0,  |λ_t| <= μ λ_n,
    v_t⁺ = -γ λ_t: the Signorini condition and Coulomb's law with maximum dissipation at the end of
    a step, in one problem with the dry friction of the joints. A step closes a gap φ > 0 exactly,
    to first order. With a restitution e an impact has v_n⁺ = -e v_n. With a compliance c the gap
    after the step is φ + dt v_n⁺ = -c λ_n/dt at least. Coefficients of two bodies combine to the
    geometric mean of their friction, the larger restitution and the sum of the compliances.

    Parameters
    ----------
    scene : Scene
        Fixed and free objects.
    arm : ArmModel, optional
        Arm with collision geometry; its links touch the objects, not each other.
    gravity : (3,) array, optional
        Gravity [m/s²]; that of the arm by default.
    link_friction : float
        Coulomb coefficient of the links.

    Raises
    ------
    InvalidValue
        For objects that overlap at the start.

    References
    ----------
    J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics (1988), section 11;
    M. Anitescu, F. Potra, Nonlinear Dynamics 14 (1997), section 3; Q. Le Lidec et al., arXiv
    2304.06372 (2023), section III.

    """

    def __init__(
        self,
        scene: Scene,
        arm: ArmModel | None = None,
        *,
        gravity: Vector | None = None,
        link_friction: float = LINK_FRICTION,
    ) -> None:
        self.arm, self.scene, self.link_friction = arm, scene, link_friction
        default = GRAVITY if arm is None else arm.gravity
        self.gravity = as_readonly(default if gravity is None else gravity)
        self.bodies = FreeBodies([x for x in scene if not x.is_fixed])
        self.initial = BodyStates.at_rest(self.bodies.objects)
        table = () if arm is None else bodies(arm)
        solids = [_object_solid(x, 0, np.zeros(3)) for x in scene if x.is_fixed]
        for k, one in enumerate(self.bodies.objects, len(table) + 1):
            solids.append(_object_solid(one, k, one.inertial.center))
        self._object_count = n = len(solids)
        solids += [] if arm is None else _link_solids(arm, table, link_friction)
        self._names, frames = [x.name for x in solids], np.array([x.frame for x in solids], int)
        # At least one solid of a pair moves, and at most one is a link.
        pairs = np.stack(np.triu_indices(len(solids), 1), axis=1)
        self._pairs = pairs[(pairs[:, 0] < n) & (frames[pairs] > 0).any(axis=1)]
        moves_with_arm = (frames > 0) & (frames <= len(table))
        self._object_pairs = self._pairs[~moves_with_arm[self._pairs].any(axis=1)]
        self._scene = shape_table(solids), (*self.bodies.table, self.gravity), _link_table(table)
        rest = np.zeros(len(table))
        self._no_arm = rest, rest, np.diag(rest), rest, rest, np.zeros((4, len(table)))
        self._require_separate()
        self.object_steps(self.initial.arrays, 1.0, 0)  # compile before time runs

    def step(self, states: BodyStates, dt: float, steps: int = 1) -> tuple[BodyStates, Contacts]:
        """Take steps of semi-implicit Euler without the arm; bodies that rest stay there.

        Parameters
        ----------
        states : BodyStates
            States of the free bodies.
        dt : float
            Time step [s].
        steps : int
            Number of steps.

        Returns
        -------
        states, contacts
            States of the bodies after the steps; contacts of the last one, with the largest
            residual of all.

        """
        step = self.object_steps(states.arrays, dt, steps)
        return BodyStates.of_step(step.states), self.contacts(step)

    def object_steps(self, states: Frames, dt: float, steps: int) -> ContactStep:
        """Take ``step`` with arrays of states."""
        arguments = self._object_pairs, NO_JOINTS, states, self._no_arm, NOTHING, dt, steps
        return ContactStep(*contact_steps(self._scene, *arguments))

    def link_contacts(
        self, states: Frames, q: Vector, v: Vector, dt: float, horizon: float
    ) -> tuple[int, Found]:
        """Return the contacts within dt, and whether those of links are CONTACT, NEAR or FAR."""
        if self.arm is not None and self.arm.mimic_joints:
            q, v = self.arm.tree_positions(q), self.arm.tree_velocities(v)
        arguments = self._pairs, q, v, states, dt, horizon
        distance, rows, owners = contacts_of_links(self._scene, *arguments)
        return distance, (rows, owners)

    def arm_step(self, states: Frames, q: Vector, arm: Arm, found: Found, dt: float) -> ContactStep:
        """Take one step with an arm and the contacts of ``link_contacts``."""
        if self.arm is None or not self.arm.mimic_joints:
            return ContactStep(
                *contact_steps(self._scene, self._pairs, q, states, arm, found, dt, 1)
            )
        driven, factors = self.arm.tree_indices, self.arm.mimic_matrix[0]
        start, smooth, response, *bounds, limits = arm  # Δv = W Jᵀ λ: Δv_t = (G W Gᵀ) J_tᵀ λ
        (least, most), stops = np.zeros((2, len(factors))), np.zeros((4, len(factors)))
        (least[driven], most[driven]), stops[:, driven] = bounds, limits
        arm = factors @ start, factors @ smooth, factors @ response @ factors.T, least, most, stops
        q = self.arm.tree_positions(q)
        step = ContactStep(*contact_steps(self._scene, self._pairs, q, states, arm, found, dt, 1))
        return step._replace(velocity=step.velocity[driven])

    def contacts(self, step: ContactStep) -> Contacts:
        """Return the contacts of a step with their names."""
        found, owners = step.found
        names = [self._names[k] for k in owners.ravel().tolist()]
        for array in (found, step.force):
            array.setflags(write=False)
        return Contacts(
            tuple(names[::2]), tuple(names[1::2]), found[:, :3], found[:, 3:6], found[:, 6],
            step.force, step.residual,
        )  # fmt: skip

    def moved_scene(self, states: BodyStates) -> Scene:
        """Return the scene with the free objects at the poses of ``states``."""
        poses = zip(states.position, states.rotation, self.bodies.center, strict=True)
        moved = {
            one.name: replace(
                one, position=as_readonly(position - turn @ center), rotation=as_readonly(turn)
            )
            for one, (position, turn, center) in zip(self.bodies.objects, poses, strict=True)
        }
        return Scene(moved.get(one.name, one) for one in self.scene)

    def continued(self, before: ContactDynamics, states: BodyStates) -> BodyStates:
        """Return the initial states, with the velocities of free objects that remain in place.

        ``states`` are those of ``before``; an object remains if its pose is that of its state.
        """
        velocity, placed = self.initial.velocity.copy(), before.moved_scene(states)
        known = {one.name: k for k, one in enumerate(before.bodies.objects)}
        for k, one in enumerate(self.bodies.objects):
            if one.name in known and placed[one.name].same_pose(one):
                velocity[k] = states.velocity[known[one.name]]
        return BodyStates(self.initial.position, self.initial.rotation, as_readonly(velocity))

    def _require_separate(self) -> None:
        """Raise InvalidValue for two objects that overlap at the start."""
        arguments = self._object_pairs, NO_JOINTS, NO_JOINTS, self.initial.arrays, 0.0, 0.0
        _, found, owners = contacts_of_links(self._scene, *arguments)
        for gap, (first, second) in zip(found[:, 6], owners.tolist(), strict=True):
            if gap < -START_OVERLAP and second < self._object_count:
                raise InvalidValue(
                    f"scene: objects '{self._names[first]}' and '{self._names[second]}' overlap by"
                    f" {-1e3 * gap:.3g} mm at the start; expected at most {1e3 * START_OVERLAP:g}"
                    " mm; move one"
                )


def _link_table(table: Sequence[Body]) -> Links:
    """Return the joints of an arm as arrays."""
    n = len(table)
    return (
        np.array([x.parent for x in table], np.int64),
        np.array([x.prismatic for x in table], bool),
        np.reshape([x.rotation for x in table], (n, 3, 3)),
        np.reshape([x.translation for x in table], (n, 3)),
    )


def _object_solid(one: SceneObject, frame: int, center: Vector) -> Solid:
    """Return the solid of an object; a free one, frame > 0, in axes at its center of mass."""
    kind, size = one.shape.kind, one.shape.size
    points = None
    if kind == "box":
        kind, points, size = "polytope", BOX * size, ()
    elif one.vertices is not None:
        kind, points = "polytope", one.vertices
    if frame > 0:
        position, rotation = -center, np.eye(3)
    else:
        position, rotation = one.position, one.rotation
    shape = ConvexShape(kind, size, np.array(position), np.array(rotation), points)
    return Solid(one.name, shape, frame, one.friction, one.restitution, one.compliance)


def _link_solids(arm: ArmModel, table: Sequence[Body], friction: float) -> list[Solid]:
    """Return the convex shapes of the links; meshes as the hulls of their parts."""
    shapes, _ = collision_shapes(arm)
    parts, _, _ = convex_parts(shapes)
    solids = []
    for one in parts.geometryObjects:
        frame = int(one.parentJoint)
        turn = table[frame - 1].turn.T if frame > 0 else np.eye(3)
        position, rotation = turn @ one.placement.translation, turn @ one.placement.rotation
        geometry, name = one.geometry, str(arm.model.frames[one.parentFrame].name)
        points, kind = None, "polytope"
        size: tuple[float, ...] = ()
        if hasattr(geometry, "halfSide"):
            points = BOX * 2 * np.ravel(geometry.halfSide)
        elif hasattr(geometry, "halfLength"):
            kind, size = "cylinder", (float(geometry.radius), 2 * float(geometry.halfLength))
        elif hasattr(geometry, "radius"):
            kind, size = "sphere", (float(geometry.radius),)
        else:
            points = np.array([geometry.point(k) for k in range(geometry.num_points)])
            points = polytope_of(points)[0]
            middle = (points.min(axis=0) + points.max(axis=0)) / 2
            points, position = points - middle, position + rotation @ middle
        shape = ConvexShape(kind, size, position, rotation, points)
        solids.append(Solid(name, shape, frame, friction, 0.0, 0.0))
    return solids
