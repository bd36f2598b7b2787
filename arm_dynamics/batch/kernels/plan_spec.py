"""What a planning kernel computes in addition to the step: a policy and a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
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
        """Whether the policy's function also takes the first time step: M(q) and h are in both."""
        return self.policy != "command"

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
