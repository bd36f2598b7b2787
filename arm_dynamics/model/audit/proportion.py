"""Proportion: degrees, millimeters and grams where radians, meters and kilograms are expected.

A body of mass m [kg] and of any material has a principal moment of at least that of a ball of
the densest metal, 0.4 m r² with r = (3 m / (4 π ρ))^(1/3). Its largest radius of gyration,
sqrt(I / m), is less than its extent. All these faults are warnings: the numbers are readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import degrees, hypot, pi, radians, sqrt

import numpy as np

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.inertia import POINT, mass_of, tensor_of
from arm_dynamics.model.audit.numbers import number_attribute, vector_attribute
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import Node

MAX_LIMIT = 4 * pi
"""Limit [rad] of a revolute joint beyond which degrees are likely: two turns."""
MAX_DEGREES = 3600.0
"""Limit of a revolute joint beyond which it means a continuous joint."""
MAX_ORIGIN_ANGLE = 2 * pi
"""Angle [rad] of an origin beyond which degrees are likely: one turn."""
MAX_LENGTH = 10.0
"""Length [m] of a part of an arm beyond which millimeters are likely."""
GRAMS = ((500.0, 200.0), (20.0, 2000.0))
"""Mass [kg] of a moving link, and mass over the cube of the reach [kg/m³] of its arm: beyond both,
grams are likely. Arms from 0.6 to 1200 kg have 10 to 40 kg/m³."""
DENSEST = 22_600.0
"""Density [kg/m³] of osmium."""
MIN_EXTENT = 0.3
"""Smallest extent [m] of an arm that is assumed."""

_warning = partial(Fault, severity="warning")


def limit_unit_faults(robot: Robot, joint: Node) -> Iterator[Fault]:
    """Yield a warning for a position limit that is likely in degrees or millimeters."""
    limit, kind = joint.find("limit"), joint.get("type")
    values = {end: number_attribute(limit, end) or 0.0 for end in ("lower", "upper")}
    end = max(values, key=lambda name: abs(values[name]))
    value = values[end]
    if limit is None or not robot.moves(joint):
        return
    element, text = f"{title(joint)} <limit {end}>", limit.get(end) or ""
    if kind == "revolute" and abs(value) > MAX_LIMIT:
        problem = f"[rad] is {abs(value) / (2 * pi):.3g} turns"
        remedy = f"write radians ({value:g}° are {radians(value):.6g} rad)"
        if abs(value) > MAX_DEGREES:
            remedy = "make the joint continuous, or write its limit"
        yield _warning(limit.line, element, text, problem, remedy)
    elif kind == "prismatic" and abs(value) > MAX_LENGTH:
        yield _warning(limit.line, element, text, *_long(value))


def origin_unit_faults(_robot: Robot, owner: Node) -> Iterator[Fault]:
    """Yield a warning for each origin of a link or joint likely in millimeters or degrees."""
    for node in (node for node in owner.walk() if node.tag == "origin"):
        xyz, rpy = vector_attribute(node, "xyz"), vector_attribute(node, "rpy")
        if xyz and hypot(*xyz) > MAX_LENGTH:
            element = f"{title(owner)} <origin xyz>"
            yield _warning(node.line, element, node.get("xyz") or "", *_long(hypot(*xyz)))
        turn = max(map(abs, rpy)) if rpy else 0.0
        if turn > MAX_ORIGIN_ANGLE + 1e-3:
            problem = f"[rad] turns by {degrees(turn):.4g}°"
            remedy = f"write radians ({turn:g}° are {radians(turn):.6g} rad)"
            element = f"{title(owner)} <origin rpy>"
            yield _warning(node.line, element, node.get("rpy") or "", problem, remedy)


def _long(value: float) -> tuple[str, str]:
    problem = f"[m] is a length of {abs(value):.4g} m"
    return problem, f"write meters ({value:.4g} mm are {1e-3 * value:.4g} m)"


def mass_unit_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for each mass of a moving link that is likely in grams."""
    masses = [(link, mass_of(link) or 0.0) for link in moving_links(robot)]
    extent, total = _extent(robot), sum(value for _, value in masses)
    # The size of an arm without an extent is unknown: only the larger mass counts.
    density = total / extent / extent / extent if extent > 0 else GRAMS[1][1]
    for link, value in masses:
        inertial = link.find("inertial")
        mass = inertial.find("mass") if inertial else None
        if mass and any(value > heavy and density > dense for heavy, dense in GRAMS):
            problem = (
                f"[kg] is {value:.4g} kg of an arm of {total:.4g} kg that extends {extent:.3g} m"
            )
            remedy = f"write kilograms ({value:.4g} g are {1e-3 * value:.4g} kg)"
            element = f"{title(link)} <mass value>"
            yield _warning(mass.line, element, mass.get("value") or "", problem, remedy)


def gyration_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for each tensor of a moving link that is out of proportion to its mass.

    It is below that of the densest ball, or has too large a radius of gyration.
    """
    extent = _extent(robot)
    for link in moving_links(robot):
        inertial, mass = link.find("inertial"), mass_of(link) or 0.0
        node = inertial.find("inertia") if inertial else None
        tensor = tensor_of(node)
        if node is None or tensor is None or mass <= 0 or float(np.abs(tensor).max()) < POINT:
            continue
        largest = float(np.linalg.eigvalsh(tensor)[-1])
        least = 0.4 * mass * (3 * mass / (4 * pi * DENSEST)) ** (2 / 3)
        gyration = sqrt(max(largest, 0.0) / mass)
        if largest < least:
            problem = (
                f"[kg·m²] is its largest principal moment, for {mass:.4g} kg: a ball of the"
                f" densest metal has {least:.3g}"
            )
        elif extent > 0 and gyration > max(extent, MIN_EXTENT):
            problem = (
                f"[kg·m²] is its largest principal moment, for {mass:.4g} kg: a radius of gyration"
                f" of {gyration:.3g} m in an arm that extends {extent:.3g} m"
            )
        else:
            continue
        remedy = "compute the tensor about the center of mass in kg·m², and the mass in kg"
        yield _warning(node.line, f"{title(link)} <inertia>", f"{largest:.4g}", problem, remedy)


def moving_links(robot: Robot) -> list[Node]:
    """Return the links below moving joints, each once."""
    bodies = (robot.body(edge.child) for edge in robot.edges if robot.moves(edge.joint))
    return [robot.links[name] for name in dict.fromkeys(n for body in bodies for n in body)]


def _extent(robot: Robot) -> float:
    """Return an upper bound of the reach [m]: the longest chain, and centers of mass."""
    reach: dict[str, float] = {}
    for link in robot.links:
        chain, at = dict[str, None](), link
        while at not in reach and at not in chain and at in robot.parent_joint:
            chain[at] = None
            at = robot.parent_joint[at].parent
        reach.setdefault(at, 0.0)
        for name in reversed(chain):
            edge = robot.parent_joint[name]
            travel = 0.0
            if edge.joint.get("type") == "prismatic":
                limit = edge.joint.find("limit")
                travel = max(abs(number_attribute(limit, e) or 0.0) for e in ("lower", "upper"))
            length = _length(edge.joint.find("origin")) + travel
            reach[name] = reach.get(edge.parent, 0.0) + length
    for name, node in robot.links.items():
        inertial = node.find("inertial")
        reach[name] += _length(inertial.find("origin")) if inertial else 0.0
    return max(reach.values(), default=0.0)


def _length(origin: Node | None) -> float:
    return hypot(*(vector_attribute(origin, "xyz") or (0.0,)))
