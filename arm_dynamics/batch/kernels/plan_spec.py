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
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.rigid_body import rnea_batch
from arm_dynamics.model.arm_model import ArmModel

POLICIES = ("command", "gravity", "acceleration")
"""What the knots are: commands; efforts in addition to the gravity torque g(q); accelerations a of
the effort M(q) a + C(q, v) v + g(q)."""
ROUNDING = 1e-6
"""Difference from a limit, relative to it, within which a command is at the limit."""


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
    def begins_step(self) -> bool:
        """Whether the policy's function also takes the first time step: M(q) and h are in both."""
        return self.policy != "command" and not self.contact

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
        """Return the command at which a larger input has no effect (nv,).

        That of a joint, or infinity where an acceleration changes the efforts of all joints.
        """
        return np.full(arm.nv, np.inf) if self.policy == "acceleration" else self.limits(arm)

    def effective_inputs(
        self, arm: ArmModel, inputs: Matrix, states: Matrix, commands: Matrix
    ) -> Matrix:
        """Return inputs (periods, nv) without the part that the limits of the commands remove.

        ``commands`` are those of the inputs in ``states`` (periods, 2 nv + na). Accelerations are
        returned as they are.
        """
        saturated = np.abs(commands) >= self.bound(arm) * (1 - ROUNDING)
        if not saturated.any():
            return inputs
        offset = np.zeros(inputs.shape)
        if self.policy == "gravity":
            q, rest = states[:, : arm.nv].astype(float), np.zeros(inputs.shape)
            offset = rnea_batch(arm, q, rest, rest)
        return np.where(saturated, commands - offset, inputs)

    def command(self, arm: ArmModel, data: Any, q: Vector, v: Vector, knot: Vector) -> Vector:
        """Return the command (nv,) of the policy for the interpolated knot (nv,)."""
        if self.policy == "gravity":
            knot = knot + pin.computeGeneralizedGravity(arm.model, data, q)
        elif self.policy == "acceleration":
            knot = pin.rnea(arm.model, data, q, v, knot)
        limits = self.limits(arm)
        return np.clip(knot, -limits, limits)
