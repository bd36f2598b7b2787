"""Links and joints of a URDF as a Pinocchio model, with the exact numbers of the file.

Pinocchio's URDF parser is not used. It reads ``"1 "`` as 0 and recurses once for each link, so
that a chain of 5 000 ends the process. Its time grows with the square of their number. Frames and
their order are as from that parser; masses, centers and tensors are not rounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import cos, frexp, ldexp, sin, sqrt
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.model.arm_model import Joint
from arm_dynamics.model.audit.numbers import number_attribute, vector_attribute
from arm_dynamics.model.audit.robot import DEFAULT_AXIS, Edge, Robot
from arm_dynamics.model.xml_source import Node

UNBOUNDED = 1e9
"""Infinite limits of a continuous joint in Pinocchio, which cannot sample from infinite ones."""
Rotation = Sequence[Sequence[float]]
_ALIGNED = {
    (1.0, 0.0, 0.0): (pin.JointModelRX, pin.JointModelPX),
    (0.0, 1.0, 0.0): (pin.JointModelRY, pin.JointModelPY),
    (0.0, 0.0, 1.0): (pin.JointModelRZ, pin.JointModelPZ),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Attachment:
    """A link's joint, its placement in that joint's frame, and the index of its body frame."""

    joint: int
    placement: Any
    frame: int


def build_links(
    robot: Robot,
    joints: Mapping[str, Joint],
    locked: Mapping[str, float],
    mimics: Collection[str] = (),
) -> Any:
    """Return the Pinocchio model of an audited robot.

    Joints have one coordinate each, continuous ones included: Pinocchio would store (cos, sin)
    of those and lose the turns that a motor counts. Children come in the order of their joints'
    names, after them those without driven joints: Pinocchio needs these before the mimic joints.

    Parameters
    ----------
    robot : Robot
        The robot.
    joints : Mapping[str, Joint]
        Moving joints by name.
    locked : Mapping[str, float]
        Positions [rad or m] of the joints to fix.
    mimics : collection of str
        Names of the mimic joints, which are joints like the others here.

    Returns
    -------
    pinocchio.Model
        nq = nv = number of joints that move, mimic joints included.

    """
    model, frames = pin.Model(), list[Any]()
    model.name = robot.root.get("name") or ""

    def body(link: Node, at: _Attachment, inertia: Any = None) -> _Attachment:
        frame = _frame(link, at, pin.FrameType.BODY, inertia)
        frames.append(frame)
        return _Attachment(at.joint, at.placement, len(frames))  # the universe's frame is number 0

    (root,) = (name for name in robot.links if name not in robot.parent_joint)
    world = _Attachment(0, pin.SE3.Identity(), 0)
    model.inertias[0] = link_inertia(robot.links[root])
    placed = {root: body(robot.links[root], world, link_inertia(robot.links[root]))}
    last = _without_driven_joints(robot, mimics) if mimics else frozenset()
    waiting = _below(robot, root, last)
    while waiting:
        edge = waiting.pop()
        waiting += _below(robot, edge.child, last)
        name, link = edge.joint.get("name") or "", robot.links[edge.child]
        above = placed[edge.parent]
        placement, inertia = above.placement * origin_pose(edge.joint), link_inertia(link)
        if name in joints and name not in locked:
            index = model.addJoint(above.joint, _joint_model(edge.joint), placement, name)
            model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
            model.inertias[index] = inertia  # as written: appending rounds it
            at = _Attachment(index, pin.SE3.Identity(), above.frame)
            frames.append(_frame(edge.joint, at, pin.FrameType.JOINT))
        else:
            placement = placement * _joint_motion(edge.joint, locked.get(name, 0.0))
            at = _Attachment(above.joint, placement, above.frame)
            if inertia != pin.Inertia.Zero():  # which would round those before
                model.inertias[at.joint] += placement.act(inertia)
            frames.append(_frame(edge.joint, at, pin.FrameType.FIXED_JOINT, inertia))
        placed[edge.child] = body(link, _Attachment(at.joint, at.placement, len(frames)))
    for frame in frames:  # addFrame counts them, and in linear time if it searches no others
        model.addFrame(frame, False)
        del model.frames[-1]
    model.frames.extend(frames)
    _set_limits(model, [joints[name] for name in list(model.names)[1:]])
    return model


def _frame(node: Node, at: _Attachment, kind: Any, inertia: Any = None) -> Any:
    own = () if inertia is None else (inertia,)
    return pin.Frame(node.get("name") or "", at.joint, at.frame, at.placement, kind, *own)


def _below(robot: Robot, link: str, last: Collection[str]) -> list[Edge]:
    return sorted(
        robot.child_joints.get(link, ()),
        key=lambda edge: (edge.child in last, edge.joint.get("name") or ""),
        reverse=True,
    )


def _without_driven_joints(robot: Robot, mimics: Collection[str]) -> Collection[str]:
    """Return the links with no driven joint between their parent link and the links below them."""
    found = set(robot.links)
    for edge in robot.edges:
        if robot.moves(edge.joint) and edge.joint.get("name") not in mimics:
            at: Edge | None = edge
            while at is not None and at.child in found:
                found.remove(at.child)
                at = robot.parent_joint.get(at.parent)
    return found


def _set_limits(model: Any, joints: Sequence[Joint]) -> None:
    """Set limits and friction for Pinocchio's functions; the arm's are those of its joints."""
    free = np.array([joint.kind == "continuous" for joint in joints])
    velocity = np.where(free, UNBOUNDED, [joint.velocity for joint in joints])
    effort = np.where(free, UNBOUNDED, [joint.effort for joint in joints])
    model.lowerPositionLimit = np.where(free, -UNBOUNDED, [joint.lower for joint in joints])
    model.upperPositionLimit = np.where(free, UNBOUNDED, [joint.upper for joint in joints])
    model.velocityLimit, model.effortLimit = velocity, effort
    model.damping = np.array([joint.damping for joint in joints])
    model.friction = friction = np.array([joint.friction for joint in joints])
    if hasattr(model, "lowerEffortLimit"):  # Pinocchio 4
        model.lowerEffortLimit, model.lowerVelocityLimit = -effort, -velocity
        model.lowerDryFrictionLimit = -friction


def _joint_model(joint: Node) -> Any:
    """Return the Pinocchio joint of an axis: the aligned one if it is x, y or z."""
    axis, sliding = unit_axis(joint), joint.get("type") == "prismatic"
    if axis in _ALIGNED:
        return _ALIGNED[axis][sliding]()
    kind = pin.JointModelPrismaticUnaligned if sliding else pin.JointModelRevoluteUnaligned
    return kind(np.array(axis))


def unit_axis(joint: Node) -> tuple[float, ...]:
    """Return the unit vector of a joint's axis, of any length that is finite and not 0."""
    node = joint.find("axis")
    x, y, z = vector_attribute(node, "xyz") or DEFAULT_AXIS
    exponent = 1 - max(frexp(entry)[1] for entry in (x, y, z) if entry)
    x, y, z = (ldexp(entry, exponent) for entry in (x, y, z))  # exact, and its square is finite
    length = sqrt(x * x + (y * y + z * z))
    return x / length, y / length, z / length


def _joint_motion(joint: Node, position: float) -> Any:
    """Return the placement that a locked joint adds at ``position`` [rad or m]."""
    if position == 0.0:
        return pin.SE3.Identity()
    axis = np.array(unit_axis(joint))
    if joint.get("type") == "prismatic":
        return pin.SE3(np.eye(3), axis * position)
    return pin.SE3(pin.AngleAxis(position, axis).matrix(), np.zeros(3))


def link_inertia(link: Node) -> Any:
    """Return the Pinocchio inertia of a link in its frame; zero without ``<inertial>``."""
    inertial = link.find("inertial")
    if inertial is None:
        return pin.Inertia.Zero()
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    xx, xy, xz, yy, yz, zz = (
        number_attribute(tensor, entry) or 0.0
        for entry in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    at, own = origin_pose(inertial), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    turn = at.rotation.tolist()
    turned = _product(_product(turn, own), [list(column) for column in zip(*turn, strict=True)])
    inertia = pin.Inertia.Zero()  # made of its parts, it would reject what rounding made negative
    inertia.mass, inertia.lever = number_attribute(mass, "value") or 0.0, at.translation
    inertia.inertia = np.array(turned)
    return inertia


def _product(a: Rotation, b: Rotation) -> list[list[float]]:
    """Return A B, with sums in Eigen's order."""
    columns = list(zip(*b, strict=True))
    return [[x * u + (y * v + z * w) for u, v, w in columns] for x, y, z in a]


def origin_pose(owner: Node) -> Any:
    """Return the placement of an ``<origin>``: R = Rz(yaw) Ry(pitch) Rx(roll), by a quaternion."""
    origin = owner.find("origin")
    roll, pitch, yaw = (angle / 2 for angle in vector_attribute(origin, "rpy") or (0.0, 0.0, 0.0))
    (a, b, c), (x, y, z) = map(cos, (roll, pitch, yaw)), map(sin, (roll, pitch, yaw))
    qx, qy = x * b * c - a * y * z, a * y * c + x * b * z
    qz, qw = a * b * z - x * y * c, a * b * c + x * y * z
    size = sqrt(qx * qx + qy * qy + qz * qz + qw * qw)
    turn = pin.Quaternion(qw / size, qx / size, qy / size, qz / size)
    return pin.SE3(turn.matrix(), np.array(vector_attribute(origin, "xyz") or (0.0, 0.0, 0.0)))
