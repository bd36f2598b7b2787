"""Tool positions of recorded configurations."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.rollouts.steppers import BatchStepper, Records
from arm_dynamics.core.arrays import FloatArray
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel

TOOL = "tool_position"


def tool_positions(arm: ArmModel, q: FloatArray) -> FloatArray:
    """Return the position of the tool frame in the base frame.

    From the tool to the base, p <- R Rz(q) p + t, or p <- R (p + q z) + t for a prismatic joint,
    for all configurations at the same time.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    q : FloatArray
        Configurations [rad or m], shape (..., nv).

    Returns
    -------
    FloatArray
        Positions [m], shape (..., 3).

    """
    frame = arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)]
    table, i, point = bodies(arm), frame.parentJoint - 1, frame.placement.translation
    point = np.broadcast_to(table[i].turn.T @ point if i >= 0 else point, (*q.shape[:-1], 3))
    while i >= 0:
        body, value = table[i], np.asarray(q[..., i], dtype=float)
        x, y, z = np.moveaxis(point, -1, 0)
        if body.prismatic:
            moved = np.stack([x, y, z + value], axis=-1)
        else:
            c, s = np.cos(value), np.sin(value)
            moved = np.stack([c * x - s * y, s * x + c * y, z], axis=-1)
        point, i = moved @ body.rotation.T + body.translation, body.parent
    return np.array(point)


def advance_with_tool(
    stepper: BatchStepper,
    arm: ArmModel,
    commands: FloatArray,
    steps_per_command: int,
    record_every: int,
    records: Records,
) -> None:
    """Advance ``stepper``; fill the tool positions too if they are recorded."""
    others = {name: array for name, array in records.items() if name != TOOL}
    if TOOL in records and "q" not in others:
        others["q"] = np.empty((*records[TOOL].shape[:2], arm.nv))
    stepper.advance(commands, steps_per_command, record_every, others)
    if TOOL in records:
        records[TOOL][:] = tool_positions(arm, others["q"])
