"""Forward, differential and inverse kinematics of the frames of an arm."""

from arm_dynamics.dynamics.kinematics.frames import (
    AXES,
    AXIS_NAMES,
    acceleration,
    frame_id,
    in_axes,
    jacobian,
    jacobian_derivative,
    joint_origins,
    link_poses,
    pose,
    tool_pose,
    tool_position,
    twist,
)

__all__ = [
    "AXES",
    "AXIS_NAMES",
    "acceleration",
    "frame_id",
    "in_axes",
    "jacobian",
    "jacobian_derivative",
    "joint_origins",
    "link_poses",
    "pose",
    "tool_pose",
    "tool_position",
    "twist",
]
