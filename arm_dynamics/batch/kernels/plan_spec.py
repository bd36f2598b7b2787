"""What a planning kernel computes in addition to the step: a policy and a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.kernels.free_object import free_object
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene, SceneObject
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel

POLICIES = ("command", "gravity", "acceleration")
"""What the knots are: commands; efforts in addition to the gravity torque g(q); accelerations a of
the effort M(q) a + C(q, v) v + g(q)."""


@dataclass(frozen=True)
class PlanSpec:
    """Policy and cost of predicted motions.

    Attributes
    ----------
    cost : Cost
        Running and terminal cost.
    interface : str
        Command interface.
    policy : str
        One of ``POLICIES``; "gravity" and "acceleration" require the interface "effort".
    scene : Scene
        Objects whose gaps the cost can use.
    contact : bool
        Whether the links touch the objects, one of which can be free.

    Raises
    ------
    UnknownName
        For another policy.
    InvalidValue
        For a policy with an interface that it does not have, or a free object without contact.

    """

    cost: Cost
    interface: str
    policy: str = "command"
    scene: Scene = EMPTY_SCENE
    contact: bool = False

    def __post_init__(self) -> None:
        if self.body is not None and not self.contact:
            raise InvalidValue(
                f"scene object '{self.body.name}': mass = {self.body.mass:g} kg; expected 0 without"
                " contact; set contact=True, or mass 0"
            )
        if self.policy not in POLICIES:
            raise UnknownName("policy", self.policy, POLICIES)
        if self.policy != "command" and self.interface != "effort":
            raise InvalidValue(
                f"policy '{self.policy}': interface = '{self.interface}'; expected 'effort'; use"
                " policy 'command'"
            )

    @property
    def body(self) -> SceneObject | None:
        """Free object of the scene, at its pose at the start."""
        return free_object(self.scene)

    def contacts(self, arm: ArmModel) -> SphereContacts | None:
        """Return the contacts of a kernel, None without any."""
        found = SphereContacts.of(arm, self.scene) if self.contact else None
        return found if found and found.contacts else None

    def rows(self, arm: ArmModel) -> dict[str, int]:
        """Return the rows that a kernel has in addition, and their sizes."""
        return {"knot": arm.nv, "parameter": self.cost.size, "cost": 1}

    def limits(self, arm: ArmModel) -> Vector:
        """Return the largest command of each joint (nv,)."""
        return np.array([actuator.command_limit(self.interface) for actuator in arm.actuators])

    def bound(self, arm: ArmModel) -> Vector:
        """Return the largest input (nv,): the limits of commands, else infinity."""
        return self.limits(arm) if self.policy == "command" else np.full(arm.nv, np.inf)

    def command(self, arm: ArmModel, data: Any, q: Vector, v: Vector, knot: Vector) -> Vector:
        """Return the command (nv,) of the policy for the interpolated knot (nv,)."""
        if self.policy == "gravity":
            knot = knot + pin.computeGeneralizedGravity(arm.model, data, q)
        elif self.policy == "acceleration":
            knot = pin.rnea(arm.model, data, q, v, knot)
        limits = self.limits(arm)
        return np.clip(knot, -limits, limits)
