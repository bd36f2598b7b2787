"""Names of the arm's frames in messages, as robot_state_publisher has them on /tf."""

from __future__ import annotations

from typing import NamedTuple

from rclpy.node import Node

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.ros_parameters import declare_fixed

FRAME_PREFIX = "frame_prefix"


class Frames(NamedTuple):
    """Names of the frames that messages refer to."""

    base: str
    """Frame of all poses, twists and wrenches."""
    tool: str
    """Frame that the task-space controller moves."""
    prefix: str = ""
    """Prefix of every frame."""


def declare_frames(node: Node, arm: ArmModel) -> Frames:
    """Declare the parameter ``frame_prefix``; return the arm's frames behind that prefix."""
    prefix = declare_fixed(
        node, FRAME_PREFIX, "", "prefix of frame names, as of robot_state_publisher (left/)"
    )
    return Frames(prefix + arm.base_frame, prefix + arm.tool_frame, prefix)
