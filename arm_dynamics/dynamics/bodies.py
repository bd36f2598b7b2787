"""An arm's rigid bodies as a table in which every joint moves along or about its own z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

ROUNDING = 1e-15
"""Entries of rotations and translations this close to -1, 0 or 1 are these."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A moving body: ``parent`` (-1: the base), its joint's frame in the parent's, its inertia.

    rotation (3, 3), translation (3,) [m]; mass [kg], centre (3,) [m] and inertia (3, 3) [kg·m²]
    about that centre, in the joint's frame; armature [kg·m²]. Masses may be symbols. ``turn``
    takes this frame to the one that Pinocchio has for the joint.
    """

    parent: int
    prismatic: bool
    rotation: Vector
    translation: Vector
    mass: Any
    centre: Any
    inertia: Any
    armature: Any
    turn: Vector


def bodies(arm: ArmModel) -> tuple[Body, ...]:
    """The table of ``arm``: Pinocchio's placements and inertias, turned so that axes are z."""
    model, data = arm.model, arm.model.createData()
    turns, table = [np.eye(3)], []
    for i in range(1, model.njoints):
        jacobian = pin.computeJointJacobian(model, data, pin.neutral(model), i)
        subspace = jacobian.reshape(6, -1)[:, i - 1]  # of one joint it is flat
        prismatic = bool(np.abs(subspace[3:]).max() < 0.5)
        turn = _to_z(subspace[:3] if prismatic else subspace[3:])
        parent, placement, inertia = model.parents[i], model.jointPlacements[i], model.inertias[i]
        before = turns[parent].T
        turns.append(turn)
        table.append(
            Body(
                parent - 1,
                prismatic,
                _clean(before @ placement.rotation @ turn),
                _clean(before @ placement.translation),
                float(inertia.mass),
                turn.T @ inertia.lever,
                turn.T @ inertia.inertia @ turn,
                float(model.armature[i - 1]),
                turn,
            )
        )
    return tuple(table)


def _to_z(axis: Vector) -> Vector:
    """Rotation whose third column is ``axis``; a permutation where that is possible."""
    unit = axis / np.linalg.norm(axis)
    helper = np.eye(3)[(int(np.argmax(np.abs(unit))) + 1) % 3]
    first = helper - (helper @ unit) * unit
    first /= np.linalg.norm(first)
    return _clean(np.stack([first, np.cross(unit, first), unit], axis=1))


def _clean(matrix: Vector) -> Vector:
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < ROUNDING, nearest, matrix)
