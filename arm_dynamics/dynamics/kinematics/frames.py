"""Poses and motion of the frames of an arm, in base axes at the origin of the frame.

Twists and Jacobians are Pinocchio's LOCAL_WORLD_ALIGNED: linear part [m/s] first, of the frame's
origin, then angular [rad/s], both along the axes of the base. The default frame is the tool
frame. Every function raises InvalidValue for a wrong size or a non-finite entry and UnknownName
for a frame that the arm does not have.
"""

from __future__ import annotations

from typing import NamedTuple

import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.dynamics.rigid_body import pinocchio_data, tree_data
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

AXES = pin.LOCAL_WORLD_ALIGNED
AXIS_NAMES = ("x", "y", "z", "rx", "ry", "rz")
"""Rows of a Jacobian: three of translation [m/s], three of rotation [rad/s]."""


@requires_arm
def pose(arm: ArmModel, q: ArrayLike, frame: str | None = None) -> tuple[Vector, Matrix]:
    """Return the pose of a frame in the base frame, oMi(q) iMf.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.
    q : array_like
        Configuration (nv,) [rad or m].
    frame : str, optional
        Name of a link; by default the tool frame.

    Returns
    -------
    tuple of Vector and Matrix
        Position (3,) [m] and rotation matrix (3, 3).

    """
    scratch, number = pinocchio_data(arm), frame_id(arm, frame)
    pin.forwardKinematics(arm.model, scratch, check_vector("q", q, arm.nv))
    placement = pin.updateFramePlacement(arm.model, scratch, number)
    return as_readonly(placement.translation), as_readonly(placement.rotation)


class LinkPlacement(NamedTuple):
    """Placement of a link in its parent link."""

    parent: str
    child: str
    position: Vector
    """(3,) [m]."""
    rotation: Matrix
    """Rotation matrix (3, 3)."""


@requires_arm
def link_placements(arm: ArmModel, q: ArrayLike) -> tuple[LinkPlacement, ...]:
    """Return the placement of the child link of every moving joint in its parent link.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.
    q : array_like
        Configuration (nv,) [rad or m].

    Returns
    -------
    tuple of LinkPlacement
        One for each joint, mimic joints included, in the order of ``arm.tree``.

    """
    return _placements(arm, check_vector("q", q, arm.nv), pin.JOINT)


@requires_arm
def fixed_link_placements(arm: ArmModel) -> tuple[LinkPlacement, ...]:
    """Return the placement of the child link of every fixed or locked joint in its parent link."""
    return _placements(arm, pin.neutral(arm.model), pin.FIXED_JOINT)


def _placements(arm: ArmModel, q: Vector, kind: pin.FrameType) -> tuple[LinkPlacement, ...]:
    """Return the placements of the links of all joints of a kind."""
    scratch, frames = pinocchio_data(arm), arm.model.frames
    pin.framesForwardKinematics(arm.model, scratch, q)
    placements = []
    for child in frames:
        joint = frames[child.parentFrame]
        above = frames[joint.parentFrame]
        if joint.type != kind or (child.type, above.type) != (pin.BODY, pin.BODY):
            continue  # among others the base, which has no parent
        place = [scratch.oMf[arm.model.getFrameId(f.name, pin.BODY)] for f in (above, child)]
        relative = place[0].actInv(place[1])
        at = as_readonly(relative.translation), as_readonly(relative.rotation)
        placements.append(LinkPlacement(above.name, child.name, *at))
    return tuple(placements)


@requires_arm
def twist(arm: ArmModel, q: ArrayLike, v: ArrayLike, frame: str | None = None) -> Vector:
    """Return the twist J(q) v (6,) [m/s, rad/s] of a frame; q, v (nv,)."""
    q, v, number = check_vector("q", q, arm.nv), check_vector("v", v, arm.nv), frame_id(arm, frame)
    scratch = pinocchio_data(arm)
    pin.forwardKinematics(arm.model, scratch, q, v)
    return as_readonly(pin.getFrameVelocity(arm.model, scratch, number, AXES).vector)


@requires_arm
def acceleration(
    arm: ArmModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str | None = None
) -> Vector:
    """Return J(q) a + J̇(q, v) v (6,) [m/s², rad/s²], the classical acceleration of a frame."""
    q, v, a = (check_vector(name, x, arm.nv) for name, x in (("q", q), ("v", v), ("a", a)))
    scratch, number = pinocchio_data(arm), frame_id(arm, frame)
    pin.forwardKinematics(arm.model, scratch, q, v, a)
    motion = pin.getFrameClassicalAcceleration(arm.model, scratch, number, AXES)
    return as_readonly(motion.vector)


@requires_arm
def jacobian(arm: ArmModel, q: ArrayLike, frame: str | None = None) -> Matrix:
    """Return the geometric Jacobian J(q) of a frame, twist = J v.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.
    q : array_like
        Configuration (nv,) [rad or m].
    frame : str, optional
        Name of a link; by default the tool frame.

    Returns
    -------
    Matrix
        J (6, nv): rows x, y, z [m/rad], then rx, ry, rz [1], in base axes at the frame's origin.

    """
    scratch, number = pinocchio_data(arm), frame_id(arm, frame)
    pin.computeJointJacobians(arm.model, scratch, check_vector("q", q, arm.nv))
    pin.updateFramePlacement(arm.model, scratch, number)
    J = pin.getFrameJacobian(arm.model, scratch, number, AXES)
    return as_readonly(J.reshape(6, arm.nv))  # Pinocchio's is flat for one joint


@requires_arm
def jacobian_derivative(
    arm: ArmModel, q: ArrayLike, v: ArrayLike, frame: str | None = None
) -> Matrix:
    """Return J̇(q, v) = Σ ∂J/∂q_i v_i (6, nv) of a frame."""
    q, v, number = check_vector("q", q, arm.nv), check_vector("v", v, arm.nv), frame_id(arm, frame)
    scratch, tree = tree_data(arm), arm.tree
    pin.computeJointJacobiansTimeVariation(
        tree, scratch, arm.tree_positions(q), arm.tree_velocities(v)
    )
    pin.updateFramePlacement(tree, scratch, number)
    derivative = pin.getFrameJacobianTimeVariation(tree, scratch, number, AXES).reshape(6, tree.nv)
    return as_readonly(derivative @ arm.mimic_matrix[0] if arm.mimic_joints else derivative)


@requires_arm
def tool_pose(arm: ArmModel, q: ArrayLike) -> tuple[Vector, Matrix]:
    """Return position (3,) [m] and rotation matrix (3, 3) of the tool frame in the base frame."""
    return pose(arm, q)


@requires_arm
def tool_position(arm: ArmModel, q: ArrayLike) -> Vector:
    """Return the position of the tool frame in the base frame (3,) [m]."""
    return pose(arm, q)[0]


@requires_arm
def joint_origins(arm: ArmModel, q: ArrayLike) -> Matrix:
    """Return the origins of the joints, then of the tool, in the base frame (nv + 1, 3) [m]."""
    tool = tool_position(arm, q)
    placed = pinocchio_data(arm).oMi
    return as_readonly([*(placed[i + 1].translation for i in arm.tree_indices), tool])


@requires_arm
def link_poses(arm: ArmModel, q: ArrayLike) -> dict[str, tuple[Vector, Matrix]]:
    """Return position (3,) [m] and rotation (3, 3) of every link in the base frame, by name."""
    scratch = pinocchio_data(arm)
    pin.framesForwardKinematics(arm.model, scratch, check_vector("q", q, arm.nv))
    bodies = [(i, frame.name) for i, frame in enumerate(arm.model.frames) if frame.type == pin.BODY]
    placed = scratch.oMf
    return {
        n: (as_readonly(placed[i].translation), as_readonly(placed[i].rotation)) for i, n in bodies
    }


def in_axes(rotation: Matrix, motion_or_force: Vector) -> Vector:
    """Return a twist or wrench (6,) in the axes of ``rotation`` R (3, 3): Rᵀ times each part."""
    return as_readonly((motion_or_force.reshape(2, 3) @ rotation).ravel())


@requires_arm
def frame_id(arm: ArmModel, frame: str | None = None) -> int:
    """Return Pinocchio's index of a link's frame; raises UnknownName with the links."""
    name = arm.tool_frame if frame is None else check_type(str, "frame", frame)
    number = int(arm.model.getFrameId(name, pin.BODY))  # a joint may have the same name
    if number == arm.model.nframes:
        links = tuple(f.name for f in arm.model.frames if f.type == pin.BODY)
        raise UnknownName(f"frame of arm '{arm.name}'", name, links)
    return number
