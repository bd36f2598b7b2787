"""Declaration and validation of ROS parameters.

Ranges, units and descriptions come from ``core.parameters.Parameter``. Undeclared parameters that
were given to a node at the start are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from math import inf, isinf
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ParameterNotDeclaredException,
)
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.config import SIMILAR_NAME_RATIO, is_gain
from arm_dynamics.core import parameters
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, closest_name, did_you_mean
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.yaml_file import read_yaml
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
    node: Node, name: str, parameter: Parameter, default: float, *, ignore_given: bool = False
) -> float:
    """Declare a live number with its unit and range; return its validated value.

    With ``ignore_given`` the values given at the start are ignored.
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
    override = node._parameter_overrides.get(name)  # rclpy has no public access
    if override is not None and override.type_ == DOUBLE and isinf(override.value):
        node._parameter_overrides[name] = RosParameter(name, DOUBLE, bounded(override.value))
    value = _declare(node, name, bounded(float(default)), descriptor, ignore_given)
    return parameter.check(node.get_name(), value)


def _declare(
    node: Node, name: str, default: Any, descriptor: ParameterDescriptor, ignore_given: bool = False
) -> Any:
    """Return the active value; raise ConfigError for a wrong type or a value out of range."""
    try:
        return node.declare_parameter(name, default, descriptor, ignore_override=ignore_given).value
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        raise ConfigError(f"{node.get_name()}: {error}") from error


def bounded(value: float) -> float:
    """Return a number clipped to ±``MAX_DOUBLE``, which represents infinity."""
    return min(max(value, -MAX_DOUBLE), MAX_DOUBLE)


def from_ros_bound(value: float) -> float:
    """Return the number that a parameter represents: infinity for ``MAX_DOUBLE``."""
    return inf if value >= MAX_DOUBLE else value


def from_ros_bounds(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the numbers that they represent."""
    return {n: from_ros_bound(v) if isinstance(v, float) else v for n, v in values.items()}


def by_joint(values: Mapping[str, Any], prefix: str) -> dict[str, dict[str, float]]:
    """Return the values named ``<prefix>.<joint>.<name>`` as joint → name → value."""
    return parameters.by_joint(from_ros_bounds(values), prefix)


def take_numbers_as_text(node: Node) -> None:
    """Accept text for numbers: `ros2 param load` reads 1e-05 and inf as text.

    A parameter that the node does not declare is rejected with its name, which rclpy omits.
    """

    def as_number(parameter: RosParameter) -> RosParameter:
        """Return text converted to the declared number or numbers; anything else unchanged."""
        if not node.has_parameter(parameter.name):
            remedy = did_you_mean(parameter.name, node._parameters, SIMILAR_NAME_RATIO)
            raise ParameterNotDeclaredException(f"'{parameter.name}'{remedy}")
        descriptor = node.describe_parameter(parameter.name)
        text, declared = parameter.type_ == RosParameter.Type.STRING, descriptor.type
        try:
            if declared == DOUBLE.value and (text or parameter.type_ == DOUBLE):
                value = float(parameter.value)
                return RosParameter(
                    parameter.name, DOUBLE, bounded(value) if isinf(value) else value
                )
            if text and (declared == DOUBLES.value or descriptor.dynamic_typing):
                values = [float(number) for number in parameter.value.strip("[] ").split(",")]
                return RosParameter(parameter.name, DOUBLES, values)
        except ValueError:
            pass
        return parameter

    node.add_pre_set_parameters_callback(lambda given: [as_number(one) for one in given])


def on_change(node: Node, apply: Callable[[dict[str, Any]], None]) -> None:
    """Call ``apply`` with the values of changed parameters by name.

    An error of this package that it raises rejects the change, with its message.
    """

    def change(parameters: Sequence[RosParameter]) -> SetParametersResult:
        try:
            apply({parameter.name: parameter.value for parameter in parameters})
        except ArmDynamicsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)


FOREIGN = ("qos_overrides",)
"""Groups that rclpy declares as it needs them."""
SIMILAR_NAMES, SIMILARITY = 5, 0.4
"""Maximum number and minimum similarity of the names that a rejection lists."""


Entries = Sequence[tuple[str, str]]
"""Section (the name of a node, ``/**`` or "" for all nodes) and dotted name of each parameter."""
OTHER_NODE = "move a parameter of another node to section /** of a parameter file"


def require_declared(node: Node, *only: str, entries: Entries = ()) -> None:
    """Raise ConfigError for a parameter given at the start that the node does not declare.

    A parameter that ``entries`` give to the node by its name must be declared. ROS also passes each
    node all parameters under ``/**`` and of plain ``-p``, and these may belong to other nodes.
    Among them only two kinds are rejected: unknown parameters of a group of the node (``gains``,
    ``safety`` ...), and names similar to a declared one. Gains of other registered controllers are
    kept for a controller switch; gains of locked joints are ignored. ``only`` limits the check to
    these groups.

    launch_ros writes a dictionary of parameters under ``/**``. It writes one under the full name of
    a node that has both a name and a namespace, also one of PushRosNamespace.
    """
    overrides = getattr(node, "_parameter_overrides", {})  # rclpy has no public access
    declared = node._parameters
    addressed = addressed_parameters(entries, node.get_name())
    groups = {name.partition(".")[0] for name in declared if "." in name} - {*FOREIGN}
    locked = declared["lock"].value if "lock" in declared else ()
    for name in overrides:
        head, _, rest = name.partition(".")
        if (
            (only and head not in only)
            or name in declared
            or head in FOREIGN
            or ("." in rest and rest.rpartition(".")[0] in locked)
            or (head == "gains" and _is_gain_of_other_controller(rest, declared))
        ):
            continue
        closest = closest_name(name, declared, SIMILAR_NAME_RATIO)
        if rest and head in groups:
            siblings = [other for other in declared if other.startswith(f"{head}.")]
            remedy = suggest(name, siblings, "known")
        elif closest:
            remedy = f"did you mean '{closest}'?"
        elif name in addressed:
            similar = get_close_matches(name, declared, n=SIMILAR_NAMES, cutoff=SIMILARITY)
            remedy = f"similar: {', '.join(similar) or 'none'}; {OTHER_NODE}"
        else:
            continue
        raise ConfigError(
            f"{node.get_name()}: parameter = '{name}'; expected a declared parameter; {remedy}"
        )


def parameter_entries(arguments: Sequence[str]) -> Entries:
    """Return the parameters that ROS arguments and their parameter files give.

    Raises ConfigError for a file that cannot be read or is not a table.
    """
    entries: list[tuple[str, str]] = []
    for option, value in pairwise(arguments):
        if option == "--params-file":
            content = read_yaml(value)
            if not isinstance(content, dict | None):
                kind = "a list" if isinstance(content, list) else repr(content)
                raise ConfigError(
                    f"{value}: content = {kind}; expected a table of nodes with ros__parameters"
                )
            for path in _leaves(content or {}):
                index = path.index("ros__parameters") if "ros__parameters" in path else 0
                entries.append(("/".join(path[:index]), ".".join(path[index + 1 :])))
        elif option in ("-p", "--param"):
            section, _, name = value.partition(":=")[0].rpartition(":")
            entries.append((section, name))
    return entries


def addressed_parameters(entries: Entries, node: str) -> set[str]:
    """Return the parameters that ``entries`` give to nodes named ``node``, in any namespace."""
    return {name for section, name in entries if section.rpartition("/")[2] == node}


def _leaves(table: Mapping[Any, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys from the root to each value of nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key))


def _is_gain_of_other_controller(rest: str, declared: Collection[str]) -> bool:
    """Return whether ``<group>.<gain>`` is a gain of another controller, in a possible group.

    A controller of positions declares no gains: its joints are those of its ``constraints``.
    """
    group, _, gain = rest.rpartition(".")
    groups = {
        name.split(".", 1)[1].rpartition(".")[0]
        for name in declared
        if name.startswith(("gains.", "constraints."))
    }
    return group != "" and group in {*groups, "controller"} and is_gain(group, gain)
