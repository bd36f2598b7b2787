"""The ``<ros2_control>`` block: joints that exist, their commands and initial values."""

from __future__ import annotations

from collections.abc import Iterator

from arm_dynamics.model.audit.actuator import control_title
from arm_dynamics.model.audit.fault import Fault, Severity, listed, suggest, title
from arm_dynamics.model.audit.joints import bounds
from arm_dynamics.model.audit.numbers import parse_number, unreadable
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import Node

OWN_PLUGIN = "topic_based_ros2_control/"
"""Hardware of ros2_control whose topics the simulator has."""
COMMANDS = ("effort", "voltage", "position", "velocity")


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
        seen.setdefault(name, joint.line)
    for joint in robot.all_joints if blocks else ():
        if robot.moves(joint) and joint.get("name") not in seen:
            problem = "it is not in <ros2_control>: it gets an ideal actuator"
            yield Fault(joint.line, title(joint), "", problem, "add it to the block", "warning")


def plugin_faults(_robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield a warning for a plugin of another program in a block without a driver."""
    for hardware in block.find_all("hardware"):
        plugin = hardware.find("plugin")
        driven = any(param.get("name") == "driver" for param in hardware.find_all("param"))
        if plugin and plugin.text and not driven and not plugin.text.startswith(OWN_PLUGIN):
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
            element = f"{control_title(joint)} <command_interface name>"
            problem, remedy = "is not a command of an arm's joint", ", ".join(COMMANDS)
            yield Fault(node.line, element, name, problem, f"allowed: {remedy}", severity)


def initial_position_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield initial values that are not numbers, and positions outside the limits."""
    params = [(s.get("name"), p) for s in joint.find_all("state_interface") for p in s.children]
    element = f"{control_title(joint)} <param initial_value>"
    for interface, param in params:
        if param.tag != "param" or param.get("name") != "initial_value":
            continue
        wrong, value = unreadable(param.text), parse_number(param.text)
        if wrong:
            yield Fault(param.line, element, param.text, *wrong)
        target = robot.joints.get(joint.get("name") or "")
        if interface != "position" or not target or target.get("type") == "continuous":
            continue
        lower, upper = bounds(target.find("limit"))
        if value is None or lower is None or upper is None or lower <= value <= upper:
            continue
        problem, remedy = "is outside the limits", f"choose one from {lower:g} to {upper:g}"
        yield Fault(param.line, element, param.text, problem, remedy)
