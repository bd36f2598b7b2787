"""Joints: one coordinate each, an axis, limits, and friction that does not drive."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, inf

from arm_dynamics.model.audit.fault import Fault, Severity, suggest, title
from arm_dynamics.model.audit.numbers import number_attribute, parse_number, vector_attribute
from arm_dynamics.model.audit.robot import (
    KINDS,
    MANY_COORDINATES,
    ONE_COORDINATE,
    Robot,
    mimicked,
)
from arm_dynamics.model.xml_source import Node

_UNIT_TOLERANCE = 1e-6
MAX_JOINTS = 128
"""Pinocchio's data grow with the cube of the joints: 0.15 GB for these, 8 GB for 500."""


def mobility_faults(robot: Robot) -> Iterator[Fault]:
    """Yield unknown names of locked joints, and a robot with too few or too many moving joints."""
    element, line = title(robot.root), robot.root.line
    for name in sorted(set(robot.lock) - set(robot.joints)):
        remedy = suggest(name, robot.joints, "the joints are")
        problem = "is to be locked, and is not a joint of this robot"
        yield Fault(line, element, name, problem, remedy)
    moving = sum(robot.moves(joint) for joint in robot.all_joints)
    if robot.all_links and not moving:
        remedy = f"an arm has a joint that is {' or '.join(ONE_COORDINATE)}, and not locked"
        yield Fault(line, element, "", "it has no moving joint", remedy)
    if moving > MAX_JOINTS:
        problem = f"are more moving joints than the {MAX_JOINTS} whose equations fit into memory"
        yield Fault(line, element, str(moving), problem, "lock some, or make them fixed")


def joint_type_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield a type that is missing, unknown, or has several coordinates."""
    kind, element = joint.get("type"), f"{title(joint)} type"
    if not kind:
        yield Fault(joint.line, element, "", "the type is missing", f"allowed: {', '.join(KINDS)}")
    elif kind in MANY_COORDINATES and not robot.locked(joint):
        problem = "has several coordinates, and an arm's joint has one"
        remedy = f"allowed: {', '.join(KINDS)}; or lock the joint"
        yield Fault(joint.line, element, kind, problem, remedy)
    elif kind not in (*KINDS, *MANY_COORDINATES):
        remedy = suggest(kind, KINDS, "allowed")
        yield Fault(joint.line, element, kind, "is not a joint type", remedy)


def axis_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield an axis that is missing, zero, or not a unit vector."""
    axis = joint.find("axis")
    if axis is None and robot.moves(joint):
        problem, remedy = "the axis is missing: 1 0 0 is assumed", 'write <axis xyz="…"/>'
        yield Fault(joint.line, f"{title(joint)} <axis>", "", problem, remedy, "warning")
    xyz = vector_attribute(axis, "xyz")
    if axis is None or xyz is None or joint.get("type") not in (*ONE_COORDINATE, "planar"):
        return
    element, text, length = f"{title(joint)} <axis xyz>", axis.get("xyz") or "", hypot(*xyz)
    if length == 0:
        yield Fault(axis.line, element, text, "has no direction", "write one, such as 0 0 1")
    elif abs(length - 1) > _UNIT_TOLERANCE:
        problem = f"has length {length:.6g} and is normalized"
        yield Fault(axis.line, element, text, problem, "write a unit vector", "warning")


def limit_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield position limits that are missing or leave no range."""
    limit, kind = joint.find("limit"), joint.get("type")
    if kind not in {"revolute", "prismatic"}:
        return
    if limit is None:
        remedy = "add <limit lower upper effort velocity/>"
        if kind == "revolute":
            remedy += ", or make the joint continuous"
        yield Fault(joint.line, f"{title(joint)} <limit>", "", "<limit> is missing", remedy)
        return
    lower, upper = bounds(limit)
    element, text = f"{title(joint)} <limit lower>", limit.get("lower") or "0"
    if lower is None or upper is None or lower < upper:
        return
    if lower > upper:
        problem = f"is above upper {limit.get('upper') or 0}"
        yield Fault(limit.line, element, text, problem, "swap or correct them")
    else:
        problem, remedy = "is also upper: the joint cannot move", "widen it, or make it fixed"
        yield Fault(limit.line, element, text, problem, remedy, "warning")


def effort_and_velocity_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield effort and velocity limits that are missing, negative or zero.

    A kinematic arm needs none of them: missing ones are unlimited. A mimic joint needs none either.
    """
    limit = joint.find("limit")
    if limit is None or mimicked(joint) is not None:
        return
    for attribute in ("effort", "velocity"):
        element, text = f"{title(joint)} <limit {attribute}>", limit.get(attribute)
        value = number_attribute(limit, attribute)
        remedy = "write the motor's limit, above 0 (exporters write 0 or -1 for an unknown one)"
        if text is None:
            remedy = f'write {attribute}="…", above 0'
            severity: Severity = "warning" if robot.is_kinematic else "error"
            yield Fault(limit.line, element, "", f"{attribute} is missing", remedy, severity)
        elif value is not None and value < 0:
            yield Fault(limit.line, element, text, "is negative", remedy)
        elif value == 0 and joint.get("type") != "fixed":
            problem = "is zero: the joint cannot be driven"
            yield Fault(limit.line, element, text, problem, remedy, "warning")


def friction_faults(_robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield negative damping and friction."""
    dynamics = joint.find("dynamics")
    for attribute in ("damping", "friction"):
        value = number_attribute(dynamics, attribute)
        if dynamics and value is not None and value < 0:
            element, text = f"{title(joint)} <dynamics {attribute}>", dynamics.get(attribute) or ""
            problem = "is negative: it would drive the joint"
            yield Fault(dynamics.line, element, text, problem, "write a value of at least 0")


def initial_position(joint: Node, control: Node | None) -> float:
    """Return the ``initial_value`` [rad or m], else zero moved into the position limits.

    ``control`` is the joint's element in ``<ros2_control>``.
    """
    for state in control.find_all("state_interface") if control else ():
        for param in state.find_all("param") if state.get("name") == "position" else ():
            if param.get("name") == "initial_value":
                return parse_number(param.text) or 0.0
    lower, upper = (
        (None, None) if joint.get("type") == "continuous" else bounds(joint.find("limit"))
    )
    return min(max(0.0, -inf if lower is None else lower), inf if upper is None else upper)


def bounds(limit: Node | None) -> tuple[float | None, float | None]:
    """Return lower and upper limit: 0 if absent, as URDF defines; None if unreadable."""
    if limit is None:
        return None, None
    low, high = (
        0.0 if limit.get(end) is None else number_attribute(limit, end)
        for end in ("lower", "upper")
    )
    return low, high
