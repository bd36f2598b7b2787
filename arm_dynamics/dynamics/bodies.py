"""Table of an arm's rigid bodies, in which every joint moves along or about its z axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel

ROUNDING = 1e-15
"""Distance from an integer below which entries of rotations and translations are that integer."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A moving body: ``parent`` (-1: the base), its joint's frame in the parent's, its inertia.

    rotation (3, 3), translation (3,) [m]; mass [kg], center (3,) [m] and inertia (3, 3) [kg·m²]
    about that center, in the joint's frame; armature [kg·m²]. Masses may be symbols. ``turn``
    (3, 3) rotates this frame into Pinocchio's frame of the joint.
    """

    parent: int
    prismatic: bool
    rotation: Matrix
    translation: Vector
    mass: Any
    center: Any
    inertia: Any
    armature: Any
    turn: Matrix


def bodies(arm: ArmModel) -> tuple[Body, ...]:
    """Return the bodies of an arm: Pinocchio's placements and inertias, with joint axes along z.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.

    Returns
    -------
    tuple of Body
        nv bodies in joint order; with mimic joints those of ``arm.tree``.

    """
    model, data = arm.tree, arm.tree.createData()
    turns, table = [np.eye(3)], []
    for i in range(1, model.njoints):
        jacobian = pin.computeJointJacobian(model, data, pin.neutral(model), i)
        subspace = jacobian.reshape(6, -1)[:, i - 1]  # of one joint it is flat
        prismatic = bool(np.abs(subspace[3:]).max() < 0.5)
        turn = _frame_about(subspace[:3] if prismatic else subspace[3:])
        parent, placement, inertia = model.parents[i], model.jointPlacements[i], model.inertias[i]
        before = turns[parent].T
        turns.append(turn)
        table.append(
            Body(
                parent - 1,
                prismatic,
                rotation=_clean(before @ placement.rotation @ turn),
                translation=_clean(before @ placement.translation),
                mass=float(inertia.mass),
                center=turn.T @ inertia.lever,
                inertia=turn.T @ inertia.inertia @ turn,
                armature=float(model.armature[i - 1]),
                turn=turn,
            )
        )
    return tuple(table)


def _frame_about(axis: Vector) -> Matrix:
    """Return the rotation (3, 3) whose third column is ``axis``; if possible a permutation."""
    unit = axis / np.linalg.norm(axis)
    helper = np.eye(3)[(int(np.argmax(np.abs(unit))) + 1) % 3]
    first = helper - (helper @ unit) * unit
    first /= np.linalg.norm(first)
    return _clean(np.stack([first, np.cross(unit, first), unit], axis=1))


def _clean(matrix: FloatArray) -> FloatArray:
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < ROUNDING, nearest, matrix)
