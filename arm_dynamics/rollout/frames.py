"""Where each body's quantities are expressed: frames that turn as seldom as they can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2
from typing import Any

import casadi as ca

from arm_dynamics.bodies import ROUNDING, Body
from arm_dynamics.rollout.inertia import Inertia, Turn, regrouped, spun, sx

SX = Any


@dataclass(frozen=True, eq=False)
class Frame:
    """A body's frame in its parent's, turned from ``fixed`` about z by ``turn``, and its inertia.

    fixed (3, 3), translation (3,); turn is None where the frame does not turn.
    """

    fixed: SX
    turn: Turn | None
    translation: SX
    inertia: Inertia

    def out(self, vector: SX) -> SX:
        """A vector of this frame in the parent's axes."""
        return self.fixed @ (vector if self.turn is None else spun(vector, self.turn))

    def back(self, vector: SX) -> SX:
        """A vector of the parent's frame in this one's axes."""
        found = self.fixed.T @ vector
        return found if self.turn is None else spun(found, (self.turn[0], -self.turn[1]))

    def seen_by_parent(self, inertia: Inertia) -> Inertia:
        """An inertia of this frame about the parent's."""
        turned = inertia if self.turn is None else inertia.spun(self.turn)
        return turned.moved(self.fixed, self.translation)


def frames(table: Sequence[Body], q: Sequence[SX]) -> list[Frame]:
    """One a body, at position q.

    Of neighbours with parallel axes only the last one's frame turns, by the sum of their angles:
    between them nothing is rotated. Source: W. Khalil and E. Dombre, Modeling, Identification
    and Control of Robots (2002), section 9.6 (grouping of parallel joints).
    """
    resting = [_rests(table, i) for i in range(len(table))]
    angles: list[SX] = []
    found: list[Frame] = []
    for i, (body, own) in enumerate(zip(table, regrouped(table), strict=True)):
        held = body.parent >= 0 and resting[body.parent]
        angle = q[i] + (angles[body.parent] + _yaw(body) if held else 0)
        angles.append(angle)
        turn = None if body.prismatic else (ca.cos(angle), ca.sin(angle))
        translation = sx(body.translation)
        if held:
            before = angles[body.parent]
            translation = spun(translation, (ca.cos(before), ca.sin(before)))
        if body.prismatic:
            translation = translation + sx(body.rotation[:, 2]) * q[i]
        fixed = ca.SX.eye(3) if held else sx(body.rotation)
        if resting[i] and turn is not None:
            found.append(Frame(fixed, None, translation, own.spun(turn)))
        else:
            found.append(Frame(fixed, turn, translation, own))
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
