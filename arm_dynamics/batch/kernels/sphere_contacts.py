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

from arm_dynamics.batch.kernels.contact_law import gap_and_normal
from arm_dynamics.collision.link_spheres import LinkSphere, link_spheres
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_dynamics import LINK_FRICTION

SHAPES = ("ground", "sphere", "box")
"""Objects whose distance to a sphere has a closed form here."""
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

    def gap_and_normal(self, center: Any, radius: float) -> tuple[Any, Any]:
        """Return the gap [m] of a sphere to the object and the normal (3,) out of the object."""
        one = self.object
        place = np.array(one.position), np.array(one.rotation)
        return gap_and_normal(one.shape.kind, one.shape.size, *place, center, radius)


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
    where, remedy = f"scene object '{one.name}'", "use backend 'plant'"
    if one.shape.kind not in SHAPES:
        raise InvalidValue(
            f"{where}: shape = '{one.shape.kind}'; expected {', '.join(SHAPES)} in a kernel; replace"
            f" it by boxes or spheres, or {remedy}"
        )
    if one.restitution > 0:
        raise InvalidValue(
            f"{where}: restitution = {one.restitution:g}; expected 0 in a kernel; {remedy}"
        )


def _can_touch(contact: SphereContact, samples: list[Any], reach: Sequence[Any]) -> bool:
    """Return whether some motion of the joints changes the gap, and can close it."""
    sphere = contact.sphere
    start, distance = reach[sphere.joint - 1]
    far, _ = contact.gap_and_normal(start, sphere.radius)
    if far > distance + float(np.linalg.norm(sphere.center)):
        return False
    centers = [np.array(places[sphere.joint].act(sphere.center)) for places in samples]
    gaps = [contact.gap_and_normal(center, sphere.radius)[0] for center in centers]
    return float(np.ptp(gaps)) > CONSTANT


def _placements(arm: ArmModel) -> list[Any]:
    """Return placements of the joints at random configurations."""
    data, random, found = arm.model.createData(), np.random.default_rng(0), []
    for _ in range(4):
        pin.forwardKinematics(arm.model, data, random.uniform(-1, 1, arm.nv))
        found.append([pin.SE3(place) for place in data.oMi])
    return found


def _reach(arm: ArmModel) -> list[tuple[Vector, float]]:
    """Return for each joint a fixed point (3,) [m], and its largest distance [m] from that."""
    found: list[tuple[Vector, float]] = []
    for i, body in enumerate(bodies(arm)):
        travel = max(abs(arm.lower[i]), abs(arm.upper[i])) if body.prismatic else 0.0
        if body.parent < 0:
            found.append((body.translation, travel))
        else:
            start, distance = found[body.parent]
            found.append((start, distance + float(np.linalg.norm(body.translation)) + travel))
    return found
