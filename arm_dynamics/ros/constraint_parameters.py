"""Constraints of goals as parameters, named as joint_trajectory_controller names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.goals.constraints import OF_GOAL, OF_JOINT, Constraints, default_values
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.parameters import by_joint, declare_live, declare_number

PARTIAL = "allow_partial_joints_goal"
REJECT = "reject_invalid_goals"


class ConstraintParameters:
    """Declares them, and makes Constraints of those in force; all are live."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._arm = arm
        self._values: dict[str, Any] = {
            f"constraints.{spec.name}": declare_number(
                node, f"constraints.{spec.name}", spec, spec.default or 0.0
            )
            for spec in OF_GOAL
        }
        for joint, row in default_values(arm).items():
            for spec in OF_JOINT:
                name = f"constraints.{joint}.{spec.name}"
                self._values[name] = declare_number(node, name, spec, row[spec.name])
        self.partial = bool(
            declare_live(node, PARTIAL, False, "whether a goal may leave joints out, to stand")
        )
        self.reject = bool(
            declare_live(
                node,
                REJECT,
                True,
                "whether an invalid goal is rejected without a result, the reason in the log;"
                " false: it is accepted and aborted at once, with error code and string",
            )
        )

    def changed(self, values: Mapping[str, Any]) -> Constraints:
        """Take what concerns them; those in force then. Raises InvalidValue out of range."""
        merged = self._values | {n: v for n, v in values.items() if n in self._values}
        joints = by_joint(merged, "constraints")
        general = {spec.name: merged[f"constraints.{spec.name}"] for spec in OF_GOAL}
        constraints = Constraints.of(self._arm, joints, general)
        self._values = merged
        self.partial = bool(values.get(PARTIAL, self.partial))
        self.reject = bool(values.get(REJECT, self.reject))
        return constraints
