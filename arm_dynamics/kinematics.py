"""Where the tool is."""

from __future__ import annotations

import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.dynamics import data
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm


@takes_arm
def tool_pose(arm: ArmModel, q: ArrayLike) -> tuple[Vector, Vector]:
    """Position (3,) [m] and rotation matrix (3, 3) of the tool frame in the base frame.

    oMf(q) = oMi(q) iMf. Raises InvalidValue for a wrong size or a non-finite entry.
    """
    scratch = data(arm)
    pin.forwardKinematics(arm.model, scratch, vector("q", q, arm.nv))
    tool = arm.model.getFrameId(arm.tool_frame, pin.BODY)  # a joint may have the same name
    placement = pin.updateFramePlacement(arm.model, scratch, tool)
    return frozen(placement.translation), frozen(placement.rotation)


@takes_arm
def tool_position(arm: ArmModel, q: ArrayLike) -> Vector:
    """Position of the tool frame in the base frame (3,) [m]."""
    return tool_pose(arm, q)[0]


@takes_arm
def chain_points(arm: ArmModel, q: ArrayLike) -> Vector:
    """Origins of the joints, in their order, and of the tool in the base frame (nv + 1, 3) [m].

    Raises InvalidValue for a wrong size or a non-finite entry.
    """
    tool = tool_position(arm, q)
    placed = data(arm).oMi
    return frozen([*(placed[i + 1].translation for i in range(arm.nv)), tool])
