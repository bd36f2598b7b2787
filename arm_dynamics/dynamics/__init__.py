"""Rigid-body dynamics and kinematics of an arm.

May import ``model`` and below. Start with ``rigid_body`` (mass matrix, bias, forward and inverse
dynamics), ``kinematics.frames`` (poses, twists and Jacobians of frames) and
``kinematics.inverse_kinematics`` (joint positions of a pose). ``kinematics.closed_loop_ik``
follows a task-space reference within the joint limits.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.dynamics.kinematics.frames import (
        acceleration,
        frame_id,
        jacobian,
        jacobian_derivative,
        joint_origins,
        link_poses,
        pose,
        tool_pose,
        tool_position,
        twist,
    )
    from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
        inverse_kinematics,
        nearest_reachable,
    )
    from arm_dynamics.dynamics.kinematics.tool_motion import operational_inertia
    from arm_dynamics.dynamics.kinematics.workspace import manipulability, workspace_slice
    from arm_dynamics.dynamics.rigid_body import (
        aba,
        coriolis_matrix,
        gravity,
        kinetic_energy,
        mass_matrix,
        nle,
        potential_energy,
        rnea,
    )

_MODULES = {
    "aba": ".rigid_body",
    "acceleration": ".kinematics.frames",
    "coriolis_matrix": ".rigid_body",
    "frame_id": ".kinematics.frames",
    "gravity": ".rigid_body",
    "inverse_kinematics": ".kinematics.inverse_kinematics",
    "jacobian": ".kinematics.frames",
    "jacobian_derivative": ".kinematics.frames",
    "joint_origins": ".kinematics.frames",
    "kinetic_energy": ".rigid_body",
    "link_poses": ".kinematics.frames",
    "manipulability": ".kinematics.workspace",
    "mass_matrix": ".rigid_body",
    "nearest_reachable": ".kinematics.inverse_kinematics",
    "nle": ".rigid_body",
    "operational_inertia": ".kinematics.tool_motion",
    "pose": ".kinematics.frames",
    "potential_energy": ".rigid_body",
    "rnea": ".rigid_body",
    "tool_pose": ".kinematics.frames",
    "tool_position": ".kinematics.frames",
    "twist": ".kinematics.frames",
    "workspace_slice": ".kinematics.workspace",
}

__all__ = [
    "aba",
    "acceleration",
    "coriolis_matrix",
    "frame_id",
    "gravity",
    "inverse_kinematics",
    "jacobian",
    "jacobian_derivative",
    "joint_origins",
    "kinetic_energy",
    "link_poses",
    "manipulability",
    "mass_matrix",
    "nearest_reachable",
    "nle",
    "operational_inertia",
    "pose",
    "potential_energy",
    "rnea",
    "tool_pose",
    "tool_position",
    "twist",
    "workspace_slice",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
