"""Dragging an arm by handles: a ring or an arrow at every joint, and the tool's pose.

A handle's x axis is what its joint turns about or slides along. Nothing moves the arm here: a drag
changes a target, which a caller sends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.dynamics.kinematics import link_poses, pose, tool_position
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    TOLERANCE,
    nearest_reachable,
    solve_from,
)
from arm_dynamics.dynamics.kinematics.pose_target import PoseTarget
from arm_dynamics.dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.links import unit_axis
from arm_dynamics.model.xml_source import parse_xml

RESTARTS = 3
"""Of the inverse kinematics for each step of a drag: it starts at the step before."""
JUMP_THRESHOLD = 0.8
"""Change of a joint [rad or m] in one step of a drag that leads to another configuration."""
STALLED = 1e-6
"""Share of its cost by which a step of the descent must lower it."""
POINTS = 40
"""Of a planned path."""


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A joint's handle."""

    joint: str
    index: int
    link: str
    aligned: Vector
    """Rotation (3, 3) from the link's axes to the handle's, whose x axis is the joint's."""
    slides: bool


def handles(arm: ArmModel) -> tuple[Handle, ...]:
    """Return a handle for every joint of ``arm`` that may move."""
    nodes, found = Robot(parse_xml(arm.urdf)).joints, []
    for index, joint in enumerate(arm.joints):
        child = nodes[joint.name].find("child")
        aligned = _with_x(np.array(unit_axis(nodes[joint.name])))
        if child is not None and joint.lower < joint.upper:
            link, slides = child.get("link") or "", joint.kind == "prismatic"
            found.append(Handle(joint.name, index, link, aligned, slides))
    return tuple(found)


class DragTarget:
    """Where a user has dragged an arm: a configuration, and the tool's pose as dragged.

    ``q`` (nv,) [rad or m] stays within the limits of position.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self.axes = controlled_axes(arm)
        """Which of x, y, z, rx, ry, rz the tool can be dragged along, about."""
        self.handles = handles(arm)
        self.set(arm.configuration("initial"))

    def set(self, q: ArrayLike) -> None:
        """Put the target at ``q`` (nv,), the tool's pose with it."""
        self.q = as_readonly(np.clip(q, self._arm.lower, self._arm.upper))
        self.position, self.rotation = pose(self._arm, self.q)

    def set_tool(self, position: ArrayLike, rotation: ArrayLike) -> None:
        """Put the tool's pose at ``position`` (3,) [m] and ``rotation`` (3, 3), joints apart."""
        self.position, self.rotation = as_readonly(position), as_readonly(rotation)

    def drag_joint(self, handle: Handle, position: ArrayLike, rotation: ArrayLike) -> None:
        """Move a joint by what its handle was moved to ``position`` [m], ``rotation`` (3, 3).

        Revolute joints move by at most half a turn at once, so that a stream of steps counts
        turns.
        """
        at, turned = self.handle_pose(handle)
        if handle.slides:
            step = float((np.asarray(position) - at) @ turned[:, 0])
        else:
            step = float(pin.log3(turned.T @ np.asarray(rotation))[0])
        q = np.array(self.q)
        q[handle.index] += step
        self.set(q)

    def drag_tool(self, position: ArrayLike, rotation: ArrayLike) -> None:
        """Move the joints so that the tool comes as near as it can to the pose.

        A configuration on the other side of a joint limit, such as with the elbow down, is no
        target: the tool then stays behind. The pose itself is kept as dragged; ``settle`` puts it
        where the joints lead it.
        """
        self.set_tool(position, rotation)
        weights = [float(axis) for axis in self.axes]
        turned = self.rotation if any(self.axes[3:]) else None
        found = nearest_reachable(
            self._arm,
            self.position,
            turned,
            initial_guess=self.q,
            weights=weights,
            restarts=RESTARTS,
        )
        if np.abs(found.q - self.q).max() > JUMP_THRESHOLD:
            target = PoseTarget.of(self.position, turned, weights)
            found = solve_from(self._arm, target, self.q, TOLERANCE, STALLED)
        self.q = found.q

    def settle(self) -> None:
        """Put the tool's pose where the joints lead it."""
        self.set(self.q)

    def handle_pose(self, handle: Handle) -> tuple[Vector, Vector]:
        """Position (3,) [m] and rotation (3, 3) of a handle in the base frame."""
        position, rotation = link_poses(self._arm, self.q)[handle.link]
        return position, rotation @ handle.aligned

    def path_from(self, q: Vector) -> Vector:
        """Positions (n, 3) [m] of the tool as the joints go straight from ``q`` to the target."""
        steps = np.linspace(0.0, 1.0, POINTS)
        return as_readonly([tool_position(self._arm, q + s * (self.q - q)) for s in steps])


def _with_x(axis: Vector) -> Vector:
    """Return the rotation (3, 3) of least angle whose first column is the unit vector ``axis``."""
    turned: Vector = pin.Quaternion.FromTwoVectors(np.array([1.0, 0.0, 0.0]), axis).matrix()
    return as_readonly(turned)
