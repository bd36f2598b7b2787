"""Numbers in text: those of links, joints and materials are finite and have no units.

This rule reports unreadable numbers; the other rules read with ``number_attribute`` and
``vector_attribute`` and skip None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import isfinite

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import Node

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ALONE = re.compile(_NUMBER, re.ASCII)
_COMMA = re.compile(r"[-+.\deE]*(?:,[-+.\deE]*)+", re.ASCII)
_UNIT = re.compile(rf"({_NUMBER})\s*([^\W\d_]+|[°%])", re.ASCII)
BLANKS = " \t\r\n"
"""White space of XML; Python strips and splits at others too, unlike other readers of the file."""
_WORD = re.compile(f"[^{BLANKS}]+")
MAX_NUMBER = 1e12
"""Largest length [m], mass [kg] and tensor entry [kg m^2] of an arm; products may overflow."""
_NOT_FINITE = {"nan", "inf", "infinity"}

# element → attribute → how many numbers
_COUNTS: dict[str, dict[str, int]] = {
    "origin": {"xyz": 3, "rpy": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "axis": {"xyz": 3},
    "limit": {"lower": 1, "upper": 1, "effort": 1, "velocity": 1},
    "dynamics": {"damping": 1, "friction": 1},
    "calibration": {"rising": 1, "falling": 1},
    "safety_controller": dict.fromkeys(
        ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"), 1
    ),
    "mimic": {"multiplier": 1, "offset": 1},
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
    "mesh": {"scale": 3},
    "color": {"rgba": 4},
}
_REQUIRED = {"mass", "inertia", "axis", "box", "cylinder", "capsule", "sphere", "color"}
_BOUNDED = {"origin", "mass", "inertia"}
_SIZES = {"box", "cylinder", "capsule", "sphere"}


@lru_cache(maxsize=100_000)  # every rule reads the same texts
def parse_number(text: str | None) -> float | None:
    """Return the finite number that ``text`` is, or None."""
    if text is None or not _ALONE.fullmatch(text.strip(BLANKS)):
        return None
    value = float(text)
    return value if isfinite(value) else None


def number_attribute(node: Node | None, attribute: str) -> float | None:
    """Return the finite number in an attribute, or None."""
    return parse_number(node.get(attribute)) if node else None


def vector_attribute(node: Node | None, attribute: str, count: int = 3) -> tuple[float, ...] | None:
    """Return ``count`` numbers of an attribute, all finite, or None."""
    text = (node.get(attribute) or "") if node else ""
    values = [parse_number(word) for word in (_words(text) if count > 1 else (text,))]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) == count else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def unreadable(text: str, count: int = 1) -> tuple[str, str] | None:
    """Return problem and remedy of text unless it is ``count`` numbers, all finite; else None."""
    words = _words(text) if count > 1 else [text.strip(BLANKS)]
    wrong = next((word for word in words if parse_number(word) is None), None)
    if wrong is not None and text.strip(BLANKS):
        return _unreadable_word(wrong)
    if not text.strip(BLANKS):
        return "the value is empty", f"write {'a number' if count == 1 else f'{count} numbers'}"
    if len(words) != count:
        return f"has {len(words)} numbers where {count} belong", f"write {count} numbers"
    return None


def number_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a fault for every number of a link, joint or material that cannot be read."""
    for owner in robot.root.children:
        if owner.tag in {"link", "joint", "material"}:
            for node in owner.walk():
                for attribute, count in _COUNTS.get(node.tag, {}).items():
                    yield from _attribute_faults(owner, node, attribute, count)


def _attribute_faults(owner: Node, node: Node, attribute: str, count: int) -> Iterator[Fault]:
    """Yield the fault of one attribute: missing, unreadable, out of range or with blanks."""
    values, text = vector_attribute(node, attribute, count), node.get(attribute)
    if text is None and node.tag not in _REQUIRED:
        return
    element = f"{title(owner)} <{node.tag} {attribute}>"
    if text is None:
        remedy = f'write {attribute}="{" ".join(["…"] * count)}"'
        yield Fault(node.line, element, "", f"{attribute} is missing", remedy)
    elif values is None:
        yield Fault(node.line, element, text.strip(), *(unreadable(text, count) or ("", "")))
    elif node.tag in _BOUNDED and attribute != "rpy" and max(map(abs, values)) > MAX_NUMBER:
        remedy = f"write at most {MAX_NUMBER:g}, in SI units"
        yield Fault(node.line, element, text, "is larger than any arm's", remedy)
    elif count == 1 and text != text.strip(BLANKS):
        problem = "has blanks around it: other readers of URDF take it for 0"
        yield Fault(node.line, element, text.strip(BLANKS), problem, "remove them", "warning")
    elif node.tag in _SIZES and min(values) < 0:
        yield Fault(node.line, element, text, "is negative", "a length is at least 0 m")


def _unreadable_word(word: str) -> tuple[str, str]:
    """Return problem and remedy of a word that is not a finite number."""
    unit = _UNIT.fullmatch(word)
    if word.lower().lstrip("+-") in _NOT_FINITE or _ALONE.fullmatch(word):
        return "is not finite", "write a finite number"
    if "${" in word or "$(" in word:
        return "is a xacro expression", "expand the file with xacro first"
    if _COMMA.fullmatch(word):
        return "has a comma", "write decimals with a point and put spaces between numbers"
    if unit:
        return f"has a unit, '{unit[2]}'", "write only the number, in SI units and radians"
    return "is not a number", "write a finite decimal number, in SI units and radians"
