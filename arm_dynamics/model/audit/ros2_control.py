"""The ``<ros2_control>`` block: joints that exist, actuators with all their constants."""

from __future__ import annotations

from collections.abc import Iterator

from arm_dynamics import plugins
from arm_dynamics.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.model.audit.fault import Fault, Severity, suggest, title
from arm_dynamics.model.audit.joints import bounds
from arm_dynamics.model.audit.numbers import read, unreadable
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.source import Node
from arm_dynamics.parameters import Parameter

COMMANDS = ("effort", "voltage", "position", "velocity")
STOPS = (
    Parameter("stop_stiffness", 0.0, "N m/rad", "stiffness of the end stops", lower=0.0),
    Parameter("stop_damping", 0.0, "N m s/rad", "damping of the end stops", lower=0.0),
)
HARDWARE = ("id", "sign", "offset")  # read by hardware drivers
DEFAULT_ACTUATOR = "ideal"


def check(robot: Robot) -> Iterator[Fault]:
    """Yield the faults of every ``<ros2_control>`` block."""
    blocks = robot.root.every("ros2_control")
    seen: dict[str, int] = {}
    for block in blocks:
        for joint in block.every("joint"):
            yield from _name(robot, joint, seen)
            yield from _actuator(joint)
            yield from _interfaces(robot, joint)
    for joint in robot.all_joints if blocks else ():
        if robot.moves(joint) and joint.get("name") not in seen:
            problem = "<ros2_control> leaves it out: it gets an ideal actuator"
            remedy = "add it to the block"
            yield Fault(joint.line, title(joint), "", problem, remedy, "warning")


def _name(robot: Robot, joint: Node, seen: dict[str, int]) -> Iterator[Fault]:
    name, element = joint.get("name") or "", "<ros2_control> <joint name>"
    if not name:
        yield Fault(joint.line, element, "", "the name is missing", 'write name="…"')
    elif name not in robot.joints:
        remedy = suggest(name, robot.joints, "the joints are")
        yield Fault(joint.line, element, name, "is not a joint of this robot", remedy)
    elif name in seen:
        problem = f"was already given on line {seen[name]}"
        yield Fault(joint.line, element, name, problem, "remove one of them")
    elif robot.joints[name].get("type") == "fixed":
        problem = "is a fixed joint: its actuator has no effect"
        yield Fault(joint.line, element, name, problem, "remove it", "warning")
    seen.setdefault(name, joint.line)


def _actuator(joint: Node) -> Iterator[Fault]:
    """The actuator exists, and its constants are there and within their ranges."""
    nodes = {node.get("name") or "": node for node in reversed(joint.every("param"))}
    yield from _repeated(joint)
    chosen = nodes.get("actuator")
    name = chosen.text if chosen else DEFAULT_ACTUATOR
    try:
        parameters: tuple[Parameter, ...] = tuple(plugins.load("actuators", name).parameters)
    except (ArmDynamicsError, ImportError, AttributeError) as error:
        if chosen:
            yield _unusable(joint, chosen, name, error)
        yield from _constants(joint, nodes, STOPS)
        return
    yield from _constants(joint, nodes, (*parameters, *STOPS))
    yield from _missing(joint, chosen or joint, name, nodes, parameters)
    known = {*(p.name for p in (*parameters, *STOPS)), *HARDWARE, "actuator"}
    for node in nodes.values():
        if (node.get("name") or "") not in known:
            problem = f"is not a parameter of actuator '{name}'"
            remedy = suggest(node.get("name") or "", known, "known")
            element = f"{_title(joint)} <param name>"
            yield Fault(node.line, element, node.get("name") or "", problem, remedy, "warning")


def _repeated(joint: Node) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for node in joint.every("param"):
        name, element = node.get("name"), f"{_title(joint)} <param name>"
        if not name:
            yield Fault(node.line, element, "", "the name is missing", 'write name="…"')
        elif name in seen:
            problem = f"was already given on line {seen[name]}"
            yield Fault(node.line, element, name, problem, "remove one of them")
        else:
            seen[name] = node.line


def _unusable(joint: Node, chosen: Node, name: str, error: Exception) -> Fault:
    known = plugins.names("actuators")
    element = f"{_title(joint)} <param actuator>"
    if name in known:
        return Fault(chosen.line, element, name, f"cannot be loaded: {error}", "repair the plugin")
    remedy = f"known: {', '.join(known)}"
    return Fault(chosen.line, element, name, "is not an actuator", remedy)


def _constants(
    joint: Node, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    for parameter in parameters:
        node = nodes.get(parameter.name)
        if node is None:
            continue
        element, value = f"{_title(joint)} <param {parameter.name}>", read(node.text)
        wrong = unreadable(node.text)
        if wrong or value is None:
            yield Fault(node.line, element, node.text, *(wrong or ("is not a number", "")))
            continue
        try:
            parameter.check(element, value)
        except InvalidValue:
            problem, remedy = "is out of range", f"{parameter.allowed} {parameter.unit}"
            yield Fault(node.line, element, node.text, problem, f"allowed: {remedy}")


def _missing(
    joint: Node, chosen: Node, name: str, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    for parameter in parameters:
        if parameter.default is None and parameter.name not in nodes:
            problem = f"{parameter.name} is missing: {parameter.description}"
            remedy = f'write <param name="{parameter.name}">…</param> in {parameter.unit}'
            element = f"{_title(joint)} <param {parameter.name}>"
            yield Fault(chosen.line, element, "", f"{problem} ({name})", remedy)


def _interfaces(robot: Robot, joint: Node) -> Iterator[Fault]:
    commands = joint.every("command_interface")
    usable = any(node.get("name") in COMMANDS for node in commands)
    severity: Severity = "warning" if usable else "error"
    for node in commands:
        name = node.get("name") or ""
        if name not in COMMANDS:
            element, remedy = f"{_title(joint)} <command_interface name>", ", ".join(COMMANDS)
            problem = "is not a command of an arm's joint"
            yield Fault(node.line, element, name, problem, f"allowed: {remedy}", severity)
    for state in joint.every("state_interface"):
        for param in state.every("param"):
            if param.get("name") == "initial_value":
                yield from _initial(robot, joint, state.get("name"), param)


def _initial(robot: Robot, joint: Node, interface: str | None, param: Node) -> Iterator[Fault]:
    element, wrong = f"{_title(joint)} <param initial_value>", unreadable(param.text)
    if wrong:
        yield Fault(param.line, element, param.text, *wrong)
        return
    target = robot.joints.get(joint.get("name") or "")
    if interface != "position" or not target or target.get("type") == "continuous":
        return
    lower, upper = bounds(target.first("limit"))
    value = read(param.text)
    if value is None or lower is None or upper is None or lower <= value <= upper:
        return
    problem, remedy = "is outside the limits", f"choose one from {lower:g} to {upper:g}"
    yield Fault(param.line, element, param.text, problem, remedy)


def _title(joint: Node) -> str:
    return f"<ros2_control> {title(joint)}"
