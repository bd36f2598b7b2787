"""Distal inertia: the last body on a revolute joint needs inertia about its axis.

Without it the mass matrix is singular.

J = sum over the welded links of  n^T R I R^T n + m |n x p|^2, with n the joint's axis, R and p
the center of mass in the joint's frame. J = 0 for a point mass that lies on the axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, sin

import numpy as np

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.inertia import POINT, Matrix, mass_of, tensor_of
from arm_dynamics.model.audit.numbers import vector_attribute
from arm_dynamics.model.audit.robot import Edge, Robot
from arm_dynamics.model.xml_source import Node

_X_AXIS = (1.0, 0.0, 0.0)  # the default axis of URDF


def axis_inertia_faults(robot: Robot, edge: Edge) -> Iterator[Fault]:
    """Yield a warning for a last body on a revolute joint without inertia about its axis."""
    if edge.joint.get("type") != "prismatic" and _lacks_axis_inertia(robot, edge):
        problem = f"'{edge.child}' and the links fixed to it have no inertia about the axis"
        remedy = "add a tensor, or an actuator with rotor inertia"
        yield Fault(edge.joint.line, title(edge.joint), "", problem, remedy, "warning")


def _lacks_axis_inertia(robot: Robot, edge: Edge) -> bool:
    """Return whether J < POINT for a last body with mass; False if its text is unreadable."""
    axis = vector_attribute(edge.joint.find("axis"), "xyz") if edge.joint.find("axis") else _X_AXIS
    links, total, mass = {edge.child: np.eye(4)}, 0.0, 0.0
    if axis is None or not any(axis):
        return False
    largest = max(map(abs, axis))  # the square of its length may not be finite
    direction = np.array(axis) / largest
    direction /= np.linalg.norm(direction)
    for name in robot.body(edge.child):
        for below in robot.child_joints.get(name, ()):
            placed = _placement(below.joint)
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
    centre, tensor = _placement(inertial), tensor_of(inertial.find("inertia"))
    mass = mass_of(link)
    if centre is None or tensor is None or mass is None:
        return None
    pose = placed @ centre
    turned = pose[:3, :3].T @ axis
    arm = np.cross(axis, pose[:3, 3])
    return float(turned @ tensor @ turned + mass * arm @ arm)


def _placement(owner: Node) -> Matrix | None:
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
