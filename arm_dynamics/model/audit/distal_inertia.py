"""Distal inertia: the last body on a revolute joint needs inertia about its axis.

Without it the mass matrix is singular.

J = sum over the welded links of  n^T R I R^T n + m |n x p|^2, with n the joint's axis, R and p
the centre of mass in the joint's frame. J = 0 for a point mass that lies on the axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.inertia import POINT, mass_of, tensor_of
from arm_dynamics.model.audit.numbers import vector_attribute
from arm_dynamics.model.audit.robot import Edge, Robot
from arm_dynamics.model.xml_source import Node

Matrix = NDArray[np.float64]
_X_AXIS = (1.0, 0.0, 0.0)  # the default axis of URDF


def check(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for each last body without inertia about its joint."""
    for edge in robot.edges:
        if robot.moves(edge.joint) and edge.joint.get("type") != "prismatic":
            swung = _swung(robot, edge)
            if swung is not None:
                problem = f"'{edge.child}' and what is fixed to it have no inertia about the axis"
                remedy = "add a tensor, or an actuator with rotor inertia"
                line, element = edge.joint.line, title(edge.joint)
                yield Fault(line, element, "", problem, remedy, "warning")


def _swung(robot: Robot, edge: Edge) -> float | None:
    """J [kg m^2] of a last body with mass where it is below POINT, else None.

    Nothing is said of one whose text is unreadable.
    """
    axis = vector_attribute(edge.joint.find("axis"), "xyz") if edge.joint.find("axis") else _X_AXIS
    links, total, mass = {edge.child: np.eye(4)}, 0.0, 0.0
    if axis is None or not any(axis):
        return None
    largest = max(map(abs, axis))  # the square of its length may not be finite
    direction = np.array(axis) / largest
    direction /= np.linalg.norm(direction)
    for name in robot.body(edge.child):
        for below in robot.child_joints.get(name, ()):
            placed = _placement(below.joint)
            if below.joint.get("type") != "fixed" or placed is None:
                return None
            links.setdefault(below.child, links[name] @ placed)
        part = _about(robot.links[name], links[name], direction)
        if part is None:
            return None
        total, mass = total + part, mass + (mass_of(robot.links[name]) or 0.0)
        if total >= POINT:
            return None
    return total if mass > 0 else None


def _about(link: Node, placed: Matrix, axis: Matrix) -> float | None:
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0
    centre, tensor = _placement(inertial), tensor_of(inertial.find("inertia"))
    mass = mass_of(link)
    if centre is None or tensor is None or mass is None:
        return None
    pose = placed @ centre
    turned = pose[:3, :3].T @ axis
    arm = np.cross(axis, pose[:3, 3])
    return float(turned @ tensor @ turned + mass * arm @ arm)


def _placement(owner: Node) -> Matrix | None:
    """The (4, 4) placement in an element's ``<origin>``: R = Rz(yaw) Ry(pitch) Rx(roll)."""
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
