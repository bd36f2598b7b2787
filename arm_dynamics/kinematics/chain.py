"""The joints between an arm's base and one of its frames, as arrays that compiled code reads."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.bodies import bodies
from arm_dynamics.kinematics.frames import frame_number
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A serial chain of n joints, each about or along the z axis of its own frame.

    ``placements`` (n + 1, 12): columns of the rotation, then the origin [m], of each joint's frame
    in the one before it, the base's for the first, and of the frame at the end in the last
    joint's. ``slides`` (n,): 1 for a prismatic joint, 0 for a revolute one. ``lower`` and
    ``upper`` (n,) [rad or m], infinite for continuous joints. ``joints`` (n,): their indices in
    the arm. ``number``: Pinocchio's number of the frame. ``strides`` (n,): steps of an additive
    recurrence that fills the unit cube evenly.
    Source of the strides: M. Roberts, The Unreasonable Effectiveness of Quasirandom Sequences
    (2018): 1/φ, 1/φ² ..., φ the root above 1 of φ^(n + 1) = φ + 1.
    """

    number: int
    placements: Vector
    slides: Vector
    joints: NDArray[np.intp]
    lower: Vector
    upper: Vector
    strides: Vector


_chains: WeakKeyDictionary[ArmModel, dict[str | None, Chain]] = WeakKeyDictionary()
_lock = threading.Lock()


def chain_of(arm: ArmModel, frame: str | None) -> Chain:
    """Return the chain to a frame, the tool's by default, made once for each arm.

    Raises UnknownName for an unknown frame.
    """
    try:
        return _chains[arm][frame]
    except (KeyError, TypeError):
        number = frame_number(arm, frame)  # raises for what is no name
    with _lock:
        return _chains.setdefault(arm, {}).setdefault(frame, _chain(arm, number))


def _chain(arm: ArmModel, number: int) -> Chain:
    table, end = bodies(arm), arm.model.frames[number]
    joints: list[int] = []
    joint = end.parentJoint - 1
    while joint >= 0:
        joints.insert(0, joint)
        joint = table[joint].parent
    turn = table[joints[-1]].turn.T if joints else np.eye(3)
    last = turn @ end.placement.rotation, turn @ end.placement.translation
    placed = [*((table[j].rotation, table[j].translation) for j in joints), last]
    root = 1.5
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (len(joints) + 1.0))
    indices = np.array(joints, dtype=np.intp)
    return Chain(
        number,
        frozen([[*R.T.ravel(), *p] for R, p in placed]),
        frozen([float(table[j].prismatic) for j in joints]),
        indices,
        frozen(arm.lower[indices]),
        frozen(arm.upper[indices]),
        frozen(root ** -np.arange(1.0, len(joints) + 1.0)),
    )
