"""Articulated-body inertias of any tree of revolute or prismatic joints, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.dynamics.bodies import Body


class Tree(NamedTuple):
    """Bodies as arrays.

    Attributes
    ----------
    parents, slides : IntArray
        Parent body (-1: base), and whether the joint is prismatic; shape (n,).
    rotation, offset : FloatArray
        Frame of the joint in its parent's: (n, 3, 3), and (n, 3) [m].
    inertia : FloatArray
        Spatial inertia at the joint's frame, angular part first; shape (n, 6, 6).
    gravity : Vector
        Gravity [m/s²], shape (3,).

    """

    parents: IntArray
    slides: IntArray
    rotation: FloatArray
    offset: FloatArray
    inertia: FloatArray
    gravity: Vector


def body_tree(table: Sequence[Body], gravity: Vector) -> Tree:
    """Return the table of ``bodies`` as arrays."""
    return Tree(
        np.array([body.parent for body in table]),
        np.array([body.prismatic for body in table]),
        np.array([body.rotation for body in table]),
        np.array([body.translation for body in table]),
        np.array([_spatial_inertia(body) for body in table]),
        np.array(gravity),
    )


def _spatial_inertia(body: Body) -> Matrix:
    """[[I + m c×c×ᵀ, m c×], [m c×ᵀ, m 1]]. Source: Featherstone (2008), eq. 2.63."""
    x, y, z = (float(value) for value in body.center)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    mass, spatial = float(body.mass), np.zeros((6, 6))
    spatial[:3, :3] = np.array(body.inertia, dtype=float) + mass * cross @ cross.T
    spatial[:3, 3:], spatial[3:, :3] = mass * cross, mass * cross.T
    spatial[3:, 3:] = mass * np.eye(3)
    return spatial


@compiled
def joint_transform(slide: bool, rotation: Matrix, offset: Vector, q: float, turn: Matrix) -> None:
    """Write X = [[E, 0], [-E r×, E]] to ``turn``; E = (R Rz(q))ᵀ, r the joint's origin."""
    c, s = (1.0, 0.0) if slide else (np.cos(q), np.sin(q))
    r = offset + q * rotation[:, 2] if slide else offset
    for k in range(3):
        turn[0, k] = c * rotation[k, 0] + s * rotation[k, 1]
        turn[1, k] = c * rotation[k, 1] - s * rotation[k, 0]
        turn[2, k] = rotation[k, 2]
    for a in range(3):
        e = turn[a]
        turn[3 + a, 0] = e[2] * r[1] - e[1] * r[2]
        turn[3 + a, 1] = e[0] * r[2] - e[2] * r[0]
        turn[3 + a, 2] = e[1] * r[0] - e[0] * r[1]
        for k in range(3):
            turn[3 + a, 3 + k] = e[k]


@compiled
def matvec(matrix: Matrix, x: Vector, out: Vector) -> None:
    """Write matrix (6, 6) times x (6,) to ``out`` (6,)."""
    for a in range(6):
        total = 0.0
        for b in range(6):
            total += matrix[a, b] * x[b]
        out[a] = total


@compiled
def eliminate(
    turn: Matrix,
    inertia: Matrix,
    joint: tuple[Vector, float, float],
    product: Vector,
    force: Vector,
    parent: tuple[Matrix, Vector],
) -> None:
    """Add a joint's articulated inertia Xᵀ (I - U D⁻¹ Uᵀ) X and bias force Xᵀ p to its parent.

    ``joint``: U (6,), D and effort; ``parent``: inertia (6, 6) and bias force (6,), changed in
    place.

    References
    ----------
    R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1.

    """
    (column, pivot, effort), (parent_inertia, parent_force) = joint, parent
    rest, passed, half = np.zeros((6, 6)), np.zeros(6), np.zeros((6, 6))
    for a in range(6):
        for b in range(6):
            rest[a, b] = inertia[a, b] - column[a] * column[b] / pivot
    matvec(rest, product, passed)
    for a in range(6):
        passed[a] += force[a] + column[a] * effort / pivot
    for a in range(6):
        for b in range(6):
            for k in range(6):
                half[a, b] += rest[a, k] * turn[k, b]
    for a in range(6):
        for k in range(6):
            parent_force[a] += turn[k, a] * passed[k]
            for b in range(6):
                parent_inertia[a, b] += turn[k, a] * half[k, b]
