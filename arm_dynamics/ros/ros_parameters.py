"""Declaration and validation of ROS parameters.

Ranges, units and descriptions come from ``core.parameters.Parameter``. Misspelled parameters that
were given at the start are rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import inf, isinf
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.config import SIMILAR_NAME_RATIO, is_gain
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.audit.fault import suggest

DOUBLE, DOUBLES = RosParameter.Type.DOUBLE, RosParameter.Type.DOUBLE_ARRAY
MAX_DOUBLE = 1e15
"""Represents infinity: ROS tools show ranges as sliders, and `ros2 param load` reads this number's
text as a number. It reads inf and 1e+30 as strings, because YAML 1.1 requires a decimal point."""


def declare_fixed(node: Node, name: str, default: Any, description: str) -> Any:
    """Declare a parameter that is fixed after the start; return its value."""
    descriptor = ParameterDescriptor(description=description, read_only=True)
    return _declare(node, name, default, descriptor)


def declare_live(node: Node, name: str, default: Any, description: str) -> Any:
    """Declare a parameter that may change while the node runs; return its value."""
    return _declare(node, name, default, ParameterDescriptor(description=description))


def declare_list(
    node: Node, name: str, description: str, *, read_only: bool = False
) -> list[float]:
    """Declare a list of numbers, empty unless given at the start; return it."""
    # rclpy reads an empty list as bytes, `ros2 param set` as booleans: no type is fixed.
    # Without a value, requests for any parameter of the node would fail.
    terms = {"description": description, "dynamic_typing": True}
    value = _declare(node, name, [], ParameterDescriptor(**terms))
    if not value:
        node.set_parameters([RosParameter(name, RosParameter.Type.DOUBLE_ARRAY, [])])
    node.set_descriptor(name, ParameterDescriptor(**terms, read_only=read_only))
    return list(value or ())  # an empty list in a file comes as None


def declare_number(
    node: Node, name: str, parameter: Parameter, default: float, *, anew: bool = False
) -> float:
    """Declare a live number with its unit and range; return its validated value.

    With ``anew`` the values given at the start are ignored.
    """
    lower = max(parameter.lower, parameter.above)  # ``check`` rejects ``above`` itself
    descriptor = ParameterDescriptor(
        description=f"{parameter.description} [{parameter.unit}], {parameter.range_text}",
        floating_point_range=[
            # An integer here would corrupt the message.
            FloatingPointRange(
                from_value=float(max(lower, -MAX_DOUBLE)),
                to_value=float(min(parameter.upper, MAX_DOUBLE)),
                step=0.0,
            )
        ],
    )
    given = node._parameter_overrides.get(name)  # rclpy has no public access
    if given is not None and given.type_ == DOUBLE and isinf(given.value):
        node._parameter_overrides[name] = RosParameter(name, DOUBLE, bounded(given.value))
    value = _declare(node, name, bounded(float(default)), descriptor, anew)
    return parameter.check(node.get_name(), value)


def _declare(
    node: Node, name: str, default: Any, descriptor: ParameterDescriptor, anew: bool = False
) -> Any:
    """Return the active value; raise ConfigError for a wrong type or a value out of range."""
    try:
        return node.declare_parameter(name, default, descriptor, ignore_override=anew).value
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        raise ConfigError(f"{node.get_name()}: {error}") from error


def bounded(value: float) -> float:
    """Return a number clipped to ±``MAX_DOUBLE``, which represents infinity."""
    return min(max(value, -MAX_DOUBLE), MAX_DOUBLE)


def from_ros_bound(value: float) -> float:
    """Return the number that a parameter represents: infinity for ``MAX_DOUBLE``."""
    return inf if value >= MAX_DOUBLE else value


def by_joint(values: Mapping[str, Any], prefix: str) -> dict[str, dict[str, float]]:
    """Return the values named ``<prefix>.<joint>.<name>`` as joint → name → value."""
    found: dict[str, dict[str, float]] = {}
    for full_name, value in values.items():
        head, _, rest = full_name.partition(".")
        joint, _, name = rest.rpartition(".")
        if head == prefix and joint:
            found.setdefault(joint, {})[name] = from_ros_bound(float(value))
    return found


def take_numbers_as_text(node: Node) -> None:
    """Accept text for numbers: `ros2 param load` reads 1e-05 and inf as text."""

    def numbers(given: list[RosParameter]) -> list[RosParameter]:
        return [
            _as_number(one, node.describe_parameter(one.name))
            if node.has_parameter(one.name)
            else one
            for one in given
        ]

    node.add_pre_set_parameters_callback(numbers)


def _as_number(given: RosParameter, descriptor: ParameterDescriptor) -> RosParameter:
    """Return text converted to the declared number or numbers; anything else unchanged."""
    text, declared = given.type_ == RosParameter.Type.STRING, descriptor.type
    try:
        if declared == DOUBLE.value and (text or given.type_ == DOUBLE):
            value = float(given.value)
            return RosParameter(given.name, DOUBLE, bounded(value) if isinf(value) else value)
        if text and (declared == DOUBLES.value or descriptor.dynamic_typing):
            values = [float(number) for number in given.value.strip("[] ").split(",")]
            return RosParameter(given.name, DOUBLES, values)
    except ValueError:
        pass
    return given


def set_parameters_result(error: ArmDynamicsError | None) -> SetParametersResult:
    """Return success, or a rejection with the error's message."""
    return SetParametersResult(successful=error is None, reason=str(error or ""))


FOREIGN = ("qos_overrides",)
"""Groups that rclpy declares as it needs them."""


def require_declared(node: Node, *only: str) -> None:
    """Raise ConfigError for a given parameter that is probably a misspelled one of this node.

    Rejected are unknown parameters of a group of the node (``gains``, ``safety`` ...), and names
    similar to a declared one. Gains of other registered controllers are kept for a controller
    switch; gains of locked joints are ignored. Other unknown parameters belong to other nodes: ROS
    passes each node all parameters under ``/**`` or on the command line of its process.
    ``only`` limits the check to these groups.
    """
    given = getattr(node, "_parameter_overrides", {})  # rclpy has no public access
    declared = node._parameters
    groups = {name.partition(".")[0] for name in declared if "." in name} - {*FOREIGN}
    locked = declared["lock"].value if "lock" in declared else ()
    for name in given:
        head, _, rest = name.partition(".")
        if (
            (only and head not in only)
            or name in declared
            or head in FOREIGN
            or ("." in rest and rest.rpartition(".")[0] in locked)
            or (head == "gains" and _waits(rest, declared))
        ):
            continue
        if rest and head in groups:
            siblings = [other for other in declared if other.startswith(f"{head}.")]
            raise ConfigError(
                f"{node.get_name()}: unknown parameter {name}; {suggest(name, siblings, 'known')}"
            )
        near = get_close_matches(name, declared, n=1, cutoff=SIMILAR_NAME_RATIO)
        if near:
            raise ConfigError(
                f"{node.get_name()}: unknown parameter {name}; did you mean '{near[0]}'?"
            )


def _waits(rest: str, declared: Collection[str]) -> bool:
    """Return whether ``<group>.<gain>`` is a gain of another controller, in a possible group."""
    group, _, gain = rest.rpartition(".")
    groups = {name.split(".", 1)[1].rpartition(".")[0] for name in declared if name[:6] == "gains."}
    return (group in groups or group == "controller") and is_gain(group, gain)
