"""Inertia: moving bodies have mass, and every tensor belongs to a possible body.

Principal moments I1 <= I2 <= I3 of a body: I1 >= 0 and I1 + I2 >= I3 (the triangle inequality,
with equality for a flat body). A zero tensor is a point mass; a thin rod has I1 = 0.
Source: Wensing, Kim and Slotine, "Linear Matrix Inequalities for Physically-Consistent Inertial
Parameter Identification", 2018.

The last body on a revolute joint needs inertia J about its axis: without it the mass matrix is
singular. J = sum over the links fixed to each other of  n^T R I R^T n + m |n x p|^2, with n the
joint's axis, R and p the center of mass in the joint's frame. J = 0 for a point mass on the axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, sin

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.audit.fault import Fault, listed, title
from arm_dynamics.model.audit.numbers import number_attribute, vector_attribute
from arm_dynamics.model.audit.robot import DEFAULT_AXIS, Edge, Robot
from arm_dynamics.model.xml_source import Node

_TOLERANCE = 1e-9  # relative to the largest principal moment
POINT = 1e-15  # [kg m^2] smaller entries are rounding: a point mass
MIN_MASS = 1e-12
"""Mass [kg] below which a body's center is lost in rounding."""
_REMEDY = (
    "compute the tensor about the center of mass; look for swapped entries and wrong units;"
    " `arm-dynamics audit FILE --correct-inertia NEW` writes the nearest physically consistent one"
)
TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""Attributes of ``<inertia>`` and their places in the tensor."""
_THICKEN = "give the body a thickness: a rod of mass m and radius r has m r²/2 about its axis"


def mass_faults(_robot: Robot, link: Node) -> Iterator[Fault]:
    """Yield a mass that is missing, negative, tiny, or zero with a rotational inertia."""
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass = inertial.find("mass")
    if mass is None:
        element = f"{title(link)} <inertial>"
        yield Fault(inertial.line, element, "", "<mass> is missing", "add <mass …/>")
        return
    value = number_attribute(mass, "value")
    element, text = f"{title(link)} <mass value>", mass.get("value") or ""
    if value is not None and value < 0:
        yield Fault(mass.line, element, text, "is negative", "give the mass in kg, above 0")
    elif value is not None and 0 < value < MIN_MASS:
        problem = f"is below {MIN_MASS:g} kg, where the center of mass is lost in rounding"
        yield Fault(mass.line, element, text, problem, "write 0, or the mass in kg")
    elif _has_only_tensor(inertial):
        problem = "is zero, but the rotational inertia is not"
        remedy = "give the mass in kg, above 0, or remove <inertial> of a frame without a body"
        yield Fault(mass.line, element, text, problem, remedy)


def _has_only_tensor(inertial: Node) -> bool:
    """Return whether the mass is zero and the tensor is not: no body has these."""
    tensor = tensor_of(inertial.find("inertia"))
    has_tensor = tensor is not None and bool(tensor.any())
    return has_tensor and number_attribute(inertial.find("mass"), "value") == 0


def tensor_faults(_robot: Robot, link: Node) -> Iterator[Fault]:
    """Yield an inertia tensor that is missing or whose principal moments are impossible."""
    inertial = link.find("inertial")
    inertia = inertial.find("inertia") if inertial else None
    if inertial and inertia is None:
        element = f"{title(link)} <inertial>"
        yield Fault(inertial.line, element, "", "<inertia> is missing", "add <inertia …/>")
    tensor = tensor_of(inertia)
    scale = 0.0 if tensor is None else float(np.abs(tensor).max())
    if inertia is None or tensor is None or scale < POINT:
        return
    low, middle, high = np.linalg.eigvalsh(tensor / scale)
    shown = " ".join(f"{scale * moment:.6g}" for moment in (low, middle, high))
    slack = _TOLERANCE * max(abs(low), abs(high))
    element, where = f"{title(link)} <inertia>", "[kg·m²] are its principal moments"
    if low < -slack:
        problem = f"{where}: it is not positive definite"
        yield Fault(inertia.line, element, shown, problem, _REMEDY)
    elif low + middle < high - slack:
        problem = f"{where}: they break the triangle inequality"
        yield Fault(inertia.line, element, shown, problem, _REMEDY)
    elif low <= slack:
        problem = f"{where}: the smallest is zero, which other programs reject"
        yield Fault(inertia.line, element, shown, problem, _THICKEN, "warning")


def massless_body_faults(robot: Robot, edge: Edge) -> Iterator[Fault]:
    """Yield a moving body whose links have no mass; unreadable masses are not checked."""
    node, members = robot.links[edge.child], robot.body(edge.child)
    masses = [mass_of(robot.links[name]) for name in members]
    if None in masses or any(masses) or robot.is_kinematic:
        return
    inertial = node.find("inertial")
    mass = inertial.find("mass") if inertial else None
    place, text = (mass, mass.get("value") or "") if mass else (node, "")
    element = f"{title(node)} <mass value>" if mass else title(node)
    welded = f" with the links fixed to it ({listed(members[1:])})" if members[1:] else ""
    problem = "is zero" if mass else "it has no mass" if inertial else "<inertial> is missing"
    name = edge.joint.get("name")
    remedy = f"joint '{name}' moves it: give it an <inertial> with a mass above 0"
    yield Fault(place.line, element, text, problem + welded, remedy)


def kinematic_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for a robot none of whose moving links has a mass."""
    if robot.is_kinematic:
        problem = (
            "no moving link has a mass: the arm has kinematics and display, and no simulation,"
            " gravity compensation or identification"
        )
        remedy = (
            "add <inertial> to the links, or estimate them from their shapes:"
            " `arm-dynamics audit FILE --estimate-inertia KG --output NEW`"
        )
        yield Fault(robot.root.line, title(robot.root), "", problem, remedy, "warning")


def point_mass_faults(robot: Robot, edge: Edge) -> Iterator[Fault]:
    """Yield a warning for a moving body with mass and without any tensor."""
    inertials = [robot.links[name].find("inertial") for name in robot.body(edge.child)]
    tensors = [tensor_of(inertial.find("inertia")) for inertial in inertials if inertial]
    inertia = inertials[0].find("inertia") if inertials[0] else None
    link = robot.links[edge.child]
    is_point = all(t is not None and float(np.abs(t).max()) < POINT for t in tensors)
    if inertia and is_point and (mass_of(link) or 0.0) > 0:
        problem = "the tensor is zero: the link counts as a point mass"
        element = f"{title(link)} <inertia>"
        yield Fault(inertia.line, element, "", problem, "compute the tensor", "warning")


def root_inertia_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for each root link that has a mass."""
    for name, link in robot.links.items():
        inertial = link.find("inertial")
        if inertial and name not in robot.parent_joint and mass_of(link):
            problem = "a root link's inertia has no effect: it does not move, and KDL ignores it"
            remedy = "put it on a link fixed to a root without inertia"
            element = f"{title(link)} <inertial>"
            yield Fault(inertial.line, element, "", problem, remedy, "warning")


def axis_inertia_faults(robot: Robot, edge: Edge) -> Iterator[Fault]:
    """Yield a warning for a last body on a revolute joint without inertia about its axis."""
    if edge.joint.get("type") != "prismatic" and _lacks_axis_inertia(robot, edge):
        problem = f"'{edge.child}' and the links fixed to it have no inertia about the axis"
        remedy = "add a tensor, or an actuator with rotor inertia"
        yield Fault(edge.joint.line, title(edge.joint), "", problem, remedy, "warning")


def _lacks_axis_inertia(robot: Robot, edge: Edge) -> bool:
    """Return whether J < POINT for a last body with mass; False if its text is unreadable."""
    links, total, mass = {edge.child: np.eye(4)}, 0.0, 0.0
    direction = unit_axis(edge.joint)
    if direction is None:
        return False
    for name in robot.body(edge.child):
        for below in robot.child_joints.get(name, ()):
            placed = placement(below.joint)
            if below.joint.get("type") != "fixed" or placed is None:
                return False
            links.setdefault(below.child, links[name] @ placed)
        part = _link_axis_inertia(robot.links[name], links[name], direction)
        if part is None:
            return False
        total, mass = total + part, mass + (mass_of(robot.links[name]) or 0.0)
    return total < POINT and mass > 0


def _link_axis_inertia(link: Node, placed: Matrix, axis: Matrix) -> float | None:
    """Return n^T R I R^T n + m |n x p|^2 of one link [kg m^2], None if it cannot be read."""
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0
    center, tensor = placement(inertial), tensor_of(inertial.find("inertia"))
    mass = mass_of(link)
    if center is None or tensor is None or mass is None:
        return None
    pose = placed @ center
    turned = pose[:3, :3].T @ axis
    arm = np.cross(axis, pose[:3, 3])
    return float(turned @ tensor @ turned + mass * arm @ arm)


def unit_axis(joint: Node) -> Vector | None:
    """Return the unit vector (3,) of a joint's axis, None if it cannot be read."""
    node = joint.find("axis")
    axis = DEFAULT_AXIS if node is None else vector_attribute(node, "xyz")
    if axis is None or not any(axis):
        return None
    direction = np.array(axis) / max(map(abs, axis))  # the square of its length may not be finite
    return np.asarray(direction / np.linalg.norm(direction))


def placement(owner: Node) -> Matrix | None:
    """Return the (4, 4) placement in an element's ``<origin>``: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    origin = owner.find("origin")
    zero: tuple[float, ...] | None = (0.0, 0.0, 0.0)
    xyz, rpy = (
        vector_attribute(origin, name) if origin and origin.get(name) is not None else zero
        for name in ("xyz", "rpy")
    )
    if xyz is None or rpy is None:
        return None
    (a, b, c), (x, y, z) = map(cos, rpy), map(sin, rpy)
    return np.array(
        [
            [c * b, c * y * x - z * a, c * y * a + z * x, xyz[0]],
            [z * b, z * y * x + c * a, z * y * a - c * x, xyz[1]],
            [-y, b * x, b * a, xyz[2]],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def mass_of(link: Node) -> float | None:
    """Return the link's mass [kg]: 0 without ``<inertial>``, None if ``mass_faults`` reports it."""
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0
    return None if _has_only_tensor(inertial) else number_attribute(inertial.find("mass"), "value")


def tensor_of(inertia: Node | None) -> Matrix | None:
    """Return the tensor (3, 3) [kg m^2] of an ``<inertia>``, None if it cannot be read."""
    entries = [number_attribute(inertia, name) for name in TENSOR]
    xx, xy, xz, yy, yz, zz = entries
    if None in entries:
        return None
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=np.float64)
