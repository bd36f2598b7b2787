"""Links and joints of a description that may have any fault.

The first element of a name counts. Inconsistent elements are omitted; the rules report them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from arm_dynamics.model.xml_source import Node

REFLECTED = ("armature", "viscous_friction", "back_emf_damping", "breakaway_effort")
"""Attributes of an actuator at the joint, computed from its constants."""
ONE_COORDINATE = ("revolute", "continuous", "prismatic")
MANY_COORDINATES = ("floating", "planar")
KINDS = (*ONE_COORDINATE, "fixed")
_ZERO = re.compile(r"[+-]?0*\.?0*([eE][+-]?\d+)?")
DEFAULT_AXIS = (1.0, 0.0, 0.0)
"""Axis of a joint without ``<axis>``."""


@dataclass(frozen=True)
class Edge:
    """A joint whose parent and child links both exist."""

    joint: Node
    parent: str
    child: str


@dataclass(frozen=True)
class Robot:
    """The ``<robot>`` element, and the names of the joints that are locked."""

    root: Node
    lock: Collection[str] = ()

    @cached_property
    def all_links(self) -> tuple[Node, ...]:
        """Every ``<link>``, duplicates and nameless ones included."""
        return self.root.find_all("link")

    @cached_property
    def all_joints(self) -> tuple[Node, ...]:
        """Every ``<joint>``, duplicates and nameless ones included."""
        return self.root.find_all("joint")

    @cached_property
    def links(self) -> dict[str, Node]:
        """The first link of each name."""
        return _by_name(self.all_links)

    @cached_property
    def joints(self) -> dict[str, Node]:
        """The first joint of each name."""
        return _by_name(self.all_joints)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The joints that connect two links."""
        ends = ((joint, end(joint, "parent"), end(joint, "child")) for joint in self.all_joints)
        return tuple(
            Edge(joint, parent, child)
            for joint, parent, child in ends
            if parent in self.links and child in self.links
        )

    @cached_property
    def parent_joint(self) -> dict[str, Edge]:
        """The first joint above each link."""
        found: dict[str, Edge] = {}
        for edge in self.edges:
            found.setdefault(edge.child, edge)
        return found

    @cached_property
    def child_joints(self) -> dict[str, list[Edge]]:
        """The joints below each link."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.parent, []).append(edge)
        return found

    @cached_property
    def locked_names(self) -> frozenset[str]:
        """Names of the locked joints, and of the mimic joints that follow them."""
        names = set(self.lock)
        leaders = {name: mimicked(joint) for name, joint in self.joints.items()}
        while more := {name for name, leader in leaders.items() if leader in names} - names:
            names |= more
        return frozenset(names)

    def locked(self, joint: Node) -> bool:
        """Return whether the joint is locked, so that it counts as fixed."""
        return joint.get("name") in self.locked_names

    def moves(self, joint: Node) -> bool:
        """Return whether the joint has a coordinate that moves its child link."""
        return joint.get("type") in ONE_COORDINATE and not self.locked(joint)

    @cached_property
    def is_kinematic(self) -> bool:
        """Whether joints move links, and none of these has a mass other than 0."""
        moving = [n for e in self.edges if self.moves(e.joint) for n in self.body(e.child)]
        inertials = [one for n in moving for one in self.links[n].find_all("inertial")]
        masses = [mass.get("value") or "" for one in inertials for mass in one.find_all("mass")]
        return bool(moving) and all(_ZERO.fullmatch(mass.strip()) for mass in masses)

    def body(self, link: str) -> list[str]:
        """Return ``link`` and the links below it that fixed or locked joints attach to it."""
        members, seen = [link], {link}
        for member in members:
            for edge in self.child_joints.get(member, ()):
                rigid = edge.joint.get("type") == "fixed" or self.locked(edge.joint)
                if rigid and edge.child not in seen:
                    members.append(edge.child)
                    seen.add(edge.child)
        return members

    @cached_property
    def top(self) -> dict[str, str]:
        """The last link above each one: its root, or in a cycle one of the cycle's links."""
        found: dict[str, str] = {}
        for link in self.links:
            path, seen, at = [link], {link}, link
            while (
                at not in found
                and at in self.parent_joint
                and self.parent_joint[at].parent not in seen
            ):
                at = self.parent_joint[at].parent
                path.append(at)
                seen.add(at)
            found.update(dict.fromkeys(path, found.get(at, at)))
        return found

    def is_above(self, link: str, other: str) -> bool:
        """Return whether ``other`` is ``link`` or below it by first joints, from a cycle's top."""
        first, last = self._spans[link]
        return first <= self._spans[other][0] <= last

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Number of each link, counted from the tops down, and of the last one below it."""
        order, waiting, tops = [], list(dict.fromkeys(self.top.values())), {*self.top.values()}
        while waiting:
            link = waiting.pop()
            order.append(link)
            below = (
                edge
                for edge in self.child_joints.get(link, ())
                if self.parent_joint[edge.child] is edge
            )
            waiting += [edge.child for edge in below if edge.child not in tops]
        last = {link: number for number, link in enumerate(order)}
        for link in reversed(order):
            if link not in tops:
                above = self.parent_joint[link].parent
                last[above] = max(last[above], last[link])
        return {link: (number, last[link]) for number, link in enumerate(order)}


def mimicked(joint: Node) -> str | None:
    """Return the name of ``<mimic joint>`` of a joint with a coordinate, "" if missing, or None."""
    mimic = joint.find("mimic") if joint.get("type") in ONE_COORDINATE else None
    return None if mimic is None else mimic.get("joint") or ""


def end(joint: Node, which: str) -> str:
    """Return the name of the joint's ``parent`` or ``child`` link, "" if missing."""
    node = joint.find(which)
    return (node.get("link") or "") if node else ""


def _by_name(nodes: tuple[Node, ...]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in nodes:
        name = node.get("name")
        if name:
            found.setdefault(name, node)
    return found
