"""Body at the tool frame: link that carries it, and prior of an unknown payload."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.parameters.pseudo_inertia import inertial_parameters
from arm_dynamics.model.arm_model import ArmModel

PRIOR_RADIUS = 0.05
"""Standard deviation of the mass of the prior body along each axis [m]."""


def tool_link(arm: ArmModel) -> int:
    """Return the index of the joint that moves the tool frame; raises InvalidValue without one."""
    joint = arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)].parentJoint
    if joint == 0:
        raise InvalidValue(
            f"arm '{arm.name}': tool frame = '{arm.tool_frame}', which no joint moves; expected a"
            " link that carries the payload"
        )
    return int(joint) - 1


def payload_ball(arm: ArmModel, mass: float) -> Vector:
    """Return the inertial parameters (10,) of a ball at the tool frame, in the joint's frame."""
    tool = arm.model.frames[arm.model.getFrameId(arm.tool_frame, pin.BODY)].placement
    first = tool.translation[:, None]
    second = mass * (PRIOR_RADIUS**2 * np.eye(3) + first @ first.T)
    return inertial_parameters(
        np.block([[second, mass * first], [mass * first.T, np.array([[mass]])]])
    )
