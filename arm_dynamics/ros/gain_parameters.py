"""Gains of a control law as parameters ``gains.<group>.<name>``; a group is a joint mostly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.controllers.base import Controller, Gains
from arm_dynamics.ros.declared import require_declared
from arm_dynamics.ros.parameters import bounded, by_joint, declare_number, unbounded


def declare_gains(node: Node, law: Controller) -> Gains:
    """Declare the law's gains with its own values as defaults; return those in force.

    Raises ConfigError for gains given at the start that no controller has.
    """
    declared = {
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
    require_declared(node, "gains")  # before a law compiles for a minute
    return declared


def changed_gains(law: Controller, values: Mapping[str, Any]) -> Gains | None:
    """All given gains with the changed ones among them; None when no gain changed."""
    changed = by_joint(values, "gains")
    if all(row.items() <= law.values.get(group, {}).items() for group, row in changed.items()):
        return None
    found = {group: dict(row) for group, row in law.given.items()}
    for group, row in changed.items():
        found[group] = {**found.get(group, {}), **row}
    return found


def show_gains(node: Node, law: Controller) -> None:
    """Set the parameters to the gains in force, where these have been slowed down."""
    values = {
        f"gains.{group}.{name}": bounded(value)
        for group, row in law.values.items()
        for name, value in row.items()
    }
    node.set_parameters(
        [
            RosParameter(name, RosParameter.Type.DOUBLE, value)
            for name, value in values.items()
            if node.has_parameter(name) and node.get_parameter(name).value != value
        ]
    )


def carried_gains(before: Controller, after: Controller) -> Gains:
    """Gains in force that mean the same in another law: the same parameter, unit and all."""
    return {
        group: {
            spec.name: before.values[group][spec.name]
            for spec in parameters
            if spec in before.groups.get(group, ())
        }
        for group, parameters in after.groups.items()
    }


def declare_anew(node: Node, before: Controller, after: Controller) -> None:
    """Replace the gains of one law by those of another; what means the same stays declared."""
    for group, parameters in before.groups.items():
        for spec in parameters:
            if spec not in after.groups.get(group, ()):
                node.undeclare_parameter(f"gains.{group}.{spec.name}")
    for group, parameters in after.groups.items():
        for spec in parameters:
            name = f"gains.{group}.{spec.name}"
            if not node.has_parameter(name):
                declare_number(node, name, spec, after.values[group][spec.name], anew=True)
