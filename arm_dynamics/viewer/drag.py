"""Drag an arm by handles: a ring or an arrow at every joint, and the pose of the tool.

The x axis of a handle is the axis of its joint. A drag changes a target only, which the caller
sends to the arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.dynamics.kinematics.frames import link_poses, pose, tool_position
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
"""Restarts of the inverse kinematics for each step of a drag, which starts at the previous one."""
JUMP_THRESHOLD = 0.8
"""Change of a joint [rad or m] in one step of a drag that indicates another solution branch."""
STALLED = 1e-6
"""Smallest relative decrease of the cost in an iteration of the descent."""
POINTS = 40
"""Number of points of a planned path."""


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """Handle of a joint."""

    joint: str
    index: int
    link: str
    aligned: Matrix
    """Rotation (3, 3) from the axes of the link to those of the handle: the one of least angle."""
    slides: bool


def handles(arm: ArmModel) -> tuple[Handle, ...]:
    """Return a handle for every joint of ``arm`` whose limits permit a motion."""
    nodes, result = Robot(parse_xml(arm.urdf)).joints, []
    for index, joint in enumerate(arm.joints):
        child = nodes[joint.name].find("child")
        axis = np.array(unit_axis(nodes[joint.name]))
        aligned: Matrix = pin.Quaternion.FromTwoVectors(np.array([1.0, 0.0, 0.0]), axis).matrix()
        if child is not None and joint.lower < joint.upper:
            link, slides = child.get("link") or "", joint.kind == "prismatic"
            result.append(Handle(joint.name, index, link, as_readonly(aligned), slides))
    return tuple(result)


class DragTarget:
    """Target of a drag: a configuration within the position limits, and a pose of the tool.

    Attributes
    ----------
    q : Vector
        Configuration (nv,) [rad or m].
    position, rotation : Vector, Matrix
        Dragged pose of the tool in the base frame, (3,) [m] and (3, 3).

    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self.axes = controlled_axes(arm)
        """Which of x, y, z, rx, ry, rz of the tool can be dragged."""
        self.handles = handles(arm)
        self.set(arm.configuration("initial"))

    def set(self, q: ArrayLike) -> None:
        """Set the target to ``q`` (nv,), and the pose to that of the tool at ``q``."""
        self.q = as_readonly(np.clip(q, self._arm.lower, self._arm.upper))
        self.position, self.rotation = pose(self._arm, self.q)

    def set_tool(self, position: ArrayLike, rotation: ArrayLike) -> None:
        """Set the pose to ``position`` (3,) [m] and ``rotation`` (3, 3); ``q`` does not change."""
        self.position, self.rotation = as_readonly(position), as_readonly(rotation)

    def drag_joint(self, handle: Handle, position: ArrayLike, rotation: ArrayLike) -> None:
        """Move a joint so that its handle is at ``position`` (3,) [m], ``rotation`` (3, 3).

        A revolute joint moves by at most half a turn per step, so a sequence of steps counts its
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
        """Move the joints so that the tool is as close as possible to the pose.

        A configuration of another solution branch, such as elbow down, is rejected; the tool then
        does not reach the pose. The dragged pose is kept until ``settle``.
        """
        self.set_tool(position, rotation)
        weights = [float(axis) for axis in self.axes]
        turned = self.rotation if any(self.axes[3:]) else None
        solution = nearest_reachable(
            self._arm,
            self.position,
            turned,
            initial_guess=self.q,
            weights=weights,
            restarts=RESTARTS,
        )
        if np.abs(solution.q - self.q).max() > JUMP_THRESHOLD:
            target = PoseTarget.of(self.position, turned, weights)
            solution = solve_from(self._arm, target, self.q, TOLERANCE, STALLED)
        self.q = solution.q

    def settle(self) -> None:
        """Set the pose to that of the tool at ``q``."""
        self.set(self.q)

    def handle_pose(self, handle: Handle) -> tuple[Vector, Matrix]:
        """Return position (3,) [m] and rotation (3, 3) of a handle in the base frame."""
        position, rotation = link_poses(self._arm, self.q)[handle.link]
        return position, rotation @ handle.aligned

    def path_from(self, q: Vector) -> Matrix:
        """Return the tool path (n, 3) [m] of a joint-space line from ``q`` (nv,) to the target."""
        steps = np.linspace(0.0, 1.0, POINTS)
        return as_readonly([tool_position(self._arm, q + s * (self.q - q)) for s in steps])
