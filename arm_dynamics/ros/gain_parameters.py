"""Gains of a control law as parameters ``gains.<group>.<name>``; a group is a joint mostly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.controllers.base import Controller, Gains
from arm_dynamics.ros.parameters import by_joint, declare_number, unbounded


def declare_gains(node: Node, law: Controller) -> Gains:
    """Declare the law's gains with its own values as defaults; return those in force."""
    return {
        group: {
            spec.name: unbounded(
                declare_number(
                    node, f"gains.{group}.{spec.name}", spec, law.values[group][spec.name]
                )
            )
            for spec in parameters
        }
        for group, parameters in law.groups.items()
    }


def changed_gains(law: Controller, values: Mapping[str, Any]) -> Gains | None:
    """All gains with the changed ones among them; None when no gain changed."""
    changed = by_joint(values, "gains")
    if not changed:
        return None
    return {group: {**row, **changed.get(group, {})} for group, row in law.values.items()}
