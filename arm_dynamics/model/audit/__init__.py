"""Audit of a robot description: all faults in one report, each with its line and remedy.

URDF loaders accept much that is broken (negative masses, NaN text, two parents, a zero axis)
and stop at the first of the rest. This audit reads the text alone and reports all of it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from arm_dynamics.model.audit import (
    distal_inertia,
    files,
    inertia,
    joints,
    numbers,
    proportion,
    ros2_control,
    structure,
)
from arm_dynamics.model.audit.fault import Fault, UrdfRejected, format_report, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import XmlSyntaxError, parse_xml

__all__ = ["Fault", "UrdfRejected", "audit_urdf", "format_report"]


def audit_urdf(
    text: str, folder: Path | None = None, lock: Collection[str] = ()
) -> tuple[Fault, ...]:
    """Return all faults of a URDF, sorted by line; empty for a sound one.

    ``folder`` is where relative mesh paths start and packages are looked for; ``lock`` names
    joints that will be held still, which count as fixed. Raises nothing: text that is not XML
    is a fault too.
    """
    try:
        root = parse_xml(text)
    except XmlSyntaxError as error:
        return (Fault(error.line, "XML", "", error.problem, error.remedy),)
    if root.tag != "robot":
        problem = "is not a URDF's root element"
        return (Fault(root.line, title(root), root.tag, problem, 'write <robot name="…">'),)
    robot = Robot(root, frozenset(lock))
    with np.errstate(all="ignore"):  # very large numbers may overflow
        found = [fault for rule in _RULES for fault in rule(robot)]
    found += files.check(robot, folder)
    return tuple(sorted(found, key=lambda fault: fault.line))


_RULES = (
    structure.check,
    numbers.check,
    inertia.check,
    distal_inertia.check,
    proportion.check,
    joints.check,
    ros2_control.check,
)
