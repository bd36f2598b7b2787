"""The wiring of a ``<ros2_control>`` block: motors that exist once, and a port to find them on.

Checked where ``<hardware>`` names a ``driver`` or a joint a ``motor``: blocks that other
programs read have an ``id`` and an ``offset`` of their own making.
"""

from __future__ import annotations

from collections.abc import Iterator

from arm_dynamics.core import plugins
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.audit.actuator import control_title, outside
from arm_dynamics.model.audit.fault import Fault, suggest
from arm_dynamics.model.audit.numbers import parse_number, unreadable
from arm_dynamics.model.hardware_info import NUMBERS
from arm_dynamics.model.xml_source import Node

BAUD = Parameter("baud", 1e6, "1/s", "rate of the serial line", above=0)


def check(block: Node) -> Iterator[Fault]:
    """Yield the faults of the hardware's params and of every joint's motor."""
    hardware = _params(*block.find_all("hardware"))
    joints = [(joint, _params(joint)) for joint in block.find_all("joint")]
    wired = [(joint, params) for joint, params in joints if "motor" in params]
    if "driver" not in hardware and not wired:
        return
    yield from _hardware(hardware)
    owners: dict[int, Node] = {}
    for joint, params in joints:
        yield from _motor(joint, params)
        yield from _doubled(joint, params.get("id"), owners)


def _params(*nodes: Node) -> dict[str, Node]:
    found = {p.get("name") or "": p for node in nodes for p in reversed(node.find_all("param"))}
    return {name: node for name, node in found.items() if name}


def _hardware(params: dict[str, Node]) -> Iterator[Fault]:
    for name in ("driver", "port"):
        node = params.get(name)
        if node and not node.text:
            yield Fault(node.line, _element(name), "", "the value is empty", "write it or leave it")
    driver, known = params.get("driver"), plugins.registered_names("drivers")
    if driver and driver.text and driver.text not in known:
        problem = "is not a driver that is installed"
        remedy = suggest(driver.text, known, "known")
        yield Fault(driver.line, _element("driver"), driver.text, problem, remedy, "warning")
    baud = params.get("baud")
    wrong = _wrong(baud, BAUD) if baud else None
    if baud and wrong:
        yield Fault(baud.line, _element("baud"), baud.text, *wrong)


def _motor(joint: Node, params: dict[str, Node]) -> Iterator[Fault]:
    title = control_title(joint)
    for name in ("id", "motor"):
        if name not in params or not params[name].text:
            line = params[name].line if name in params else joint.line
            problem, remedy = f"{name} is missing: no driver finds the motor", _REMEDIES[name]
            yield Fault(line, f"{title} <param {name}>", "", problem, remedy, "warning")
    for parameter in NUMBERS:
        node = params.get(parameter.name)
        wrong = _wrong(node, parameter) if node and node.text else None
        if node and wrong:
            yield Fault(node.line, f"{title} <param {parameter.name}>", node.text, *wrong)


def _doubled(joint: Node, node: Node | None, owners: dict[int, Node]) -> Iterator[Fault]:
    number = parse_number(node.text) if node else None
    if node is None or number is None or number % 1:
        return
    other = owners.setdefault(int(number), joint)
    if other is not joint:
        problem = f"is the motor of {control_title(other)} too, on line {other.line}"
        remedy = "give each motor of the bus an id of its own"
        yield Fault(node.line, f"{control_title(joint)} <param id>", node.text, problem, remedy)


def _wrong(node: Node, parameter: Parameter) -> tuple[str, str] | None:
    """Problem and remedy of a number that is none, out of range, or no id or sign."""
    wrong = unreadable(node.text) or outside(parameter, float(node.text))
    if wrong:
        return wrong
    value = float(node.text)
    if parameter.name == "sign" and abs(value) != 1:
        return "is neither 1 nor -1", "1 where motor and joint turn alike, else -1"
    if parameter.name in {"id", "baud"} and value % 1:
        return "is not a whole number", "write a whole number"
    return None


_REMEDIES = {
    "id": 'write <param name="id">…</param>, the number that the motor answers to',
    "motor": 'write <param name="motor">…</param>, the maker\'s name of its model',
}


def _element(name: str) -> str:
    return f"<ros2_control> <hardware> <param {name}>"
