"""All forces of the joints, motors, friction and stops, for one arm in one compiled call.

Everything lives in one array of rows, one column a joint: passing one array to compiled code
costs a tenth of passing twelve. The rows' order is this module's alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.actuators.base import Actuator
from arm_dynamics.actuators.dc_motor import dc_motor_effort
from arm_dynamics.actuators.ideal import ideal_effort
from arm_dynamics.arrays import Vector
from arm_dynamics.friction import viscous_effort
from arm_dynamics.model.joint import Joint
from arm_dynamics.scalar import compiled
from arm_dynamics.stops import stop_effort

Q, V, COMMAND, BY_VOLTAGE, EFFORT, TAU = range(6)
LOWER, UPPER, STIFFNESS, DAMPING, VISCOUS, KERNEL, CONSTANTS = range(6, 13)
ROWS = CONSTANTS + 8


def pack(joints: Sequence[Joint], actuators: Sequence[Actuator]) -> Vector:
    """Array (ROWS, nv) with every constant of the joints and their actuators filled in."""
    rows = np.zeros((ROWS, len(joints)))
    for i, (joint, actuator) in enumerate(zip(joints, actuators, strict=True)):
        rows[LOWER, i], rows[UPPER, i] = joint.lower, joint.upper
        rows[STIFFNESS, i], rows[DAMPING, i] = joint.stop_stiffness, joint.stop_damping
        rows[VISCOUS, i] = joint.damping + actuator.viscous_friction
        rows[KERNEL, i] = actuator.kernel
        packed = actuator.packed()
        rows[CONSTANTS : CONSTANTS + len(packed), i] = packed
    return rows


@compiled
def joint_efforts(x: Vector) -> None:
    """Fill EFFORT (actuator) and TAU (actuator + friction + stops) from Q, V and COMMAND.

    tau_i = actuator_i(command_i, v_i) - b_i v_i + stop_i(q_i, v_i)

    x (ROWS, nv), changed in place. Actuators without a compiled law (kernel 0) have their
    EFFORT filled in beforehand.
    """
    for i in range(x.shape[1]):
        q, v, kernel, c = x[Q, i], x[V, i], x[KERNEL, i], x[CONSTANTS:, i]
        if kernel == 1:
            x[EFFORT, i] = ideal_effort(x[COMMAND, i], c[0])
        elif kernel == 2:
            x[EFFORT, i] = dc_motor_effort(
                x[BY_VOLTAGE, i] > 0, x[COMMAND, i], v,
                c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7],
            )  # fmt: skip
        stop = stop_effort(q, v, x[LOWER, i], x[UPPER, i], x[STIFFNESS, i], x[DAMPING, i])
        x[TAU, i] = x[EFFORT, i] + viscous_effort(v, x[VISCOUS, i]) + stop
