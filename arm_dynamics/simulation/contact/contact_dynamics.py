"""Unilateral contact with Coulomb friction of free bodies, fixed objects and links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.collision.collision_filter import convex_parts
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import (
    BOOLEAN,
    MATRIX,
    MATRIX_OUT,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    Kind,
    compiled_for,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_solver import solve_contact_problem
from arm_dynamics.simulation.contact.convex_shapes import (
    BOX,
    ContactPoints,
    ConvexShape,
    Placed,
    polytope_of,
)
from arm_dynamics.simulation.contact.free_bodies import BodyStates, FreeBodies

GRAVITY = (0.0, 0.0, -9.81)
MARGIN = 1e-3
"""Gap [m] below which two shapes can touch within a step, in addition to their motion."""
OVERLAP = 1e-5
"""Overlap [m] of two shapes that remains: rounding of the first-order motion of a step."""
CORRECTION = 0.2
"""Part of a larger overlap that a step removes."""
CORRECTION_SPEED = 0.1
"""Largest speed [m/s] at which an overlap is removed."""
IMPACT_SPEED = 0.02
"""Speed [m/s] below which no rebound occurs."""
START_OVERLAP = 1e-4
"""Largest overlap [m] of two objects at the start."""
LINK_FRICTION = 0.8
"""Coulomb coefficient of the links of an arm."""
REST = 1e-9
"""Speed [m/s and rad/s] before and after a step below which bodies rest."""
RESIDUAL = 1e-6
"""Residual velocity [m/s] from which on a solution counts as not converged."""


CUBE, PAIRS = Kind("float64", 3), Kind("int64", 2)


@compiled_for(
    (MATRIX, CUBE, VECTOR, VECTOR), PAIRS, NUMBER, BOOLEAN, Kind("int64", 1),
    CUBE._replace(written=True), MATRIX_OUT, VECTOR_OUT,
)  # fmt: skip
def near_pairs(
    shapes: tuple[Matrix, FloatArray, Vector, Vector],
    pairs: IntArray,
    dt: float,
    with_links: bool,
    joints: IntArray,
    rotations: FloatArray,
    positions: Matrix,
    margins: Vector,
) -> IntArray:
    """Return the indices of pairs of shapes whose spheres can touch within dt [s].

    Parameters
    ----------
    shapes : tuple
        Offsets (n, 3) [m] and rotations (n, 3, 3) of the shapes in their bodies, radii (n,) [m] of
        their spheres and largest speeds (n,) [m/s].
    pairs : (m, 2) array
        Indices of shapes.
    dt : float
        Time step [s].
    with_links : bool
        Whether the links of the arm are placed.
    joints : (n,) array
        Joint of each shape, -1 for an object.
    rotations, positions : (n, 3, 3), (n, 3) array
        Poses of the bodies, replaced by those of the shapes.
    margins : (m,) array
        Gaps [m] below which contacts are found, written.

    """
    offsets, turns, radii, speeds = shapes
    turn = np.empty((3, 3))
    for n in range(radii.size):
        for i in range(3):
            for j in range(3):
                positions[n, i] += rotations[n, i, j] * offsets[n, j]
                turn[i, j] = 0.0
                for k in range(3):
                    turn[i, j] += rotations[n, i, k] * turns[n, k, j]
        for i in range(3):
            for j in range(3):
                rotations[n, i, j] = turn[i, j]
    near, count = np.empty(pairs.shape[0], np.int64), 0
    for m in range(pairs.shape[0]):
        a, b = pairs[m, 0], pairs[m, 1]
        if not with_links and (joints[a] >= 0 or joints[b] >= 0):
            continue
        margins[m] = MARGIN + 2.0 * dt * (speeds[a] + speeds[b])
        distance, height = 0.0, 0.0
        for k in range(3):
            offset = positions[b, k] - positions[a, k]
            distance += offset * offset
            height += rotations[a, k, 2] * offset
        gap = height if np.isinf(radii[a]) else np.sqrt(distance) - radii[a]
        if gap - radii[b] < margins[m]:
            near[count] = m
            count += 1
    return near[:count]


@compiled_for(MATRIX)
def contact_axes(found: Matrix) -> FloatArray:
    """Return the normal and two tangents (n, 3, 3) of contacts (n, 7)."""
    axes = np.zeros((found.shape[0], 3, 3))
    for n in range(found.shape[0]):
        least = 0
        for k in range(3):
            axes[n, 0, k] = found[n, 3 + k]
            if abs(found[n, 3 + k]) < abs(found[n, 3 + least]):
                least = k
        i, j = (least + 1) % 3, (least + 2) % 3
        across = np.sqrt(axes[n, 0, i] ** 2 + axes[n, 0, j] ** 2)
        axes[n, 1, i], axes[n, 1, j] = axes[n, 0, j] / across, -axes[n, 0, i] / across
        for k in range(3):
            a, b = (k + 1) % 3, (k + 2) % 3
            axes[n, 2, k] = axes[n, 0, a] * axes[n, 1, b] - axes[n, 0, b] * axes[n, 1, a]
    return axes


@compiled_for(CUBE, MATRIX, PAIRS, PAIRS, (MATRIX, MATRIX, MATRIX), MATRIX_OUT)
def add_velocity_rows(
    axes: FloatArray,
    found: Matrix,
    bodies: IntArray,
    joints: IntArray,
    motion: tuple[Matrix, Matrix, Matrix],
    rows: Matrix,
) -> None:
    """Add the velocity of the second relative to the first at n contacts to rows (3 n, m).

    Parameters
    ----------
    axes : (n, 3, 3) array
        Normal and tangents of each contact.
    found : (n, 7) array
        Contacts.
    bodies, joints : (n, 2) array
        Index of the free body, or of the joint before a link, on both sides; -1 for none.
    motion : tuple
        Centers of mass (k, 3) [m] of the bodies, Jacobian (6, nv) of the last link at the origin of
        the base, and which joints move which link (joints, nv), 1 or 0.
    rows : (3 n, nv + 6 k) array
        Rows, changed in place.

    """
    centers, jacobian, moves = motion
    nv = jacobian.shape[1]
    for n in range(bodies.shape[0]):
        for side in range(2):
            sign, body, joint = 2.0 * side - 1.0, bodies[n, side], joints[n, side]
            x, y, z = found[n, 0], found[n, 1], found[n, 2]
            if body >= 0:
                x, y, z = x - centers[body, 0], y - centers[body, 1], z - centers[body, 2]
            for k in range(3):
                a, b, c = axes[n, k, 0], axes[n, k, 1], axes[n, k, 2]
                # Of a unit twist: the axis, and the moment of the axis about the origin.
                u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
                row = rows[3 * n + k]
                if body >= 0:
                    at = nv + 6 * body
                    row[at] += sign * a
                    row[at + 1] += sign * b
                    row[at + 2] += sign * c
                    row[at + 3] += sign * u
                    row[at + 4] += sign * v
                    row[at + 5] += sign * w
                elif joint > 0:
                    for j in range(nv):
                        if moves[joint, j] > 0.0:
                            total = a * jacobian[0, j] + b * jacobian[1, j] + c * jacobian[2, j]
                            total += u * jacobian[3, j] + v * jacobian[4, j] + w * jacobian[5, j]
                            row[j] += sign * total


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


class ArmStep(NamedTuple):
    """An arm in one step: its placement, its motion without contact and its bounded impulses."""

    data: Any
    """Pinocchio data with the placements and Jacobians of all joints at the start."""
    velocity: Vector
    """Velocity (nv,) without contact and dry friction."""
    response: Matrix
    """Change of the velocity per impulse (nv, nv)."""
    friction: tuple[Vector, Vector]
    """Largest impulses (nv,) of dry friction against forward and backward motion."""
    start: Vector
    """Velocity (nv,) at the start."""


class Solid(NamedTuple):
    """A convex shape of a body: of the arm (joint >= 0), free (index >= 0) or fixed."""

    name: str
    shape: ConvexShape
    joint: int
    body: int
    friction: float
    restitution: float


class ContactDynamics:
    """Motion of the free objects of a scene and of an arm in contact.

    M (u⁺ - u) = dt f + Jᵀ λ,  0 <= λ_n ⟂ v_n⁺ + φ/dt >= 0,  |λ_t| <= μ λ_n,
    v_t⁺ = -γ λ_t: the Signorini condition and Coulomb's law with maximum dissipation at the end of
    a step, in one problem with the dry friction of the joints. A step closes a gap φ > 0 exactly,
    to first order. With a restitution e an impact has v_n⁺ = -e v_n. Coefficients of two bodies
    combine to the geometric mean of their friction and the larger restitution.

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
        self._solids = [
            *(_object_solid(x, -1, np.zeros(3)) for x in scene if x.is_fixed),
            *(
                _object_solid(x, k, self.bodies.center[k])
                for k, x in enumerate(self.bodies.objects)
            ),
            *([] if arm is None else _link_solids(arm, link_friction)),
        ]
        self._pairs = np.array(
            [
                (i, j)
                for i, a in enumerate(self._solids)
                for j, b in enumerate(self._solids[i + 1 :], i + 1)
                if _can_touch(a, b)
            ],
            int,
        ).reshape(-1, 2)
        count = len(self._solids)
        self._fixed = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        self._moves = np.zeros((1, 0)) if arm is None else _moving_joints(arm)
        self._turns = np.array([s.shape.rotation for s in self._solids]).reshape(-1, 3, 3)
        self._joints = np.array([s.joint for s in self._solids], int)
        self._owners = np.array([s.body for s in self._solids], int)
        self._offsets = np.array([s.shape.position for s in self._solids]).reshape(-1, 3)
        self._radii = np.array([s.shape.radius for s in self._solids])
        self._reaches = self._radii + np.linalg.norm(self._offsets, axis=1)
        self._points = ContactPoints()
        self._require_separate()

    def step(
        self,
        states: BodyStates,
        dt: float,
        near: tuple[FloatArray, IntArray] | None = None,
        arm: ArmStep | None = None,
    ) -> tuple[BodyStates, Vector, Contacts]:
        """Take one step of semi-implicit Euler.

        Parameters
        ----------
        states : BodyStates
            States of the free bodies.
        dt : float
            Time step [s].
        near : tuple, optional
            Result of ``contact_rows`` at the start of the step.
        arm : ArmStep, optional
            The arm in this step, if it has contacts.

        Returns
        -------
        states, velocity, contacts
            States of the bodies, velocity (nv,) of the arm and contacts after the step.

        """
        nv = 0 if arm is None else arm.velocity.size
        smooth = self.bodies.smooth_velocity(states, self.gravity, dt)
        found, owners = self.contact_rows(states, dt) if near is None else near
        joints = np.zeros(0, int) if arm is None else np.flatnonzero(sum(arm.friction) > 0)
        free = smooth.ravel() if arm is None else np.concatenate([arm.velocity, smooth.ravel()])
        if not len(found) and not len(joints):
            return self.bodies.moved(states, smooth, dt), free[:nv], NO_CONTACTS
        response = np.zeros((free.size, free.size))
        response[nv:, nv:] = self.bodies.inverse_mass(states)
        start = states.velocity.ravel()
        lower = upper = np.zeros(0)
        if arm is not None:
            response[:nv, :nv] = arm.response
            start = np.concatenate([arm.start, start])
            lower, upper = -arm.friction[0][joints], arm.friction[1][joints]
        rows = np.zeros((len(joints) + 3 * len(found), free.size))
        rows[np.arange(len(joints)), joints] = 1.0
        axes = contact_axes(found)
        jacobian = np.zeros((6, 0)) if arm is None else arm.data.J.reshape(6, nv)
        add_velocity_rows(
            axes, found, self._owners[owners], self._joints[owners],
            (states.position, jacobian, self._moves), rows[len(joints) :],
        )  # fmt: skip
        normal = len(joints) + 3 * np.arange(len(found))
        required = np.zeros(len(rows))
        required[normal] = self._required_speeds(found, owners, rows[normal] @ start, dt)
        through = response @ rows.T
        impulse = np.zeros(len(rows))
        friction = np.array([self._friction(*pair) for pair in owners.tolist()])
        residual = solve_contact_problem(
            rows @ through, rows @ free - required, lower, upper, friction, impulse
        )
        after = free + through @ impulse
        held = (lower < impulse[: len(joints)]) & (impulse[: len(joints)] < upper)
        after[joints[held]] = 0.0
        force = np.einsum("nij,ni->nj", axes, impulse[len(joints) :].reshape(-1, 3)) / dt
        names = [self._solids[k].name for k in owners.ravel().tolist()]
        contacts = Contacts(
            tuple(names[::2]), tuple(names[1::2]), as_readonly(found[:, :3]),
            as_readonly(found[:, 3:6]), as_readonly(found[:, 6]), as_readonly(force),
            float(residual),
        )  # fmt: skip
        return self.bodies.moved(states, after[nv:].reshape(-1, 6), dt), after[:nv], contacts

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

    def steps(self, states: BodyStates, dt: float, steps: int) -> tuple[BodyStates, Contacts]:
        """Return bodies and contacts after steps without the arm; bodies that rest stay there."""
        contacts = NO_CONTACTS
        for _ in range(steps if len(states) else 0):
            speed = float(np.abs(states.velocity).max())
            states, _, contacts = self.step(states, dt)
            if max(speed, float(np.abs(states.velocity).max())) < REST:
                break
        return states, contacts

    def touches_links(self, owners: IntArray) -> bool:
        """Return whether one of the solids (n, 2) belongs to a link that moves."""
        return bool((self._joints[owners] > 0).any())

    def contact_rows(
        self, states: BodyStates, dt: float, data: Any = None
    ) -> tuple[FloatArray, IntArray]:
        """Return rows (n, 7) of ``ContactPoints`` and the indices (n, 2) of their solids.

        Spheres about the shapes exclude the pairs that cannot touch within dt [s].
        """
        near, margins, rotations, positions = self._near(states, dt, data)
        found, owning, placed = list[Matrix](), list[list[int]](), dict[int, Placed]()
        for k in near.tolist():
            pair = self._pairs[k].tolist()
            for i in pair:
                if i not in placed:
                    placed[i] = Placed(self._solids[i].shape, positions[i], rotations[i])
            rows = self._points.of(placed[pair[0]], placed[pair[1]], float(margins[k]))
            found.append(rows.copy())
            owning += [pair] * len(rows)
        together = np.vstack(found) if found else np.zeros((0, 7))
        return together, np.array(owning, int).reshape(-1, 2)

    def _near(
        self, states: BodyStates, dt: float, data: Any
    ) -> tuple[IntArray, Vector, FloatArray, Matrix]:
        """Return the pairs that can touch within dt [s], their margins and the poses of solids."""
        count = len(self._solids)
        rotations, positions, speeds = self._fixed[0].copy(), self._fixed[1].copy(), np.zeros(count)
        free = self._owners >= 0
        owners = self._owners[free]
        rotations[free] = states.rotation[owners]
        positions[free] = states.position[owners]
        sizes = np.sqrt((states.velocity.reshape(-1, 2, 3) ** 2).sum(axis=2))[owners]
        speeds[free] = sizes[:, 0] + sizes[:, 1] * self._reaches[free]
        if data is not None:
            links = self._joints >= 0
            joints = self._joints[links]
            rotations[links] = np.array([x.rotation for x in data.oMi])[joints]
            positions[links] = np.array([x.translation for x in data.oMi])[joints]
            motions = np.array([x.vector for x in data.v]).reshape(-1, 2, 3)
            sizes = np.sqrt((motions**2).sum(axis=2))[joints]
            speeds[links] = sizes[:, 0] + sizes[:, 1] * self._reaches[links]
        margins = np.empty(len(self._pairs))
        near = near_pairs(
            (self._offsets, self._turns, self._radii, speeds), self._pairs, dt, data is not None,
            self._joints, rotations, positions, margins,
        )  # fmt: skip
        return near, margins, rotations, positions

    def _required_speeds(
        self, found: Matrix, owners: IntArray, before: Vector, dt: float
    ) -> FloatArray:
        """Return the least normal velocity (n,) [m/s] of each contact after the step."""
        gap = found[:, 6]
        overlap = np.maximum(-gap - OVERLAP, 0.0)
        required = np.where(
            gap > 0, -gap / dt, np.minimum(CORRECTION / dt * overlap, CORRECTION_SPEED)
        )
        for n in np.flatnonzero((before < -IMPACT_SPEED) & (gap + dt * before <= 0)):
            a, b = (self._solids[k] for k in owners[n])
            restitution = max(a.restitution, b.restitution)
            if restitution > 0:
                required[n] = max(required[n], -restitution * before[n])
        return required

    def _friction(self, first: int, second: int) -> float:
        a, b = self._solids[first], self._solids[second]
        return float(np.sqrt(a.friction * b.friction))

    def _require_separate(self) -> None:
        """Raise InvalidValue for two objects that overlap at the start."""
        found, owners = self.contact_rows(self.initial, 0.0)
        for row, pair in zip(found, owners.tolist(), strict=True):
            a, b = (self._solids[k] for k in pair)
            if row[6] < -START_OVERLAP and a.joint < 0 and b.joint < 0:
                raise InvalidValue(
                    f"scene: objects '{a.name}' and '{b.name}' overlap by {-1e3 * row[6]:.3g} mm at"
                    f" the start; expected at most {1e3 * START_OVERLAP:g} mm; move one"
                )


def _moving_joints(arm: ArmModel) -> FloatArray:
    """Return which joints move which link (joints, nv), 1 or 0, by the index of its joint."""
    moves = np.zeros((arm.model.njoints, arm.nv))
    for joint in range(1, arm.model.njoints):
        moves[joint] = moves[arm.model.parents[joint]]
        moves[joint, joint - 1] = 1.0
    return moves


def _can_touch(a: Solid, b: Solid) -> bool:
    """Return whether a contact of two solids has an effect: one moves, and not both are links."""
    if a.joint >= 0 and b.joint >= 0:
        return False
    return a.body >= 0 or b.body >= 0 or a.joint > 0 or b.joint > 0


def _object_solid(one: SceneObject, body: int, center: Vector) -> Solid:
    """Return the solid of an object; a free one in axes at its center of mass."""
    kind, size = one.shape.kind, one.shape.size
    points = None
    if kind == "box":
        kind, points, size = "polytope", BOX * size, ()
    elif one.vertices is not None:
        kind, points = "polytope", one.vertices
    if body >= 0:
        position, rotation = -center, np.eye(3)
    else:
        position, rotation = one.position, one.rotation
    shape = ConvexShape(kind, size, np.array(position), np.array(rotation), points)
    return Solid(one.name, shape, -1, body, one.friction, one.restitution)


def _link_solids(arm: ArmModel, friction: float) -> list[Solid]:
    """Return the convex shapes of the links; meshes as the hulls of their parts."""
    shapes, _ = collision_shapes(arm)
    parts, _, _ = convex_parts(shapes)
    solids = []
    for one in parts.geometryObjects:
        position, rotation = one.placement.translation.copy(), one.placement.rotation.copy()
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
        solids.append(Solid(name, shape, int(one.parentJoint), -1, friction, 0.0))
    return solids
