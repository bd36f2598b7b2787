"""Frames and inertias of the bodies on symbols, with as few rotations and numbers as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol
from arm_dynamics.dynamics.bodies import ROUNDING, Body

Rotation = tuple[SX, SX]
"""Cosine and sine of an angle about z."""


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """Frame of a body relative to its parent's, and the body's inertia in it.

    Attributes
    ----------
    fixed : SX
        Constant rotation, shape (3, 3), before that about z.
    turn : Rotation or None
        Rotation about z; None if the frame does not rotate.
    translation : SX
        Origin in the parent's frame, shape (3,).
    inertia : Inertia
        Inertia about the origin.
    body : Rotation or None
        Rotation of the body about z in this frame; None if the frame rotates with the body.

    """

    fixed: SX
    turn: Rotation | None
    translation: SX
    inertia: Inertia
    body: Rotation | None = None

    def to_parent(self, vector: SX) -> SX:
        """Return a vector of this frame in the parent's axes."""
        return self.fixed @ (vector if self.turn is None else rotated_about_z(vector, self.turn))

    def from_parent(self, vector: SX) -> SX:
        """Return a vector of the parent's frame in this frame's axes."""
        fixed = self.fixed.T @ vector
        if self.turn is None:
            return fixed
        return rotated_about_z(fixed, (self.turn[0], -self.turn[1]))

    def inertia_in_parent(self, inertia: Inertia) -> Inertia:
        """Return an inertia of this frame about the parent's origin, in its axes."""
        rotated = inertia if self.turn is None else inertia.rotated_about_z(self.turn)
        return rotated.moved(self.fixed, self.translation)


def frames(table: Sequence[Body], q: Sequence[SX]) -> list[BodyFrame]:
    """Return one frame per body at configuration q.

    Of neighbors with parallel axes only the last frame rotates, by the sum of their angles:
    between them no vector has to be rotated.

    References
    ----------
    W. Khalil, E. Dombre, Modeling, Identification and Control of Robots (2002), section 9.6
    (grouping of parallel joints).

    """
    fixed_axes = [_keeps_axes(table, i) for i in range(len(table))]
    angles: list[SX] = []
    found: list[BodyFrame] = []
    for i, (body, own) in enumerate(zip(table, with_regrouped_inertias(table), strict=True)):
        grouped = body.parent >= 0 and fixed_axes[body.parent]
        angle = q[i]
        if grouped:  # parallel axes: the fixed rotation is about z too
            yaw = atan2(body.rotation[1, 0], body.rotation[0, 0])
            angle = q[i] + (angles[body.parent] + yaw)
        angles.append(angle)
        turn = None if body.prismatic else (ca.cos(angle), ca.sin(angle))
        translation = sx(body.translation)
        if grouped:
            before = angles[body.parent]
            translation = rotated_about_z(translation, (ca.cos(before), ca.sin(before)))
        if body.prismatic:
            translation = translation + sx(body.rotation[:, 2]) * q[i]
        fixed = ca.SX.eye(3) if grouped else sx(body.rotation)
        if fixed_axes[i] and turn is not None:
            found.append(BodyFrame(fixed, None, translation, own.rotated_about_z(turn), turn))
        else:
            found.append(BodyFrame(fixed, turn, translation, own))
    return found


def _keeps_axes(table: Sequence[Body], i: int) -> bool:
    """Return whether the frame of body i need not rotate.

    The body is revolute and has a parent, and all its children are revolute about parallel axes.
    """
    children = [body for body in table if body.parent == i]
    if table[i].prismatic or table[i].parent < 0 or not children:
        return False
    return all(
        not body.prismatic and abs(body.rotation[2, 2] - 1.0) <= ROUNDING for body in children
    )


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass m, first moment m c (3,) and inertia (3, 3) about a frame's origin, in its axes."""

    mass: SX
    moment: SX
    turning: SX

    @classmethod
    def of(cls, body: Body) -> Inertia:
        """Return a body's inertia in the frame of its joint: I + m (cᵀc 1 - c cᵀ)."""
        mass, center = sx(body.mass), sx(body.center)
        turning = sx(body.inertia) + mass * _spread(center, center)
        return cls(mass, mass * center, _symmetric(turning))

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass + other.mass, self.moment + other.moment, self.turning + other.turning
        )

    def __sub__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass - other.mass, self.moment - other.moment, self.turning - other.turning
        )

    def symmetric_part(self) -> Inertia:
        """Return the part that is rotationally symmetric about z, without the inertia about z."""
        moment, turning = ca.SX.zeros(3), ca.SX.zeros(3, 3)
        moment[2] = self.moment[2]
        turning[0, 0] = turning[1, 1] = self.turning[1, 1]
        return Inertia(self.mass, moment, turning)

    def rotated_about_z(self, turn: Rotation) -> Inertia:
        """Return the inertia of the body rotated about z: R I Rᵀ, with I symmetric.

        The entries xx, yy and xy contain the term (I_xx - I_yy) s + 2 I_xy c.
        """
        (c, s), matrix = turn, self.turning
        a, b, e, x, y = matrix[0, 0], matrix[0, 1], matrix[1, 1], matrix[0, 2], matrix[1, 2]
        shared = (a - e) * s + (b + b) * c
        rotated = ca.SX(matrix)
        rotated[0, 0], rotated[1, 1], rotated[0, 1] = a - s * shared, e + s * shared, c * shared - b
        rotated[0, 2], rotated[1, 2] = c * x - s * y, s * x + c * y
        return Inertia(self.mass, rotated_about_z(self.moment, turn), _symmetric(rotated))

    def moved(self, rotation: SX, r: SX) -> Inertia:
        """Return the inertia in the frame in which this one is at (rotation, r)."""
        moment = rotation @ self.moment
        shift = _spread(r, moment) + _spread(moment, r) + self.mass * _spread(r, r)
        turning = _symmetric(rotation @ self.turning @ rotation.T) + shift
        return Inertia(self.mass, moment + self.mass * r, _symmetric(turning))


def with_regrouped_inertias(table: Sequence[Body]) -> list[Inertia]:
    """Return inertias with the same equations of motion and far fewer numbers.

    The part of a body that is rotationally symmetric about its revolute axis moves as if it
    belonged to the parent: the mass m, the first moment h_z and diag(J, J, 0) with J = I_yy. The
    body keeps h_x, h_y, I_xx - J, I_zz and the products of inertia.

    References
    ----------
    M. Gautier, W. Khalil, IEEE Trans. Robotics and Automation 6 (1990), 368.

    """
    inertias = [Inertia.of(body) for body in table]
    for i in reversed(range(len(table))):
        body, own = table[i], inertias[i]
        if body.prismatic:
            continue
        symmetric = own.symmetric_part()
        inertias[i] = own - symmetric
        if body.parent >= 0:
            moved = symmetric.moved(sx(body.rotation), sx(body.translation))
            inertias[body.parent] = inertias[body.parent] + moved
    return inertias


def rotated_about_z(vector: SX, turn: Rotation) -> SX:
    """Return a vector (3,) rotated about z."""
    (c, s), (x, y, z) = turn, entries(vector)
    return ca.vertcat(c * x - s * y, s * x + c * y, z)


def entries(vector: SX) -> tuple[SX, SX, SX]:
    """Return the three components of a vector."""
    return vector[0], vector[1], vector[2]


def sx(value: Any) -> SX:
    """Return a number, or an array of numbers or symbols, as SX."""
    array = np.array(value, dtype=object)
    rows = [[Symbol(x).sx for x in np.atleast_1d(line)] for line in np.atleast_1d(array)]
    return ca.vertcat(*[ca.horzcat(*line) for line in rows])


def _spread(a: SX, b: SX) -> SX:
    """(aᵀb) 1 - a bᵀ."""
    return ca.dot(a, b) * ca.SX.eye(3) - a @ b.T


def _symmetric(matrix: SX) -> SX:
    """Copy the upper triangle, so that equal entries are one expression."""
    whole = ca.SX(matrix)
    for i in range(3):
        for j in range(i):
            whole[i, j] = whole[j, i]
    return whole
