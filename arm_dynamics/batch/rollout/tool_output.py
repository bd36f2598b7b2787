"""Where the tool is in every record of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.rollout.batch_stepper import BatchStepper
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel

TOOL = "tool_position"


def tool_positions(arm: ArmModel, q: Vector) -> Vector:
    """Position of the tool's frame in the base's (..., 3) [m], for q (..., nv).

    From the tool to the base, p ← R Rz(q) p + t, or R (p + q z) + t for a joint that slides.
    """
    frame = arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)]
    table, i, place = bodies(arm), frame.parentJoint - 1, frame.placement.translation
    point = np.broadcast_to(table[i].turn.T @ place if i >= 0 else place, (*q.shape[:-1], 3))
    while i >= 0:
        body, angle = table[i], np.asarray(q[..., i], dtype=float)
        moved = _slid(point, angle) if body.prismatic else _turned(point, angle)
        point, i = moved @ body.rotation.T + body.translation, body.parent
    return np.array(point)


def _slid(point: Vector, along: Vector) -> Vector:
    return np.stack([point[..., 0], point[..., 1], point[..., 2] + along], axis=-1)


def _turned(point: Vector, angle: Vector) -> Vector:
    x, y, z = np.moveaxis(point, -1, 0)
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x - s * y, s * x + c * y, z], axis=-1)


def advance_with_tool(
    lanes: BatchStepper,
    arm: ArmModel,
    given: Vector,
    every: int,
    stride: int,
    out: Mapping[str, Vector],
) -> None:
    """``BatchStepper.advance``, and the tool's positions after it where they are asked for."""
    told = {name: array for name, array in out.items() if name != TOOL}
    if TOOL in out and "q" not in told:
        told["q"] = np.empty((*out[TOOL].shape[:2], arm.nv))
    lanes.advance(given, every, stride, told)
    if TOOL in out:
        out[TOOL][:] = tool_positions(arm, told["q"])
