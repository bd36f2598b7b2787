"""The actuator that a ``<ros2_control>`` joint names: it exists and has its constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.model.audit.fault import Fault, listed, suggest, title
from arm_dynamics.model.audit.numbers import MAX_NUMBER, unreadable
from arm_dynamics.model.hardware_info import NAMES
from arm_dynamics.model.xml_source import Node

STOPS = (
    Parameter("stop_stiffness", 0.0, "N m/rad", "stiffness of the end stops", lower=0.0),
    Parameter("stop_damping", 0.0, "N m s/rad", "damping of the end stops", lower=0.0),
)
DEFAULT_ACTUATOR = "ideal"
REFLECTED = ("armature", "viscous_friction", "back_emf_damping", "breakaway_effort")
"""What an actuator's constants come to at the joint."""


def check(joint: Node) -> Iterator[Fault]:
    """The actuator exists, and its constants are there and within their ranges."""
    nodes = {node.get("name") or "": node for node in reversed(joint.find_all("param"))}
    yield from _repeated(joint)
    chosen = nodes.get("actuator")
    name = chosen.text if chosen else DEFAULT_ACTUATOR
    try:
        kind: Any = plugins.load_class("actuators", name)
        parameters: tuple[Parameter, ...] = tuple(kind.parameters)
    except (ArmDynamicsError, ImportError, AttributeError) as error:
        if chosen:
            yield _unusable(joint, chosen, name, error)
        yield from _constants(joint, nodes, STOPS)
        return
    wrong = [
        *_constants(joint, nodes, (*parameters, *STOPS)),
        *_missing(joint, chosen or joint, name, nodes, parameters),
    ]
    yield from wrong or _contradictions(joint, kind, nodes)
    yield from _unknown(joint, name, nodes, parameters)


def _contradictions(joint: Node, kind: Any, nodes: dict[str, Node]) -> Iterator[Fault]:
    """Constants that are each in range but go ill together, at the line of the one named."""
    known = {p.name for p in kind.parameters}
    given = {name: float(node.text) for name, node in nodes.items() if name in known}
    found = list(kind.inconsistencies(with_defaults("", kind.parameters, given)))
    for name, problem, remedy in found:
        node = nodes.get(name, joint)
        element = f"{control_title(joint)} <param {name}>"
        yield Fault(node.line, element, node.text if name in nodes else "", problem, remedy)
    if not found:
        yield from _reflected(joint, kind, given)


def _reflected(joint: Node, kind: Any, given: dict[str, float]) -> Iterator[Fault]:
    """Constants whose products overflow, or are no arm's."""
    remedy = f"at most {MAX_NUMBER:g} in SI units: look for wrong powers of ten"
    try:
        made = kind(joint.get("name") or "", 1.0, given)
        values = {name: abs(getattr(made, name)) for name in REFLECTED}
    except (ArmDynamicsError, ArithmeticError) as error:
        problem = f"its constants are impossible: {error}"
        yield Fault(joint.line, control_title(joint), "", problem, remedy)
        return
    for name, value in values.items():
        if not value <= MAX_NUMBER:
            problem = f"is {name} at the joint, from its constants"
            yield Fault(joint.line, control_title(joint), f"{value:g}", problem, remedy)


def _unknown(
    joint: Node, name: str, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    known = {*(p.name for p in (*parameters, *STOPS)), *NAMES, "actuator"}
    for given, node in nodes.items():
        if given and given not in known:
            problem = f"is not a parameter of actuator '{name}'"
            remedy = suggest(given, known, "known")
            element = f"{control_title(joint)} <param name>"
            yield Fault(node.line, element, given, problem, remedy, "warning")


def _repeated(joint: Node) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for node in joint.find_all("param"):
        name, element = node.get("name"), f"{control_title(joint)} <param name>"
        if not name:
            yield Fault(node.line, element, "", "the name is missing", 'write name="…"')
        elif name in seen:
            problem = f"was already given on line {seen[name]}"
            yield Fault(node.line, element, name, problem, "remove one of them")
        else:
            seen[name] = node.line


def _unusable(joint: Node, chosen: Node, name: str, error: Exception) -> Fault:
    known = plugins.registered_names("actuators")
    element = f"{control_title(joint)} <param actuator>"
    if name in known:
        return Fault(chosen.line, element, name, f"cannot be loaded: {error}", "repair the plugin")
    remedy = f"known: {listed(known)}"
    return Fault(chosen.line, element, name, "is not an actuator", remedy)


def _constants(
    joint: Node, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    for parameter in parameters:
        node = nodes.get(parameter.name)
        if node is None:
            continue
        wrong = unreadable(node.text) or outside(parameter, float(node.text))
        if wrong:
            element = f"{control_title(joint)} <param {parameter.name}>"
            yield Fault(node.line, element, node.text, *wrong)


def outside(parameter: Parameter, value: float) -> tuple[str, str] | None:
    """Problem and remedy of a number beyond its parameter's range, else None."""
    try:
        parameter.check(parameter.name, value)
    except InvalidValue:
        return "is out of range", f"allowed: {parameter.range_text} {parameter.unit}"
    return None


def _missing(
    joint: Node, chosen: Node, name: str, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    for parameter in parameters:
        if parameter.default is None and parameter.name not in nodes:
            problem = f"{parameter.name} is missing: {parameter.description}"
            remedy = f'write <param name="{parameter.name}">…</param> in {parameter.unit}'
            element = f"{control_title(joint)} <param {parameter.name}>"
            yield Fault(chosen.line, element, "", f"{problem} ({name})", remedy)


def control_title(joint: Node) -> str:
    """``<ros2_control> joint 'R2'``: to distinguish it from the robot's joint."""
    return f"<ros2_control> {title(joint)}"
