"""Rigid bodies with the tree as data: any revolute or prismatic joints, one compiled law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.dynamics.bodies import Body


class Tree(NamedTuple):
    """Bodies as arrays.

    parents (n,), slides (n,), rotation (n, 3, 3), offset (n, 3), inertia (n, 6, 6) at the joints'
    frames with the angular part first, armature (n,), gravity (3,).
    """

    parents: Vector
    slides: Vector
    rotation: Vector
    offset: Vector
    inertia: Vector
    armature: Vector
    gravity: Vector


def tree(table: Sequence[Body], gravity: Vector) -> Tree:
    """The table of ``bodies`` as arrays."""
    return Tree(
        np.array([body.parent for body in table]),
        np.array([body.prismatic for body in table]),
        np.array([body.rotation for body in table]),
        np.array([body.translation for body in table]),
        np.array([_spatial(body) for body in table]),
        np.array([float(body.armature) for body in table]),
        np.array(gravity),
    )


def _spatial(body: Body) -> Vector:
    """[[I + m c×c×ᵀ, m c×], [m c×ᵀ, m 1]]. Source: Featherstone (2008), eq. 2.63."""
    x, y, z = (float(value) for value in body.centre)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    mass, spatial = float(body.mass), np.zeros((6, 6))
    spatial[:3, :3] = np.array(body.inertia, dtype=float) + mass * cross @ cross.T
    spatial[:3, 3:], spatial[3:, :3] = mass * cross, mass * cross.T
    spatial[3:, 3:] = mass * np.eye(3)
    return spatial


@compiled
def accelerations(body: Tree, q: Vector, v: Vector, tau: Vector, gravity: Vector) -> Vector:
    """v̇ (nv,) = M⁻¹ (tau - C v - g), articulated-body algorithm.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1, with the spatial
    transform Xᵢ from parent to child as 6x6 matrices.
    """
    parents, slides, inertia = body.parents, body.slides, body.inertia
    n = q.size
    turn, speed, product = np.zeros((n, 6, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    whole, force = inertia.copy(), np.zeros((n, 6))
    for i in range(n):
        along = 5 if slides[i] else 2
        joint_transform(slides[i], body.rotation[i], body.offset[i], q[i], turn[i])
        if parents[i] >= 0:
            matvec(turn[i], speed[parents[i]], speed[i])
        speed[i, along] += v[i]
        _cross(speed[i], along, v[i], product[i])
        _bias(inertia[i], speed[i], force[i])
    column, pivot, left = np.zeros((n, 6)), np.zeros(n), np.zeros(n)
    for i in range(n - 1, -1, -1):
        along = 5 if slides[i] else 2
        column[i] = whole[i, :, along]
        pivot[i] = column[i, along] + body.armature[i]
        left[i] = tau[i] - force[i, along]
        if parents[i] >= 0:
            eliminate(
                turn[i], whole[i], column[i], pivot[i], left[i], product[i], force[i],
                whole[parents[i]], force[parents[i]],
            )  # fmt: skip
    return _outward(parents, slides, turn, product, column, pivot, left, gravity)


@compiled
def _outward(
    parents: Vector,
    slides: Vector,
    turn: Vector,
    product: Vector,
    column: Vector,
    pivot: Vector,
    left: Vector,
    gravity: Vector,
) -> Vector:
    """From the base to the tips: the base accelerates against gravity."""
    n = pivot.size
    result, moved, base = np.zeros(n), np.zeros((n, 6)), np.zeros(6)
    for k in range(3):
        base[3 + k] = -gravity[k]
    for i in range(n):
        along = 5 if slides[i] else 2
        matvec(turn[i], moved[parents[i]] if parents[i] >= 0 else base, moved[i])
        rest = left[i]
        for k in range(6):
            moved[i, k] += product[i, k]
            rest -= column[i, k] * moved[i, k]
        result[i] = rest / pivot[i]
        moved[i, along] += result[i]
    return result


@compiled
def joint_transform(slide: bool, rotation: Vector, offset: Vector, q: float, turn: Vector) -> None:
    """X = [[E, 0], [-E r×, E]] into ``turn``, E = (R Rz(q))ᵀ, r the joint's place in its parent."""
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
def matvec(matrix: Vector, x: Vector, out: Vector) -> None:
    """Matrix (6, 6) times x (6,), into ``out`` (6,)."""
    for a in range(6):
        total = 0.0
        for b in range(6):
            total += matrix[a, b] * x[b]
        out[a] = total


@compiled
def _cross(speed: Vector, along: int, v: float, out: Vector) -> None:
    """speed × (v along the joint's axis z), turning (2) or sliding (5)."""
    if along == 2:
        out[0], out[1] = speed[1] * v, -speed[0] * v
        out[3], out[4] = speed[4] * v, -speed[3] * v
    else:
        out[3], out[4] = speed[1] * v, -speed[0] * v


@compiled
def _bias(inertia: Vector, x: Vector, out: Vector) -> None:
    """x ×* (I x): the force of the velocities."""
    f = np.zeros(6)
    matvec(inertia, x, f)
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        out[k] = x[a] * f[b] - x[b] * f[a] + x[3 + a] * f[3 + b] - x[3 + b] * f[3 + a]
        out[3 + k] = x[a] * f[3 + b] - x[b] * f[3 + a]


@compiled
def eliminate(
    turn: Vector,
    whole: Vector,
    column: Vector,
    pivot: float,
    left: float,
    product: Vector,
    force: Vector,
    parent_whole: Vector,
    parent_force: Vector,
) -> None:
    """Take a joint out: Xᵀ (I - U D⁻¹ Uᵀ) X and Xᵀ p go to the parent."""
    rest, passed, half = np.zeros((6, 6)), np.zeros(6), np.zeros((6, 6))
    for a in range(6):
        for b in range(6):
            rest[a, b] = whole[a, b] - column[a] * column[b] / pivot
    matvec(rest, product, passed)
    for a in range(6):
        passed[a] += force[a] + column[a] * left / pivot
    for a in range(6):
        for b in range(6):
            for k in range(6):
                half[a, b] += rest[a, k] * turn[k, b]
    for a in range(6):
        for k in range(6):
            parent_force[a] += turn[k, a] * passed[k]
            for b in range(6):
                parent_whole[a, b] += turn[k, a] * half[k, b]
