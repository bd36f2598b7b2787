"""Inertia: what moves has mass, and every tensor belongs to a possible body.

Principal moments I1 <= I2 <= I3 of a body: I1 >= 0 and I1 + I2 >= I3 (the triangle inequality,
with equality for a flat body). A zero tensor is a point mass; a thin rod has I1 = 0.
Source: Wensing, Kim and Slotine, "Linear Matrix Inequalities for Physically-Consistent Inertial
Parameter Identification", 2018.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.model.audit.fault import Fault, listed, title
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import Node

_TOLERANCE = 1e-9  # relative to the largest principal moment
POINT = 1e-15  # [kg m^2] smaller entries are rounding: a point mass
MIN_MASS = 1e-12
"""Mass [kg] below which a body's centre is lost in rounding."""
_REMEDY = "compute the tensor about the centre of mass; look for swapped entries and wrong units"

_THICKEN = "give the body a thickness: a rod of mass m and radius r has m r²/2 about its axis"


def check(robot: Robot) -> Iterator[Fault]:
    """Yield the faults of masses and inertia tensors."""
    for link in robot.all_links:
        inertial = link.find("inertial")
        if inertial:
            yield from _inertial(link, inertial)
    for edge in robot.edges:
        if robot.moves(edge.joint):
            yield from _weightless(robot, edge.child, edge.joint)
            yield from _point(robot, edge.child)
    yield from _base(robot)


def _inertial(link: Node, inertial: Node) -> Iterator[Fault]:
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    for tag, node in (("mass", mass), ("inertia", inertia)):
        if node is None:
            element = f"{title(link)} <inertial>"
            yield Fault(inertial.line, element, "", f"<{tag}> is missing", f"add <{tag} …/>")
    if mass:
        yield from _mass(link, mass, inertia)
    tensor = tensor_of(inertia)
    if inertia and tensor is not None:
        yield from _principal(link, inertia, tensor)


def _mass(link: Node, mass: Node, inertia: Node | None) -> Iterator[Fault]:
    value = number_attribute(mass, "value")
    element, text = f"{title(link)} <mass value>", mass.get("value") or ""
    if value is not None and value < 0:
        yield Fault(mass.line, element, text, "is negative", "give the mass in kg, above 0")
    elif value is not None and 0 < value < MIN_MASS:
        problem = f"is below {MIN_MASS:g} kg, where the centre of mass is lost in rounding"
        yield Fault(mass.line, element, text, problem, "write 0, or the mass in kg")
    elif _hollow(mass, inertia):
        problem = "is zero beside a rotational inertia"
        yield Fault(mass.line, element, text, problem, "give the mass in kg, above 0")


def _hollow(mass: Node | None, inertia: Node | None) -> bool:
    tensor = tensor_of(inertia)
    return number_attribute(mass, "value") == 0 and tensor is not None and bool(tensor.any())


def _principal(link: Node, inertia: Node, tensor: NDArray[np.float64]) -> Iterator[Fault]:
    scale = float(np.abs(tensor).max())
    if scale < POINT:
        return
    low, middle, high = np.linalg.eigvalsh(tensor / scale)
    shown = " ".join(f"{scale * moment:.6g}" for moment in (low, middle, high))
    slack = _TOLERANCE * max(abs(low), abs(high))
    element = f"{title(link)} <inertia>"
    if low < -slack:
        problem = "[kg·m²] are its principal moments: it is not positive definite"
    elif low + middle < high - slack:
        problem = "[kg·m²] are its principal moments: they break the triangle inequality"
    elif low <= slack:
        problem = "[kg·m²] are its principal moments: the smallest is zero, which others reject"
        yield Fault(inertia.line, element, shown, problem, _THICKEN, "warning")
        return
    else:
        return
    yield Fault(inertia.line, element, shown, problem, _REMEDY)


def _weightless(robot: Robot, link: str, joint: Node) -> Iterator[Fault]:
    """A moving body, welded links included, has mass; what cannot be read is not judged."""
    node, members = robot.links[link], robot.body(link)
    masses = [mass_of(robot.links[name]) for name in members]
    known = [mass for mass in masses if mass is not None]
    if len(known) < len(masses) or any(known):
        return
    inertial = node.find("inertial")
    mass = inertial.find("mass") if inertial else None
    place, text = (mass, mass.get("value") or "") if mass else (node, "")
    element = f"{title(node)} <mass value>" if mass else title(node)
    welded = f" with the links fixed to it ({listed(members[1:])})" if members[1:] else ""
    problem = "is zero" if mass else "it has no mass" if inertial else "<inertial> is missing"
    remedy = f"joint '{joint.get('name')}' moves it: give it an <inertial> with a mass above 0"
    yield Fault(place.line, element, text, problem + welded, remedy)


def _point(robot: Robot, link: str) -> Iterator[Fault]:
    """A moving body, welded links included, with mass and without any tensor."""
    node, members = robot.links[link], [robot.links[name] for name in robot.body(link)]
    inertial = node.find("inertial")
    inertia = inertial.find("inertia") if inertial else None
    if inertia and (mass_of(node) or 0.0) > 0 and all(_no_tensor(member) for member in members):
        problem = "the tensor is zero: the link is taken as a point mass"
        element = f"{title(node)} <inertia>"
        yield Fault(inertia.line, element, "", problem, "compute the tensor", "warning")


def _no_tensor(link: Node) -> bool:
    inertial = link.find("inertial")
    tensor = tensor_of(inertial.find("inertia")) if inertial else np.zeros((3, 3))
    return tensor is not None and float(np.abs(tensor).max()) < POINT


def mass_of(link: Node) -> float | None:
    """The link's mass [kg], 0 without ``<inertial>``, None when that is a fault of its own."""
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0
    mass = inertial.find("mass")
    return None if _hollow(mass, inertial.find("inertia")) else number_attribute(mass, "value")


def _base(robot: Robot) -> Iterator[Fault]:
    for name, link in robot.links.items():
        inertial = link.find("inertial")
        if inertial and name not in robot.parent_joint and mass_of(link):
            problem = "a root link's inertia has no effect: it stands still, and KDL ignores it"
            remedy = "put it on a link fixed to a root without inertia"
            element = f"{title(link)} <inertial>"
            yield Fault(inertial.line, element, "", problem, remedy, "warning")


def tensor_of(inertia: Node | None) -> NDArray[np.float64] | None:
    """The tensor (3, 3) [kg m^2] of an ``<inertia>``, None when it cannot be read."""
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    entries = [number_attribute(inertia, name) for name in names]
    xx, xy, xz, yy, yz, zz = entries
    if None in entries:
        return None
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=np.float64)
