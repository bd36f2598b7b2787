"""Mimic joints: q = multiplier q_driven + offset, with the driven joint of ``<mimic joint>``.

A mimic joint of a mimic joint has the driven joint of that one. The position limits of both joints
hold, and the velocity limit of a mimic joint where it is above 0; its effort limit has no meaning.
A mimic joint whose driven joint is locked is locked too.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from arm_dynamics.model.audit.fault import Fault, suggest, title
from arm_dynamics.model.audit.joints import bounds
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Robot, mimicked
from arm_dynamics.model.xml_source import Node


class MimicJoint(NamedTuple):
    """A joint at multiplier q + offset [rad or m], with the position q of its driven ``joint``."""

    name: str
    kind: str
    joint: str
    multiplier: float
    offset: float

    def driven_range(self, lower: float, upper: float) -> tuple[float, float]:
        """Return the positions [rad or m] of the driven joint for limits of this one."""
        ends = (lower - self.offset) / self.multiplier, (upper - self.offset) / self.multiplier
        return min(ends), max(ends)


def mimic_joint(robot: Robot, name: str) -> MimicJoint | None:
    """Return a mimic joint with the joint that it follows in the end, which may be locked.

    None for another joint, and for one with a fault.
    """
    at, multiplier, offset, passed = name, 1.0, 0.0, set[str]()
    while (leader := mimicked(robot.joints[at])) is not None:
        if at in robot.lock and leader not in robot.locked_names:
            break  # locked alone, at its initial position
        node, passed = robot.joints[at].find("mimic"), {*passed, at}
        factor, shift = number_attribute(node, "multiplier"), number_attribute(node, "offset")
        offset += multiplier * (shift or 0.0)
        multiplier *= 1.0 if factor is None else factor
        if leader in passed or leader not in robot.joints or not multiplier:
            return None
        at = leader
    kind = robot.joints[name].get("type") or ""
    if not passed or robot.joints[at].get("type") not in ONE_COORDINATE:
        return None
    return MimicJoint(name, kind, at, multiplier, offset)


def mimic_joints(robot: Robot) -> dict[str, MimicJoint]:
    """Return the mimic joints that move and have no fault, by name."""
    moving = (n for n, node in robot.joints.items() if mimicked(node) is not None)
    found = (mimic_joint(robot, n) for n in moving if robot.moves(robot.joints[n]))
    return {mimic.name: mimic for mimic in found if mimic}


def mimic_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield a driven joint that is missing, unknown or fixed, a circle, and a multiplier of 0."""
    leader, name, mimic = mimicked(joint), joint.get("name") or "", joint.find("mimic")
    if leader is None or mimic is None or robot.locked(joint):
        return
    element, remedy = f"{title(joint)} <mimic joint>", f"lock '{name}', or make it fixed"
    if not leader:
        yield Fault(mimic.line, element, "", "the driven joint is missing", 'write joint="…"')
    elif leader not in robot.joints:
        known = suggest(leader, robot.joints, "the joints are")
        yield Fault(mimic.line, element, leader, "is not a joint of this robot", known)
    elif robot.joints[leader].get("type") not in ONE_COORDINATE:
        yield Fault(mimic.line, element, leader, "has no position that can be followed", remedy)
    elif circle := _circle(robot, name):
        problem = f"follows this joint: {' → '.join((*circle, name))}"
        yield Fault(mimic.line, element, leader, problem, f"remove one <mimic>, or {remedy}")
    elif _moves(robot, joint, leader):
        problem = "is behind this joint, which cannot follow it"
        yield Fault(mimic.line, element, leader, problem, remedy)
    if number_attribute(mimic, "multiplier") == 0:
        element, text = f"{title(joint)} <mimic multiplier>", mimic.get("multiplier") or ""
        yield Fault(mimic.line, element, text, "is zero: the joint cannot move", remedy)


def _circle(robot: Robot, name: str) -> tuple[str, ...]:
    """Return joint ``name``, the one it follows, and so on, if the last one follows the first."""
    at, passed = name, dict[str, None]()
    while at in robot.joints and at not in passed:
        passed[at] = None
        at = mimicked(robot.joints[at]) or ""
    return tuple(passed) if at == name else ()


def _moves(robot: Robot, joint: Node, name: str) -> bool:
    """Return whether ``joint`` moves the joint that joint ``name`` follows in the end."""
    followed = mimic_joint(robot, joint.get("name") or "")
    ends = {edge.joint.get("name"): edge.child for edge in robot.edges}
    links = ends.get(joint.get("name")), ends.get(followed.joint if followed else name)
    return None not in links and robot.is_above(*map(str, links))


def mimic_range_faults(robot: Robot) -> Iterator[Fault]:
    """Yield driven joints whose limits and those of their mimic joints exclude each other."""
    followers: dict[str, list[str]] = {}
    for mimic in mimic_joints(robot).values():
        followers.setdefault(mimic.joint, []).append(mimic.name)
    for name, names in followers.items():
        joint, (lower, upper) = robot.joints[name], driven_range(robot, name)
        valid = all(low <= high for low, high in (_range(robot.joints[n]) for n in (name, *names)))
        if lower > upper and valid:
            problem = f"no position is within its limits and those of its mimic joints {names}"
            remedy = "correct limits, multipliers or offsets"
            yield Fault(joint.line, f"{title(joint)} <limit>", "", problem, remedy)


def driven_range(robot: Robot, name: str) -> tuple[float, float]:
    """Return the positions [rad or m] of joint ``name`` within its limits and its followers'."""
    lower, upper = _range(robot.joints[name])
    for mimic in mimic_joints(robot).values():
        if mimic.joint == name:
            low, high = mimic.driven_range(*_range(robot.joints[mimic.name]))
            lower, upper = max(lower, low), min(upper, high)
    return lower, upper


def _range(joint: Node) -> tuple[float, float]:
    """Return the position limits [rad or m], infinite where they cannot be read."""
    lower, upper = bounds(joint.find("limit"))
    if joint.get("type") == "continuous" or joint.find("limit") is None:
        return -inf, inf
    return -inf if lower is None else lower, inf if upper is None else upper
