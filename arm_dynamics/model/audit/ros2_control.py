"""The ``<ros2_control>`` block: joints with commands and initial values, actuators, motors.

The port and the motors are checked if ``<hardware>`` names a ``driver`` or a joint names a
``motor``: blocks of other programs have an ``id`` and an ``offset`` with other meanings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.model.audit.fault import Fault, Severity, listed, suggest, title
from arm_dynamics.model.audit.mimic_joints import driven_range
from arm_dynamics.model.audit.numbers import MAX_NUMBER, parse_number, unreadable
from arm_dynamics.model.audit.robot import REFLECTED, Robot, mimicked
from arm_dynamics.model.hardware_info import NAMES, NUMBERS
from arm_dynamics.model.xml_source import Node

OWN_PLUGINS = ("joint_state_topic_hardware_interface/", "topic_based_ros2_control/")
"""Hardware of ros2_control whose topics the simulator has."""
COMMANDS = ("effort", "voltage", "position", "velocity")
STOPS = (
    Parameter("stop_stiffness", 0.0, "N m/rad", "stiffness of the end stops", lower=0.0),
    Parameter("stop_damping", 0.0, "N m s/rad", "damping of the end stops", lower=0.0),
)
DEFAULT_ACTUATOR = "ideal"
BAUD = Parameter("baud", 1e6, "1/s", "rate of the serial line", above=0)
REMEDIES = {
    "id": 'write <param name="id">…</param>, the number to which the motor replies',
    "motor": 'write <param name="motor">…</param>, the manufacturer\'s model name',
}


def transmission_faults(robot: Robot) -> Iterator[Fault]:
    """Yield one warning for all ``<transmission>`` elements, with their joints and reductions."""
    every = robot.root.find_all("transmission")
    ratios = [node for one in every for node in one.walk() if node.tag == "mechanicalReduction"]
    joints = [j.get("name") or "" for one in every for j in one.find_all("joint")]
    if every:
        shown = " ".join(dict.fromkeys(node.text for node in ratios)) or "none"
        names = joints[0] if len(joints) == 1 else f"{joints[0]} … {joints[-1]}" if joints else ""
        more = f"and {len(every) - 1} more are ignored" if every[1:] else "is ignored"
        problem = f"{more} (joints: {names or 'none'}; mechanicalReduction: {shown})"
        remedy = "describe motors and gears in a <ros2_control> block (docs/my_motors.md)"
        name = every[0].get("name") or ""
        yield Fault(every[0].line, "<transmission>", name, problem, remedy, "warning")


def joint_list_faults(robot: Robot) -> Iterator[Fault]:
    """Yield wrong, repeated and omitted names of the joints in ``<ros2_control>`` blocks."""
    seen: dict[str, int] = {}
    blocks = robot.root.find_all("ros2_control")
    for joint in [joint for block in blocks for joint in block.find_all("joint")]:
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
        elif _is_mimic(robot, name) and joint.find("command_interface"):
            problem = "is a mimic joint: its commands and its actuator have no effect"
            yield Fault(joint.line, element, name, problem, "remove them", "warning")
        seen.setdefault(name, joint.line)
    for joint in robot.all_joints if blocks else ():
        name = joint.get("name") or ""
        if robot.moves(joint) and name not in seen and not _is_mimic(robot, name):
            problem = "it is not in <ros2_control>: it gets an ideal actuator"
            yield Fault(joint.line, title(joint), "", problem, "add it to the block", "warning")


def _is_mimic(robot: Robot, name: str) -> bool:
    """Return whether joint ``name`` moves, and follows another one."""
    joint = robot.joints.get(name)
    return joint is not None and robot.moves(joint) and mimicked(joint) is not None


def plugin_faults(_robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield a warning for a plugin of another program in a block without a driver."""
    for hardware in block.find_all("hardware"):
        plugin = hardware.find("plugin")
        driven = any(param.get("name") == "driver" for param in hardware.find_all("param"))
        if plugin and plugin.text and not driven and not plugin.text.startswith(OWN_PLUGINS):
            count = len(block.find_all("joint"))
            problem = f"is ignored: it is ros2_control's, for {count} joint{'s' * (count != 1)}"
            remedy = 'name a driver for a physical arm: <param name="driver">feetech</param>'
            element = "<ros2_control> <plugin>"
            yield Fault(plugin.line, element, plugin.text, problem, remedy, "warning")


def tool_frame_faults(robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield a ``tool_frame`` that is not a link."""
    for hardware in block.find_all("hardware"):
        for param in hardware.find_all("param"):
            if param.get("name") == "tool_frame" and param.text not in robot.links:
                remedy = f"the links are: {listed(list(robot.links))}"
                problem = "is not a link of this robot" if param.text else "the link is missing"
                element = "<ros2_control> <param tool_frame>"
                yield Fault(param.line, element, param.text, problem, remedy)


def interface_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield unknown command interfaces: errors if the joint has no known one."""
    commands = joint.find_all("command_interface")
    usable = any(node.get("name") in COMMANDS for node in commands)
    severity: Severity = "warning" if usable else "error"
    for node in commands:
        name = node.get("name") or ""
        if name not in COMMANDS:
            element = f"{_control_title(joint)} <command_interface name>"
            problem, remedy = "is not a command of an arm's joint", ", ".join(COMMANDS)
            yield Fault(node.line, element, name, problem, f"allowed: {remedy}", severity)


def initial_position_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield initial values that are not numbers, and positions outside the limits."""
    params = [(s.get("name"), p) for s in joint.find_all("state_interface") for p in s.children]
    element = f"{_control_title(joint)} <param initial_value>"
    for interface, param in params:
        if param.tag != "param" or param.get("name") != "initial_value":
            continue
        wrong, value = unreadable(param.text), parse_number(param.text)
        if wrong:
            yield Fault(param.line, element, param.text, *wrong)
        target = robot.joints.get(joint.get("name") or "")
        if interface != "position" or target is None or value is None:
            continue
        lower, upper = driven_range(robot, target.get("name") or "")
        if lower <= value <= upper:
            continue
        problem, remedy = "is outside the limits", f"choose one from {lower:g} to {upper:g}"
        yield Fault(param.line, element, param.text, problem, remedy)


def repeated_param_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield the params of a ``<ros2_control>`` joint without a name or given twice."""
    seen: dict[str, int] = {}
    for node in joint.find_all("param"):
        name, element = node.get("name"), f"{_control_title(joint)} <param name>"
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
            element = f"{_control_title(joint)} <param actuator>"
            yield Fault(chosen.line, element, name, problem, remedy)
        yield from _constant_faults(joint, name, nodes, STOPS)
        return
    wrong = list(_constant_faults(joint, name, nodes, parameters))
    yield from wrong or _inconsistencies(joint, kind, nodes)
    known = {*(parameter.name for parameter in parameters), *NAMES, "actuator"}
    for given, node in nodes.items():
        if given and given not in known:
            problem = f"is not a parameter of actuator '{name}'"
            element = f"{_control_title(joint)} <param name>"
            remedy = suggest(given, known, "known")
            yield Fault(node.line, element, given, problem, remedy, "warning")


def _constant_faults(
    joint: Node, actuator: str, nodes: dict[str, Node], parameters: tuple[Parameter, ...]
) -> Iterator[Fault]:
    """Yield the constants that are missing, unreadable or out of range."""
    for parameter in parameters:
        element = f"{_control_title(joint)} <param {parameter.name}>"
        node = nodes.get(parameter.name)
        if node is not None:
            wrong = unreadable(node.text) or _out_of_range(parameter, float(node.text))
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
    title_ = _control_title(joint)
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


def _out_of_range(parameter: Parameter, value: float) -> tuple[str, str] | None:
    """Return problem and remedy of a number beyond its parameter's range, else None."""
    try:
        parameter.check(parameter.name, value)
    except InvalidValue:
        return "is out of range", f"allowed: {parameter.range_text} {parameter.unit}"
    return None


def _control_title(joint: Node) -> str:
    """Return ``<ros2_control> joint 'R2'``: to distinguish it from the robot's joint."""
    return f"<ros2_control> {title(joint)}"


def _names_motors(block: Node) -> bool:
    """Return whether a driver of this package reads the block."""
    return "driver" in _params(*block.find_all("hardware")) or any(
        "motor" in _params(joint) for joint in block.find_all("joint")
    )


def _params(*nodes: Node) -> dict[str, Node]:
    found = {p.get("name") or "": p for node in nodes for p in reversed(node.find_all("param"))}
    return {name: node for name, node in found.items() if name}


def bus_faults(_robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield the faults of ``driver``, ``port`` and ``baud`` of the hardware."""
    params = _params(*block.find_all("hardware")) if _names_motors(block) else {}
    for name in ("driver", "port"):
        node = params.get(name)
        if node and not node.text:
            remedy = "write it or remove the param"
            yield Fault(node.line, _hardware_element(name), "", "the value is empty", remedy)
    driver, known = params.get("driver"), plugins.registered_names("drivers")
    if driver and driver.text and driver.text not in known:
        problem = "is not a driver that is installed"
        remedy = suggest(driver.text, known, "known")
        yield Fault(
            driver.line, _hardware_element("driver"), driver.text, problem, remedy, "warning"
        )
    baud = params.get("baud")
    wrong = _wrong_number(baud, BAUD) if baud else None
    if baud and wrong:
        yield Fault(baud.line, _hardware_element("baud"), baud.text, *wrong)


def motor_faults(robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield the joints without a motor or its id, and numbers out of range."""
    for joint in block.find_all("joint") if _names_motors(block) else ():
        title_, params = _control_title(joint), _params(joint)
        mimic = _is_mimic(robot, joint.get("name") or "")
        for name in () if mimic else ("id", "motor"):
            if name not in params or not params[name].text:
                line = params[name].line if name in params else joint.line
                problem, remedy = f"{name} is missing: no driver finds the motor", REMEDIES[name]
                yield Fault(line, f"{title_} <param {name}>", "", problem, remedy, "warning")
        for parameter in NUMBERS:
            node = params.get(parameter.name)
            wrong = _wrong_number(node, parameter) if node and node.text else None
            if node and wrong:
                yield Fault(node.line, f"{title_} <param {parameter.name}>", node.text, *wrong)


def repeated_id_faults(_robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield the joints whose motor id another joint of the block already has."""
    owners: dict[int, Node] = {}
    for joint in block.find_all("joint") if _names_motors(block) else ():
        node = _params(joint).get("id")
        number = parse_number(node.text) if node else None
        if node is None or number is None or number % 1:
            continue
        other = owners.setdefault(int(number), joint)
        if other is not joint:
            problem = f"is the motor of {_control_title(other)} too, on line {other.line}"
            remedy = "give each motor of the bus a different id"
            yield Fault(
                node.line, f"{_control_title(joint)} <param id>", node.text, problem, remedy
            )


def _wrong_number(node: Node, parameter: Parameter) -> tuple[str, str] | None:
    """Return problem and remedy of text that is not a number in range, an id or a sign."""
    wrong = unreadable(node.text) or _out_of_range(parameter, float(node.text))
    if wrong:
        return wrong
    value = float(node.text)
    if parameter.name == "sign" and abs(value) != 1:
        return "is neither 1 nor -1", "1 if motor and joint turn in the same direction, else -1"
    if parameter.name in {"id", "baud"} and value % 1:
        return "is not a whole number", "write a whole number"
    return None


def _hardware_element(name: str) -> str:
    return f"<ros2_control> <hardware> <param {name}>"
