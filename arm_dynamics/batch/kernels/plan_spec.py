"""What a planning kernel computes in addition to the step: a policy and a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
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

    Raises
    ------
    UnknownName
        For another policy.
    InvalidValue
        For a policy with an interface that it does not have.

    """

    cost: Cost
    interface: str
    policy: str = "command"
    scene: Scene = EMPTY_SCENE

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise UnknownName("policy", self.policy, POLICIES)
        if self.policy != "command" and self.interface != "effort":
            raise InvalidValue(
                f"policy '{self.policy}': interface = '{self.interface}'; expected 'effort'; use"
                " policy 'command'"
            )

    @property
    def begins_step(self) -> bool:
        """Whether the policy's function also takes the first time step: they share M(q) and h."""
        return self.policy != "command"

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
