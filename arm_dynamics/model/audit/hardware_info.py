"""The motors of a ``<ros2_control>`` block, each with its own id, and the port of their bus.

Checked if ``<hardware>`` names a ``driver`` or a joint names a ``motor``: blocks of other programs
have an ``id`` and an ``offset`` with other meanings.
"""

from __future__ import annotations

from collections.abc import Iterator

from arm_dynamics.core import plugins
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.audit.actuator import control_title, out_of_range
from arm_dynamics.model.audit.fault import Fault, suggest
from arm_dynamics.model.audit.numbers import parse_number, unreadable
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.hardware_info import NUMBERS
from arm_dynamics.model.xml_source import Node

BAUD = Parameter("baud", 1e6, "1/s", "rate of the serial line", above=0)


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
            yield Fault(node.line, _element(name), "", "the value is empty", remedy)
    driver, known = params.get("driver"), plugins.registered_names("drivers")
    if driver and driver.text and driver.text not in known:
        problem = "is not a driver that is installed"
        remedy = suggest(driver.text, known, "known")
        yield Fault(driver.line, _element("driver"), driver.text, problem, remedy, "warning")
    baud = params.get("baud")
    wrong = _wrong_number(baud, BAUD) if baud else None
    if baud and wrong:
        yield Fault(baud.line, _element("baud"), baud.text, *wrong)


def motor_faults(_robot: Robot, block: Node) -> Iterator[Fault]:
    """Yield the joints without a motor or its id, and numbers out of range."""
    for joint in block.find_all("joint") if _names_motors(block) else ():
        title, params = control_title(joint), _params(joint)
        for name in ("id", "motor"):
            if name not in params or not params[name].text:
                line = params[name].line if name in params else joint.line
                problem, remedy = f"{name} is missing: no driver finds the motor", _REMEDIES[name]
                yield Fault(line, f"{title} <param {name}>", "", problem, remedy, "warning")
        for parameter in NUMBERS:
            node = params.get(parameter.name)
            wrong = _wrong_number(node, parameter) if node and node.text else None
            if node and wrong:
                yield Fault(node.line, f"{title} <param {parameter.name}>", node.text, *wrong)


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
            problem = f"is the motor of {control_title(other)} too, on line {other.line}"
            remedy = "give each motor of the bus a different id"
            yield Fault(node.line, f"{control_title(joint)} <param id>", node.text, problem, remedy)


def _wrong_number(node: Node, parameter: Parameter) -> tuple[str, str] | None:
    """Return problem and remedy of text that is not a number in range, an id or a sign."""
    wrong = unreadable(node.text) or out_of_range(parameter, float(node.text))
    if wrong:
        return wrong
    value = float(node.text)
    if parameter.name == "sign" and abs(value) != 1:
        return "is neither 1 nor -1", "1 if motor and joint turn in the same direction, else -1"
    if parameter.name in {"id", "baud"} and value % 1:
        return "is not a whole number", "write a whole number"
    return None


_REMEDIES = {
    "id": 'write <param name="id">…</param>, the number to which the motor replies',
    "motor": 'write <param name="motor">…</param>, the manufacturer\'s model name',
}


def _element(name: str) -> str:
    return f"<ros2_control> <hardware> <param {name}>"
