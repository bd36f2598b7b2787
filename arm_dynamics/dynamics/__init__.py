"""Rigid-body dynamics and kinematics of an arm.

May import ``model`` and below. Start with ``rigid_body`` (mass matrix, bias, forward and inverse
dynamics), ``kinematics.frames`` (poses, twists and Jacobians of frames) and
``kinematics.inverse_kinematics`` (joint positions of a pose). ``kinematics.closed_loop_ik``
follows a task-space reference within the joint limits.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.dynamics.kinematics.closed_loop_ik import (
        ClosedLoopIk,
    )
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
        IkSolution,
        inverse_kinematics,
        nearest_reachable,
    )
    from arm_dynamics.dynamics.kinematics.pose_target import (
        PoseTarget,
    )
    from arm_dynamics.dynamics.kinematics.tool_motion import (
        ToolKinematics,
        operational_inertia,
    )
    from arm_dynamics.dynamics.kinematics.workspace import (
        Manipulability,
        Workspace,
        WorkspaceSlice,
        manipulability,
        reachable_points,
        workspace_slice,
    )
    from arm_dynamics.dynamics.rigid_body import (
        RigidBodyDynamics,
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
    "ClosedLoopIk": ".kinematics.closed_loop_ik",
    "IkSolution": ".kinematics.inverse_kinematics",
    "Manipulability": ".kinematics.workspace",
    "PoseTarget": ".kinematics.pose_target",
    "RigidBodyDynamics": ".rigid_body",
    "ToolKinematics": ".kinematics.tool_motion",
    "Workspace": ".kinematics.workspace",
    "WorkspaceSlice": ".kinematics.workspace",
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
    "reachable_points": ".kinematics.workspace",
    "rnea": ".rigid_body",
    "tool_pose": ".kinematics.frames",
    "tool_position": ".kinematics.frames",
    "twist": ".kinematics.frames",
    "workspace_slice": ".kinematics.workspace",
}

__all__ = [
    "ClosedLoopIk",
    "IkSolution",
    "Manipulability",
    "PoseTarget",
    "RigidBodyDynamics",
    "ToolKinematics",
    "Workspace",
    "WorkspaceSlice",
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
    "reachable_points",
    "rnea",
    "tool_pose",
    "tool_position",
    "twist",
    "workspace_slice",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
