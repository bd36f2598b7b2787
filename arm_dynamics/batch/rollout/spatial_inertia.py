"""Where each body's quantities are expressed: frames that turn as seldom as they can.

Inertia of a body about its joint's frame, on symbols, and the fewest numbers that move alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.rollout.symbolic_math import Symbol
from arm_dynamics.dynamics.bodies import ROUNDING, Body

SX = Any


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """A body's frame in its parent's, turned from ``fixed`` about z by ``turn``, and its inertia.

    fixed (3, 3), translation (3,); turn is None where the frame does not turn.
    """

    fixed: SX
    turn: Turn | None
    translation: SX
    inertia: Inertia

    def out(self, vector: SX) -> SX:
        """A vector of this frame in the parent's axes."""
        return self.fixed @ (vector if self.turn is None else rotated_about_z(vector, self.turn))

    def back(self, vector: SX) -> SX:
        """A vector of the parent's frame in this one's axes."""
        found = self.fixed.T @ vector
        return found if self.turn is None else rotated_about_z(found, (self.turn[0], -self.turn[1]))

    def seen_by_parent(self, inertia: Inertia) -> Inertia:
        """An inertia of this frame about the parent's."""
        turned = inertia if self.turn is None else inertia.spun(self.turn)
        return turned.moved(self.fixed, self.translation)


def frames(table: Sequence[Body], q: Sequence[SX]) -> list[BodyFrame]:
    """One a body, at position q.

    Of neighbours with parallel axes only the last one's frame turns, by the sum of their angles:
    between them nothing is rotated. Source: W. Khalil and E. Dombre, Modeling, Identification
    and Control of Robots (2002), section 9.6 (grouping of parallel joints).
    """
    resting = [_rests(table, i) for i in range(len(table))]
    angles: list[SX] = []
    found: list[BodyFrame] = []
    for i, (body, own) in enumerate(zip(table, with_regrouped_inertias(table), strict=True)):
        held = body.parent >= 0 and resting[body.parent]
        angle = q[i] + (angles[body.parent] + _yaw(body) if held else 0)
        angles.append(angle)
        turn = None if body.prismatic else (ca.cos(angle), ca.sin(angle))
        translation = sx(body.translation)
        if held:
            before = angles[body.parent]
            translation = rotated_about_z(translation, (ca.cos(before), ca.sin(before)))
        if body.prismatic:
            translation = translation + sx(body.rotation[:, 2]) * q[i]
        fixed = ca.SX.eye(3) if held else sx(body.rotation)
        if resting[i] and turn is not None:
            found.append(BodyFrame(fixed, None, translation, own.spun(turn)))
        else:
            found.append(BodyFrame(fixed, turn, translation, own))
    return found


def _rests(table: Sequence[Body], i: int) -> bool:
    """Whether body i's frame may stand still: it moves on another, and carries parallel ones."""
    carried = [body for body in table if body.parent == i]
    turns = not table[i].prismatic and table[i].parent >= 0
    return turns and bool(carried) and all(map(_parallel, carried))


def _parallel(body: Body) -> bool:
    return not body.prismatic and bool(abs(body.rotation[2, 2] - 1.0) <= ROUNDING)


def _yaw(body: Body) -> float:
    """The angle of a rotation about z."""
    return atan2(body.rotation[1, 0], body.rotation[0, 0])


Turn = tuple[SX, SX]
"""Cosine and sine of an angle about z."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass m, first moment m c (3,) and second moments (3, 3) about a frame's origin, its axes."""

    mass: SX
    moment: SX
    turning: SX

    @classmethod
    def of(cls, body: Body) -> Inertia:
        """A body's, in the frame of its joint: I + m (cᵀc 1 - c cᵀ)."""
        mass, centre = sx(body.mass), sx(body.centre)
        turning = sx(body.inertia) + mass * _spread(centre, centre)
        return cls(mass, mass * centre, _symmetric(turning))

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass + other.mass, self.moment + other.moment, self.turning + other.turning
        )

    def __sub__(self, other: Inertia) -> Inertia:
        return Inertia(
            self.mass - other.mass, self.moment - other.moment, self.turning - other.turning
        )

    def even(self) -> Inertia:
        """The part that is the same all round z, without inertia about z."""
        moment, turning = ca.SX.zeros(3), ca.SX.zeros(3, 3)
        moment[2] = self.moment[2]
        turning[0, 0] = turning[1, 1] = self.turning[1, 1]
        return Inertia(self.mass, moment, turning)

    def spun(self, turn: Turn) -> Inertia:
        """The same body after a turn about z."""
        return Inertia(
            self.mass, rotated_about_z(self.moment, turn), _spun_about_z(self.turning, *turn)
        )

    def moved(self, rotation: SX, r: SX) -> Inertia:
        """The same body seen from the frame in which its own stands at (rotation, r)."""
        moment = rotation @ self.moment
        shift = _spread(r, moment) + _spread(moment, r) + self.mass * _spread(r, r)
        turning = _symmetric(rotation @ self.turning @ rotation.T) + shift
        return Inertia(self.mass, moment + self.mass * r, _symmetric(turning))


def with_regrouped_inertias(table: Sequence[Body]) -> list[Inertia]:
    """Inertias of an arm that moves alike with far fewer numbers.

    What of a body is the same all round its revolute axis moves as if it belonged to the parent:
    its mass m, the first moment h_z and diag(J, J, 0) with J = I_yy. Left are h_x, h_y, I_xx - J,
    I_zz and the products; the mass is gone, and with it most of the arithmetic.
    Source: M. Gautier and W. Khalil, IEEE Trans. Robotics and Automation 6 (1990), 368.
    """
    inertias = [Inertia.of(body) for body in table]
    for i in reversed(range(len(table))):
        body, own = table[i], inertias[i]
        if body.prismatic:
            continue
        even = own.even()
        inertias[i] = own - even
        if body.parent >= 0:
            moved = even.moved(sx(body.rotation), sx(body.translation))
            inertias[body.parent] = inertias[body.parent] + moved
    return inertias


def rotated_about_z(vector: SX, turn: Turn) -> SX:
    """Vector (3,) after a turn about z."""
    (c, s), (x, y, z) = turn, entries(vector)
    return ca.vertcat(c * x - s * y, s * x + c * y, z)


def entries(vector: SX) -> tuple[SX, SX, SX]:
    """The three numbers of a vector."""
    return vector[0], vector[1], vector[2]


def sx(value: Any) -> SX:
    """A number, an array of numbers or of symbols, as SX."""
    array = np.array(value, dtype=object)
    rows = [[Symbol(x).sx for x in np.atleast_1d(line)] for line in np.atleast_1d(array)]
    return ca.vertcat(*[ca.horzcat(*line) for line in rows])


def _spread(a: SX, b: SX) -> SX:
    """(aᵀb) 1 - a bᵀ."""
    return ca.dot(a, b) * ca.SX.eye(3) - a @ b.T


def _spun_about_z(matrix: SX, c: SX, s: SX) -> SX:
    """R A Rᵀ of symmetric A, R about z; (a, b; b, e) share s ((a - e) s + 2 b c)."""
    a, b, e, x, y = matrix[0, 0], matrix[0, 1], matrix[1, 1], matrix[0, 2], matrix[1, 2]
    shared = (a - e) * s + (b + b) * c
    whole = ca.SX(matrix)
    whole[0, 0], whole[1, 1], whole[0, 1] = a - s * shared, e + s * shared, c * shared - b
    whole[0, 2], whole[1, 2] = c * x - s * y, s * x + c * y
    return _symmetric(whole)


def _symmetric(matrix: SX) -> SX:
    """The upper triangle on both sides, so that equal entries are one expression."""
    whole = ca.SX(matrix)
    for i in range(3):
        for j in range(i):
            whole[i, j] = whole[j, i]
    return whole
