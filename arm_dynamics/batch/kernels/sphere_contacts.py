"""Contacts of the spheres of an arm's links with the objects of a scene, and of a free object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.contact_impulse import FAR, SHAPES, gap_and_normal
from arm_dynamics.batch.kernels.free_object import free_object
from arm_dynamics.collision.link_spheres import LinkSphere, link_spheres
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import where
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_dynamics import LINK_FRICTION
from arm_dynamics.simulation.contact.contact_step import MARGIN

MAX_CONTACTS = 256
"""Largest number of contacts of a kernel."""
BODY = 0
"""Joint of the spheres of the free object."""
CONSTANT = 1e-9
"""Change of a gap [m] over random configurations up to which no joint moves it."""


class SphereContact(NamedTuple):
    """Sphere of a link or the free object, the object that it can touch, and their friction.

    The coefficient is the geometric mean of both, as in ``ContactPlant``.
    """

    sphere: LinkSphere
    object: SceneObject
    friction: float

    @property
    def group(self) -> str:
        """Name of the contacts with the same bodies."""
        joint = self.sphere.joint
        return "body" if joint == BODY else f"{joint}{'' if self.object.is_fixed else '_body'}"

    def gap(self, center: Vector) -> float:
        """Return the gap [m] of the sphere to the object with its center (3,) [m] in base axes."""
        shape, place = self.object.shape, (self.object.position, self.object.rotation)
        return float(gap_and_normal(shape.kind, shape.size, *place, center, self.sphere.radius)[0])

    def jacobian(self, of_joint: Any, of_body: Any | None) -> Any:
        """Return the Jacobian (6, n or n + 6) of the motion relative to the object.

        From that of the joint (6, n), and that of the free object (6, 6) if there is one.
        """
        if of_body is None:
            return of_joint
        if self.sphere.joint == BODY:
            return np.hstack([0.0 * of_joint, of_body])
        return np.hstack([of_joint, 0.0 * of_body if self.object.is_fixed else -of_body])


def contact_row(
    contact: SphereContact, center: Any, twist: Any, dt: Any, place: Any = None
) -> list[Any]:
    """Return the numbers of a contact for ``contact_change``, for floats and symbols.

    Parameters
    ----------
    contact : SphereContact
        Contact.
    center : (3,) array
        Center of the sphere [m] in base axes.
    twist : (6,) array
        Velocity of the point of its body at the origin, and angular velocity, without contact,
        relative to the object.
    dt : float
        Time step [s].
    place : tuple, optional
        Position (3,) [m] and rotation (3, 3) of the object (default: those in its scene).

    """
    radius, one = contact.sphere.radius, contact.object
    if place is None:
        place = np.array(one.position), np.array(one.rotation)
    gap, normal = gap_and_normal(one.shape.kind, one.shape.size, place[0], place[1], center, radius)
    point = center - (radius + 0.5 * gap) * normal
    speed = normal @ (twist[:3] + np.cross(twist[3:], point))
    gap = where(gap + dt * speed < MARGIN, gap, FAR)
    return [*normal, *point, gap, contact.friction]


@dataclass(frozen=True, eq=False)
class SphereContacts:
    """Contacts that are possible, in the order of their joints.

    Attributes
    ----------
    contacts : tuple of SphereContact
        Contacts; those that no joint opens or closes, and those out of reach, are omitted.
    body : SceneObject, optional
        Free object, at its pose at the start.

    """

    contacts: tuple[SphereContact, ...]
    body: SceneObject | None = None

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, arm: ArmModel, scene: Scene) -> SphereContacts:
        """Return the contacts of an arm in a scene.

        Raises
        ------
        InvalidValue
            For an object or a number of contacts without a kernel.

        """
        for one in scene:
            _require_closed_form(one)
        samples, reach, body = _placements(arm), _reach(arm), free_object(scene)
        links = sorted(link_spheres(arm), key=lambda x: x.joint)
        fixed = [one for one in scene if one.is_fixed]
        found = [
            contact
            for sphere in links
            for contact in (_contact(sphere, LINK_FRICTION, one) for one in fixed)
            if (sphere.end or contact.object.shape.kind != "ground")
            and _can_touch(contact, samples, reach)
        ]
        if body is not None:
            found += [_contact(sphere, LINK_FRICTION, body) for sphere in links]
            found.sort(key=lambda x: x.sphere.joint)
            own = body_spheres(body, fixed)
            found += [_contact(sphere, body.friction, one) for sphere in own for one in fixed]
            if not found:
                raise InvalidValue(
                    f"scene object '{body.name}': contacts = 0; expected at least 1 in a kernel;"
                    " add a ground, or collision shapes of links"
                )
        contacts = tuple(found)
        if len(contacts) > MAX_CONTACTS:
            raise InvalidValue(
                f"kernel of arm '{arm.name}': contacts of spheres with objects = {len(contacts)};"
                f" expected at most {MAX_CONTACTS}; remove objects, or give the links simpler"
                " collision shapes"
            )
        return cls(contacts, body)

    @property
    def counts(self) -> dict[str, int]:
        """Name of a group to the number of its contacts, in their order."""
        return dict(Counter(contact.group for contact in self.contacts))

    @property
    def key(self) -> tuple[Any, ...]:
        """All numbers, to be hashed; the pose of a free object is a part of the state."""
        body = () if self.body is None else (self.body.shape, self.body.mass)
        return body + tuple(
            (s.joint, *s.center.tolist(), s.radius, o.shape.kind, *o.shape.size, friction,
             *([*o.position.tolist(), *o.rotation.ravel().tolist()] if o.is_fixed else []))
            for s, o, friction in self.contacts
        )  # fmt: skip


def body_spheres(body: SceneObject, fixed: Sequence[SceneObject]) -> list[LinkSphere]:
    """Return what touches fixed objects: the free sphere itself, or the corners of the box.

    Raises
    ------
    InvalidValue
        For a box next to another object than a ground.

    """
    if body.shape.kind == "sphere":
        return [LinkSphere(body.name, BODY, np.zeros(3), body.shape.size[0], True)]
    for one in fixed:
        if one.shape.kind != "ground":
            raise InvalidValue(
                f"scene object '{one.name}': shape = '{one.shape.kind}'; expected ground in a"
                f" kernel with the free box '{body.name}'; remove it, or use Simulation"
            )
    corners = np.array(list(np.ndindex(2, 2, 2))) - 0.5
    return [LinkSphere(body.name, BODY, x * body.shape.size, 0.0, True) for x in corners]


def _contact(sphere: LinkSphere, friction: float, one: SceneObject) -> SphereContact:
    return SphereContact(sphere, one, sqrt(friction * one.friction))


def _require_closed_form(one: SceneObject) -> None:
    """Raise InvalidValue for an object without a kernel."""
    owner, remedy = f"scene object '{one.name}'", "use backend 'plant'"
    if one.shape.kind not in SHAPES:
        raise InvalidValue(
            f"{owner}: shape = '{one.shape.kind}'; expected {', '.join(SHAPES)} in a kernel;"
            f" replace it by boxes or spheres, or {remedy}"
        )
    for name in ("restitution", "compliance"):
        value = getattr(one, name)
        if value > 0:
            raise InvalidValue(f"{owner}: {name} = {value:g}; expected 0 in a kernel; {remedy}")


def _can_touch(contact: SphereContact, samples: list[Any], reach: Sequence[Any]) -> bool:
    """Return whether some motion of the joints changes the gap, and can close it."""
    sphere = contact.sphere
    start, distance = reach[sphere.joint - 1]
    if contact.gap(start) > distance + float(np.linalg.norm(sphere.center)):
        return False
    gaps = [contact.gap(np.array(places[sphere.joint].act(sphere.center))) for places in samples]
    return float(np.ptp(gaps)) > CONSTANT


def _placements(arm: ArmModel) -> list[Any]:
    """Return placements of the joints at random configurations."""
    data, random, found = arm.model.createData(), np.random.default_rng(0), []
    for _ in range(4):
        pin.forwardKinematics(arm.model, data, random.uniform(-1, 1, arm.nv))
        found.append([pin.SE3(place) for place in data.oMi])
    return found


def _reach(arm: ArmModel) -> list[tuple[Vector, float]]:
    """Return for each joint a fixed point (3,) [m], and its largest distance [m] from that.

    A prismatic joint can move on beyond its limits.
    """
    found: list[tuple[Vector, float]] = []
    for body in bodies(arm):
        travel = np.inf if body.prismatic else 0.0
        if body.parent < 0:
            found.append((body.translation, travel))
        else:
            start, distance = found[body.parent]
            found.append((start, distance + float(np.linalg.norm(body.translation)) + travel))
    return found
