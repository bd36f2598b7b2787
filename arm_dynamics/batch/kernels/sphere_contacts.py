"""Contacts of the spheres of an arm's links with the fixed objects of a scene."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.contact_impulse import FAR, GAP, SHAPES, gap_and_normal
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
CONSTANT = 1e-9
"""Change of a gap [m] over random configurations up to which no joint moves it."""


class SphereContact(NamedTuple):
    """Sphere of a link and the object that it can touch."""

    sphere: LinkSphere
    object: SceneObject

    @property
    def friction(self) -> float:
        """Coefficient: the geometric mean of both, as in ``ContactPlant``."""
        return sqrt(LINK_FRICTION * self.object.friction)

    def gap(self, center: Vector) -> float:
        """Return the gap [m] of the sphere to the object with its center (3,) [m] in base axes."""
        return float(contact_row(self, center, np.zeros(6), 0.0, np.inf)[GAP])


def contact_row(
    contact: SphereContact, center: Any, twist: Any, dt: Any, margin: float = MARGIN
) -> list[Any]:
    """Return the numbers of a contact for ``contact_change``, for floats and symbols.

    Parameters
    ----------
    contact : SphereContact
        Contact.
    center : (3,) array
        Center of the sphere [m] in base axes.
    twist : (6,) array
        Velocity of the point of its body at the origin, and angular velocity, without contact.
    dt : float
        Time step [s].
    margin : float
        A contact whose gap [m] is larger after dt does not act.

    """
    radius, one = contact.sphere.radius, contact.object
    place = np.array(one.position), np.array(one.rotation)
    gap, normal = gap_and_normal(one.shape.kind, one.shape.size, *place, center, radius)
    point = center - (radius + 0.5 * gap) * normal
    speed = normal @ (twist[:3] + np.cross(twist[3:], point))
    gap = where(gap + dt * speed < margin, gap, FAR)
    return [*normal, *point, gap, contact.friction]


@dataclass(frozen=True, eq=False)
class SphereContacts:
    """Contacts that are possible, in the order of their joints.

    Attributes
    ----------
    contacts : tuple of SphereContact
        Contacts; those that no joint opens or closes, and those out of reach, are omitted.

    """

    contacts: tuple[SphereContact, ...]

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
        samples, reach = _placements(arm), _reach(arm)
        contacts = tuple(
            contact
            for sphere in sorted(link_spheres(arm), key=lambda x: x.joint)
            for contact in (SphereContact(sphere, one) for one in scene)
            if (sphere.end or contact.object.shape.kind != "ground")
            and _can_touch(contact, samples, reach)
        )
        if len(contacts) > MAX_CONTACTS:
            raise InvalidValue(
                f"kernel of arm '{arm.name}': contacts of spheres with objects = {len(contacts)};"
                f" expected at most {MAX_CONTACTS}; remove objects, or give the links simpler"
                " collision shapes"
            )
        return cls(contacts)

    @property
    def counts(self) -> dict[int, int]:
        """Joint to the number of its contacts."""
        return dict(Counter(contact.sphere.joint for contact in self.contacts))

    @property
    def key(self) -> tuple[Any, ...]:
        """All numbers, to be hashed."""
        return tuple(
            (s.joint, *s.center.tolist(), s.radius, o.shape.kind, *o.shape.size, o.friction,
             *o.position.tolist(), *o.rotation.ravel().tolist())
            for s, o in self.contacts
        )  # fmt: skip


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
