"""Effort: limits that cannot hold the arm's own links, as placeholders of exporters cannot.

Gravity torque of a revolute joint with axis a through p: τ = g a · Σ m (c - p) x e_z, summed over
the links that it moves, with masses m and centers of mass c; force of a prismatic joint:
g Σ m a · e_z.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import pi

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.inertia import mass_of, placement, unit_axis
from arm_dynamics.model.audit.joints import bounds, initial_position
from arm_dynamics.model.audit.mimic_joints import mimic_joint, mimic_joints
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Edge, Robot
from arm_dynamics.model.xml_source import Node

GRAVITY = 9.81
"""[m/s²]"""
CONFIGURATIONS = 32
"""Random configurations in addition to the initial one."""
HELD = 0.5
"""Fraction of the largest gravity torque below which a limit is likely a placeholder: those of
robots are above 0.6."""

REMEDY = (
    "write the motor's limit (exporters write 0, 1 or -1 for an unknown one; a URDF has no"
    " counterbalance springs)"
)


def effort_limit_faults(robot: Robot) -> Iterator[Fault]:
    """Yield a warning for each effort limit far below the gravity torque of its joint.

    That is one below the gravity torque of the initial configuration, or below HELD of the largest
    one within the position limits. Limits that are not above 0 are faults of their own.
    """
    torques, mimics = gravity_torques(robot, _configurations(robot)), mimic_joints(robot)
    for name, mimic in mimics.items():
        if {name, mimic.joint} <= torques.keys():
            torques[mimic.joint] = torques[mimic.joint] + mimic.multiplier * torques.pop(name)
    for name, torque in torques.items():
        joint, limit = robot.joints[name], robot.joints[name].find("limit")
        effort = number_attribute(limit, "effort")
        initial, largest = abs(float(torque[0])), float(np.abs(torque).max())
        if limit is None or effort is None or not 0 < effort < max(initial, HELD * largest):
            continue
        held, at = largest, "within its position limits"
        if effort < initial:
            held, at = initial, "in the initial configuration"
        load, unit = ("force", "N") if joint.get("type") == "prismatic" else ("torque", "N·m")
        problem = f"[{unit}] is below the joint's gravity {load} of {held:.4g} {unit} {at}"
        element = f"{title(joint)} <limit effort>"
        yield Fault(limit.line, element, limit.get("effort") or "", problem, REMEDY, "warning")


def gravity_torques(robot: Robot, positions: Mapping[str, Vector]) -> dict[str, Vector]:
    """Return the gravity torques (n,) [N·m or N] of the moving joints, by name.

    Parameters
    ----------
    robot : Robot
        The robot; empty results if a mass, origin or axis of it cannot be read.
    positions : Mapping[str, Vector]
        Positions (n,) [rad or m] of the joints with one coordinate, in n configurations.

    """
    edges: list[Edge] = []
    poses: dict[str, Matrix] = {n: np.eye(4) for n in robot.links if n not in robot.parent_joint}
    below = list(poses)
    axes: dict[str, Matrix] = {}
    for name in below:
        for edge in robot.child_joints.get(name, ()):
            if edge is not robot.parent_joint[edge.child]:
                continue
            joint, placed, axis = edge.joint, placement(edge.joint), unit_axis(edge.joint)
            q = positions.get(joint.get("name") or "")
            if placed is None or (q is not None and axis is None):
                return {}
            pose = poses[edge.child] = poses[name] @ placed
            if q is not None and axis is not None:
                axes[edge.child] = pose[..., :3, :3] @ axis
                poses[edge.child] = pose @ _motion(joint, axis, q)
            edges.append(edge)
            below.append(edge.child)
    moments: dict[str, tuple[float, Vector]] = {}
    for name in below:
        inertial, mass = robot.links[name].find("inertial"), mass_of(robot.links[name])
        placed = placement(inertial) if inertial else np.eye(4)
        if placed is None or mass is None:
            return {}
        moments[name] = mass, mass * (poses[name] @ placed)[..., :3, 3]
    found: dict[str, Vector] = {}
    for edge in reversed(edges):
        mass, moment = moments[edge.child]
        if robot.moves(edge.joint) and edge.child in axes:
            x, y, z = np.moveaxis(axes[edge.child], -1, 0)
            rx, ry, _ = np.moveaxis(moment - mass * poses[edge.child][..., :3, 3], -1, 0)
            sliding = edge.joint.get("type") == "prismatic"
            torque = GRAVITY * (mass * z + 0 * rx if sliding else x * ry - y * rx)
            found[edge.joint.get("name") or ""] = torque
        above = moments[edge.parent]
        moments[edge.parent] = above[0] + mass, above[1] + moment
    return found


def _configurations(robot: Robot) -> dict[str, Vector]:
    """Return the initial position of each joint, then random ones; a locked joint does not move."""
    random = np.random.default_rng(0)
    blocks = robot.root.find_all("ros2_control")
    control = {joint.get("name"): joint for block in blocks for joint in block.find_all("joint")}
    found: dict[str, Vector] = {}
    for name, joint in robot.joints.items():
        if joint.get("type") in ONE_COORDINATE:
            q = np.full(1 + CONFIGURATIONS, initial_position(joint, control.get(name)))
            lower, upper = bounds(joint.find("limit"))
            if joint.get("type") == "continuous":
                lower, upper = -pi, pi
            if robot.moves(joint) and lower is not None and upper is not None:
                q[1:] = lower + (upper - lower) * random.random(CONFIGURATIONS)
            found[name] = q
    for name in found:
        mimic = mimic_joint(robot, name)
        if mimic and mimic.joint in found:
            found[name] = mimic.multiplier * found[mimic.joint] + mimic.offset
    return found


def _motion(joint: Node, axis: Vector, q: Vector) -> Matrix:
    """Return the placements (n, 4, 4) that a joint adds at positions ``q`` (n,)."""
    motion = np.tile(np.eye(4), (len(q), 1, 1))
    if joint.get("type") == "prismatic":
        motion[:, :3, 3] = q[:, None] * axis
    else:  # Rodrigues: 1 + sin q K + (1 - cos q) K², K v = a x v
        K = np.cross(axis, -np.eye(3))
        motion[:, :3, :3] += np.sin(q)[:, None, None] * K + (1 - np.cos(q))[:, None, None] * K @ K
    return motion
