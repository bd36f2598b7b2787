"""ROS parameters from the package's own descriptions: ranges and texts are written once."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.errors import ArmDynamicsError, ConfigError
from arm_dynamics.parameters import Parameter

LARGEST = 1e30
"""Stands for infinity in a range, which ROS tools show as a slider."""


def declare_fixed(node: Node, name: str, default: Any, description: str) -> Any:
    """Declare a parameter that is set at the start only; return its value."""
    descriptor = ParameterDescriptor(description=description, read_only=True)
    return _declare(node, name, default, descriptor)


def declare_live(node: Node, name: str, default: Any, description: str) -> Any:
    """Declare a parameter that may change while the node runs; return its value."""
    return _declare(node, name, default, ParameterDescriptor(description=description))


def declare_list(
    node: Node, name: str, description: str, *, read_only: bool = False
) -> list[float]:
    """Declare a list of numbers, empty unless given at the start; return it."""
    # rclpy takes an empty list for bytes and `ros2 param set` for booleans: no type is fixed.
    # Nor may it stay without a value: nobody could then get any parameter of the node.
    terms = {"description": description, "dynamic_typing": True}
    value = _declare(node, name, [], ParameterDescriptor(**terms))
    if not value:
        node.set_parameters([RosParameter(name, RosParameter.Type.DOUBLE_ARRAY, [])])
    node.set_descriptor(name, ParameterDescriptor(**terms, read_only=read_only))
    return list(value or ())  # an empty list in a file comes as None


def declare_number(
    node: Node, name: str, parameter: Parameter, default: float, *, anew: bool = False
) -> float:
    """Declare a live number with its unit and range; return its value, checked.

    With ``anew`` what was given at the start does not count.
    """
    lower = max(parameter.lower, parameter.above)  # the check refuses ``above`` itself
    descriptor = ParameterDescriptor(
        description=f"{parameter.description} [{parameter.unit}], {parameter.allowed}",
        floating_point_range=[
            # A whole number here would reach the message as garbage.
            FloatingPointRange(
                from_value=float(max(lower, -LARGEST)),
                to_value=float(min(parameter.upper, LARGEST)),
                step=0.0,
            )
        ],
    )
    bounded = min(max(float(default), -LARGEST), LARGEST)
    return parameter.check(node.get_name(), _declare(node, name, bounded, descriptor, anew))


def _declare(
    node: Node, name: str, default: Any, descriptor: ParameterDescriptor, anew: bool = False
) -> Any:
    """The value in force; raises ConfigError for one of a wrong type or out of its range."""
    try:
        return node.declare_parameter(name, default, descriptor, ignore_override=anew).value
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        raise ConfigError(f"{node.get_name()}: {error}") from error


def unbounded(value: float) -> float:
    """The number that a parameter stands for: ``LARGEST`` is infinity."""
    return inf if value >= LARGEST else value


def by_joint(values: Mapping[str, Any], prefix: str) -> dict[str, dict[str, float]]:
    """Those named ``<prefix>.<joint>.<name>``, as joint → name → value."""
    found: dict[str, dict[str, float]] = {}
    for full_name, value in values.items():
        head, _, rest = full_name.partition(".")
        joint, _, name = rest.rpartition(".")
        if head == prefix and joint:
            found.setdefault(joint, {})[name] = unbounded(float(value))
    return found


def result(error: ArmDynamicsError | None) -> SetParametersResult:
    """Success, or a refusal with the error's words."""
    return SetParametersResult(successful=error is None, reason=str(error or ""))
