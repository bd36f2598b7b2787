"""Chain of joints from the base to a frame as arrays for compiled code; its pose error and J."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.dynamics.kinematics.frames import frame_id
from arm_dynamics.model.arm_argument import require_no_mimic_joints
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A serial chain of n joints, each about or along the z axis of its frame.

    ``placements`` (n + 1, 12): rotation column by column, then the origin [m]. Row i places joint
    i in the frame of joint i - 1, row 0 in the base, and row n the end in the last joint.
    ``slides`` (n,): 1 for a prismatic joint, 0 for a revolute one. ``lower`` and ``upper`` (n,)
    [rad or m], infinite for continuous joints. ``joints`` (n,): their indices in the arm.
    ``number``: Pinocchio's index of the frame. ``strides`` (n,): steps of an additive recurrence
    that fills the unit cube evenly.
    Source of the strides: M. Roberts, The Unreasonable Effectiveness of Quasirandom Sequences
    (2018): 1/φ, 1/φ² ..., φ the root above 1 of φ^(n + 1) = φ + 1.
    """

    number: int
    placements: Matrix
    slides: Vector
    joints: NDArray[np.intp]
    lower: Vector
    upper: Vector
    strides: Vector


_chains: WeakKeyDictionary[ArmModel, dict[str | None, Chain]] = WeakKeyDictionary()
_lock = threading.Lock()


def chain_of(arm: ArmModel, frame: str | None) -> Chain:
    """Return the chain to a frame, by default the tool frame; computed once for each arm.

    Raises UnknownName for an unknown frame.
    """
    try:
        return _chains[arm][frame]
    except (KeyError, TypeError):
        number = frame_id(arm, frame)  # raises for an unknown name
    with _lock:
        return _chains.setdefault(arm, {}).setdefault(frame, _make_chain(arm, number))


def _make_chain(arm: ArmModel, number: int) -> Chain:
    """Return the chain to Pinocchio's frame ``number``."""
    table, end = bodies(arm), arm.model.frames[number]
    joints: list[int] = []
    joint = end.parentJoint - 1
    while joint >= 0:
        joints.insert(0, joint)
        joint = table[joint].parent
    if not {*joints} <= {*arm.tree_indices}:
        require_no_mimic_joints(arm, f"inverse kinematics of frame '{end.name}', which they move")
    turn = table[joints[-1]].turn.T if joints else np.eye(3)
    last = turn @ end.placement.rotation, turn @ end.placement.translation
    placed = [*((table[j].rotation, table[j].translation) for j in joints), last]
    root = 1.5
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (len(joints) + 1.0))
    indices = np.array([arm.tree_indices.index(j) for j in joints], dtype=np.intp)
    return Chain(
        number,
        as_readonly([[*R.T.ravel(), *p] for R, p in placed]),
        as_readonly([float(table[j].prismatic) for j in joints]),
        indices,
        as_readonly(arm.lower[indices]),
        as_readonly(arm.upper[indices]),
        as_readonly(root ** -np.arange(1.0, len(joints) + 1.0)),
    )


SMALL = 1e-2
"""Angle [rad] below which the series of the logarithm's slope is exact in floating point."""


@compiled
def place_chain(
    placements: Matrix, slides: Vector, q: Vector, axes: Matrix, origins: Matrix, R: Matrix
) -> None:
    """Write the joints' axes (n, 3) in the base frame, and the rotation R (3, 3) of the end.

    ``origins`` (n + 1, 3) become those of the joints and of the end.
    """
    n = q.size
    for a in range(3):
        for b in range(3):
            R[a, b] = 1.0 if a == b else 0.0
    for i in range(n + 1):
        c, s, slid = 1.0, 0.0, 0.0
        if i < n and slides[i] > 0.0:
            slid = q[i]
        elif i < n:
            c, s = math.cos(q[i]), math.sin(q[i])
        for a in range(3):
            x, y, z = R[a, 0], R[a, 1], R[a, 2]
            u = x * placements[i, 0] + y * placements[i, 1] + z * placements[i, 2]
            v = x * placements[i, 3] + y * placements[i, 4] + z * placements[i, 5]
            w = x * placements[i, 6] + y * placements[i, 7] + z * placements[i, 8]
            p = x * placements[i, 9] + y * placements[i, 10] + z * placements[i, 11]
            R[a, 0], R[a, 1], R[a, 2] = c * u + s * v, c * v - s * u, w
            origins[i, a] = p + slid * w + (origins[i - 1, a] if i > 0 else 0.0)
            if i < n:
                axes[i, a] = w


@compiled
def pose_error(
    origins: Matrix,
    R: Matrix,
    position: Vector,
    rotation: Matrix,
    rows: Matrix,
    turns: bool,
    e: Vector,
    turn: Vector,
) -> None:
    """Write e = (W_p (p* - p), W_r φ) (6,) and φ = log(R* Rᵀ) (3,) [rad].

    ``rows`` (6, 3) are W_p and W_r: weights times the axes to which they apply. φ is computed only
    with ``turns``: if a rotation has a weight.
    """
    if turns:
        phi = rotation_vector(R, rotation)
        for a in range(3):
            turn[a] = phi[a]
    end = origins.shape[0] - 1
    for k in range(3):
        e[k], e[3 + k] = 0.0, 0.0
        for a in range(3):
            e[k] += rows[k, a] * (position[a] - origins[end, a])
            e[3 + k] += rows[3 + k, a] * turn[a]


@compiled
def error_jacobian(
    axes: Matrix, origins: Matrix, slides: Vector, rows: Matrix, turn: Vector, J: Matrix
) -> None:
    """Write J = -∂e/∂q (6, n), from the geometric Jacobian of the end.

    R* Rᵀ becomes R* Rᵀ exp(-δ) as the end turns by δ: ∂φ/∂δ = -(1 + [φ]/2 + g [φ]²), with [φ] the
    matrix of φ × and g = (1 - (θ/2) cot(θ/2)) / θ², θ = |φ|.
    """
    n = slides.size
    square = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]
    g = 1.0 / 12.0 + square / 720.0
    if square > SMALL * SMALL:
        half = 0.5 * math.sqrt(square)
        g = (1.0 - half / math.tan(half)) / square
    for i in range(n):
        inner = turn[0] * axes[i, 0] + turn[1] * axes[i, 1] + turn[2] * axes[i, 2]
        for k in range(6):
            J[k, i] = 0.0
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            along, about = axes[i, a], 0.0
            if slides[i] == 0.0:
                y, z = origins[n, b] - origins[i, b], origins[n, c] - origins[i, c]
                along = axes[i, b] * z - axes[i, c] * y
                cross = turn[b] * axes[i, c] - turn[c] * axes[i, b]
                about = axes[i, a] + 0.5 * cross + g * (turn[a] * inner - square * axes[i, a])
            for k in range(3):
                J[k, i] += rows[k, a] * along
                J[3 + k, i] += rows[3 + k, a] * about
