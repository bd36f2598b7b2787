"""Gains of a control law as parameters ``gains.<joint>.<name>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.controllers.base import Controller, Gains
from arm_dynamics.ros.parameters import by_joint, declare_number, unbounded


def declare_gains(node: Node, law: Controller) -> Gains:
    """Declare the law's gains with its own values as defaults; return those in force."""
    return {
        joint: {
            spec.name: unbounded(
                declare_number(node, f"gains.{joint}.{spec.name}", spec, law.gains[spec.name][i])
            )
            for spec in law.parameters
        }
        for i, joint in enumerate(law.arm.joint_names)
    }


def changed_gains(law: Controller, values: Mapping[str, Any]) -> Gains | None:
    """All gains with the changed ones among them; None when no gain changed."""
    changed = by_joint(values, "gains")
    if not changed:
        return None
    present = {
        joint: {spec.name: float(law.gains[spec.name][i]) for spec in law.parameters}
        for i, joint in enumerate(law.arm.joint_names)
    }
    return {joint: {**row, **changed.get(joint, {})} for joint, row in present.items()}
