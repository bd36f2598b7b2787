"""The actuator that a ``<ros2_control>`` joint names: it exists and has its constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.model.audit.fault import Fault, listed, suggest, title
from arm_dynamics.model.audit.numbers import MAX_NUMBER, unreadable
from arm_dynamics.model.audit.robot import REFLECTED, Robot
from arm_dynamics.model.hardware_info import NAMES
from arm_dynamics.model.xml_source import Node

STOPS = (
    Parameter("stop_stiffness", 0.0, "N m/rad", "stiffness of the end stops", lower=0.0),
    Parameter("stop_damping", 0.0, "N m s/rad", "damping of the end stops", lower=0.0),
)
DEFAULT_ACTUATOR = "ideal"


def repeated_param_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield the params of a ``<ros2_control>`` joint without a name or given twice."""
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


def actuator_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield an unknown actuator, and constants that are missing, out of range or inconsistent."""
    nodes = {node.get("name") or "": node for node in reversed(joint.find_all("param"))}
    chosen = nodes.get("actuator")
    name = chosen.text if chosen else DEFAULT_ACTUATOR
    registered = plugins.registered_names("actuators")
    try:
        kind: Any = plugins.load_class("actuators", name)
        parameters: tuple[Parameter, ...] = (*kind.parameters, *STOPS)
    except (ArmDynamicsError, ImportError, AttributeError) as error:
        if chosen:
            problem, remedy = "is not an actuator", f"known: {listed(registered)}"
            if name in registered:
                problem, remedy = f"cannot be loaded: {error}", "repair the plugin"
            element = f"{control_title(joint)} <param actuator>"
            yield Fault(chosen.line, element, name, problem, remedy)
        yield from _constant_faults(joint, name, nodes, STOPS)
        return
    wrong = list(_constant_faults(joint, name, nodes, parameters))
    yield from wrong or _inconsistencies(joint, kind, nodes)
    known = {*(parameter.name for parameter in parameters), *NAMES, "actuator"}
    for given, node in nodes.items():
        if given and given not in known:
            problem = f"is not a parameter of actuator '{name}'"
            element = f"{control_title(joint)} <param name>"
            remedy = suggest(given, known, "known")
            yield Fault(node.line, element, given, problem, remedy, "warning")


def _constant_faults(
    joint: Node, actuator: str, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    """Yield the constants that are missing, unreadable or out of range."""
    for parameter in parameters:
        element = f"{control_title(joint)} <param {parameter.name}>"
        node = nodes.get(parameter.name)
        if node is not None:
            wrong = unreadable(node.text) or out_of_range(parameter, float(node.text))
            if wrong:
                yield Fault(node.line, element, node.text, *wrong)
        elif parameter.default is None:
            problem = f"{parameter.name} is missing: {parameter.description} ({actuator})"
            remedy = f'write <param name="{parameter.name}">…</param> in {parameter.unit}'
            yield Fault(nodes.get("actuator", joint).line, element, "", problem, remedy)


def _inconsistencies(joint: Node, kind: Any, nodes: dict[str, Node]) -> Iterator[Fault]:
    """Yield constants that contradict each other, or that overflow at the joint."""
    known = {p.name for p in kind.parameters}
    given = {name: float(node.text) for name, node in nodes.items() if name in known}
    title_ = control_title(joint)
    found = list(kind.inconsistencies(with_defaults("", kind.parameters, given)))
    for name, problem, remedy in found:
        node = nodes.get(name, joint)
        text = node.text if name in nodes else ""
        yield Fault(node.line, f"{title_} <param {name}>", text, problem, remedy)
    if found:
        return
    remedy = f"at most {MAX_NUMBER:g} in SI units: look for wrong powers of ten"
    try:
        actuator = kind(joint.get("name") or "", 1.0, given)
        values = {name: abs(getattr(actuator, name)) for name in REFLECTED}
    except (ArmDynamicsError, ArithmeticError) as error:
        yield Fault(joint.line, title_, "", f"its constants are impossible: {error}", remedy)
        return
    for name, value in values.items():
        if not value <= MAX_NUMBER:
            problem = f"is {name} at the joint, from its constants"
            yield Fault(joint.line, title_, f"{value:g}", problem, remedy)


def out_of_range(parameter: Parameter, value: float) -> tuple[str, str] | None:
    """Return problem and remedy of a number beyond its parameter's range, else None."""
    try:
        parameter.check(parameter.name, value)
    except InvalidValue:
        return "is out of range", f"allowed: {parameter.range_text} {parameter.unit}"
    return None


def control_title(joint: Node) -> str:
    """Return ``<ros2_control> joint 'R2'``: to distinguish it from the robot's joint."""
    return f"<ros2_control> {title(joint)}"
