"""Rigid-body dynamics on symbols: zeros and ones of the table vanish from the expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.rollout.bodies import Body
from arm_dynamics.rollout.symbol import Symbol

SX = Any


class Chain:
    """Bodies at position q: transforms and inertias as expressions.

    q, cosines and sines are SX scalars, one a body.
    """

    def __init__(self, table: Sequence[Body], gravity: Vector, q: Sequence[SX]) -> None:
        self.table = tuple(table)
        self.gravity = ca.SX(ca.DM(np.array(gravity)))
        self.inertias = regrouped(table)
        self.turns = [
            None if body.prismatic else (ca.cos(x), ca.sin(x))
            for body, x in zip(table, q, strict=True)
        ]
        self.rotation = [_rotation(b, turn) for b, turn in zip(table, self.turns, strict=True)]
        self.translation = [
            ca.SX(ca.DM(body.translation))
            + (ca.SX(ca.DM(body.rotation[:, 2])) * x if body.prismatic else 0)
            for body, x in zip(table, q, strict=True)
        ]

    def acceleration(self, v: Sequence[SX], tau: Sequence[SX]) -> list[SX]:
        """v̇ = M⁻¹ (tau - C v - g), articulated-body algorithm.

        Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1, with spatial
        vectors as pairs of 3-vectors.
        """
        speeds = self._velocities(v)
        inertias = list(self.inertias)
        forces = [
            _bias(inertia, w, u) for inertia, (w, u, _, _) in zip(inertias, speeds, strict=True)
        ]
        solved: list[Any] = [None] * len(self.table)
        for i in reversed(range(len(self.table))):
            solved[i] = self._eliminate(i, inertias, forces, speeds[i], tau[i])
        return self._accelerate(solved, speeds)

    def inverse_dynamics(self, v: Sequence[SX], a: Sequence[SX]) -> list[SX]:
        """tau = M a + C v + g, recursive Newton-Euler algorithm; armature included.

        Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 5.1.
        """
        speeds = self._velocities(v)
        moved: list[Any] = []
        forces: list[Any] = []
        for i, body in enumerate(self.table):
            w, u, cw, cu = speeds[i]
            aw, au = self._carried(i, moved)
            along = ca.SX.zeros(3)
            along[2] = a[i]
            aw, au = (aw + cw, au + cu + along) if body.prismatic else (aw + cw + along, au + cu)
            moved.append((aw, au))
            bias = _bias(self.inertias[i], w, u)
            turned, pushed = self.inertias[i].times(aw, au)
            forces.append((turned + bias[0], pushed + bias[1]))
        tau: list[SX] = [None] * len(self.table)
        for i in reversed(range(len(self.table))):
            n, f = forces[i]
            body = self.table[i]
            tau[i] = (f if body.prismatic else n)[2] + _sx(body.armature) * a[i]
            if body.parent >= 0:
                n, f = self._to_parent(i, n, f)
                old = forces[body.parent]
                forces[body.parent] = (old[0] + n, old[1] + f)
        return tau

    def mass_matrix(self) -> SX:
        """M(q) (nv, nv) by columns of inverse dynamics without gravity."""
        still = Chain.__new__(Chain)
        still.table, still.gravity = self.table, ca.SX.zeros(3)
        still.rotation, still.translation = self.rotation, self.translation
        still.inertias = self.inertias
        size = len(self.table)
        zero = [ca.SX(0)] * size
        columns = []
        for j in range(size):
            unit = [ca.SX(1.0 if i == j else 0.0) for i in range(size)]
            columns.append(ca.vertcat(*still.inverse_dynamics(zero, unit)))
        return ca.horzcat(*columns)

    def _velocities(self, v: Sequence[SX]) -> list[tuple[SX, SX, SX, SX]]:
        """Angular and linear velocity of each body, and the velocity product accelerations."""
        found: list[tuple[SX, SX, SX, SX]] = []
        for i, body in enumerate(self.table):
            back, r = self.rotation[i].T, self.translation[i]
            if body.parent >= 0:
                pw, pu = found[body.parent][:2]
                w, u = back @ pw, back @ (pu + ca.cross(pw, r))
            else:
                w = u = ca.SX.zeros(3)
            along = ca.SX.zeros(3)
            along[2] = v[i]
            if body.prismatic:
                u = u + along
                found.append((w, u, ca.SX.zeros(3), ca.cross(w, along)))
            else:
                w = w + along
                found.append((w, u, ca.cross(w, along), ca.cross(u, along)))
        return found

    def _eliminate(
        self, i: int, inertias: list[_Articulated], forces: list[Any], speed: Any, tau: SX
    ) -> tuple[SX, SX, SX, SX]:
        """Take joint i out: what it needs on the way back; its load goes to the parent."""
        body, inertia, (n, f) = self.table[i], inertias[i], forces[i]
        uw, uu = inertia.column(body.prismatic)
        pivot = 1 / ((uu if body.prismatic else uw)[2] + _sx(body.armature))
        left = tau - (f if body.prismatic else n)[2]
        if body.parent >= 0:
            rest = inertia.without(uw, uu, pivot, body)
            turned, pushed = rest.times(speed[2], speed[3])
            share = left * pivot
            n, f = n + turned + uw * share, f + pushed + uu * share
            parent = body.parent
            inertias[parent] = inertias[parent] + rest.spun(self.turns[i]).moved(
                _sx(body.rotation), self.translation[i]
            )
            n, f = self._to_parent(i, n, f)
            forces[parent] = (forces[parent][0] + n, forces[parent][1] + f)
        return uw, uu, pivot, left

    def _accelerate(self, solved: list[Any], speeds: list[Any]) -> list[SX]:
        result: list[SX] = []
        moved: list[tuple[SX, SX]] = []
        for i, body in enumerate(self.table):
            uw, uu, pivot, left = solved[i]
            aw, au = self._carried(i, moved)
            aw, au = aw + speeds[i][2], au + speeds[i][3]
            a = (left - ca.dot(uw, aw) - ca.dot(uu, au)) * pivot
            along = ca.SX.zeros(3)
            along[2] = a
            moved.append((aw, au + along) if body.prismatic else (aw + along, au))
            result.append(a)
        return result

    def _carried(self, i: int, moved: list[tuple[SX, SX]]) -> tuple[SX, SX]:
        """Acceleration of the parent at joint i; the base accelerates against gravity."""
        body = self.table[i]
        back = self.rotation[i].T
        if body.parent < 0:
            return ca.SX.zeros(3), back @ -self.gravity
        aw, au = moved[body.parent]
        return back @ aw, back @ (au + ca.cross(aw, self.translation[i]))

    def _to_parent(self, i: int, n: SX, f: SX) -> tuple[SX, SX]:
        force = self.rotation[i] @ f
        return self.rotation[i] @ n + ca.cross(self.translation[i], force), force


class _Articulated:
    """Spatial inertia [[I, H], [Hᵀ, M]] at a joint's frame, as three 3x3 blocks."""

    def __init__(self, turning: SX, coupling: SX, mass: SX) -> None:
        self.turning, self.coupling, self.mass = turning, coupling, mass

    @classmethod
    def of(cls, body: Body) -> _Articulated:
        centre = _sx(body.centre)
        cross = ca.skew(centre)
        mass = _sx(body.mass)
        about = _sx(body.inertia) - mass * (cross @ cross)
        return cls(_symmetric(about), mass * cross, mass * ca.SX.eye(3))

    def __add__(self, other: _Articulated) -> _Articulated:
        return _Articulated(
            self.turning + other.turning, self.coupling + other.coupling, self.mass + other.mass
        )

    def __sub__(self, other: _Articulated) -> _Articulated:
        return _Articulated(
            self.turning - other.turning, self.coupling - other.coupling, self.mass - other.mass
        )

    def even(self) -> _Articulated:
        """The part that is the same all round z, without inertia about z."""
        turning, coupling = ca.SX.zeros(3, 3), ca.SX.zeros(3, 3)
        turning[0, 0] = turning[1, 1] = self.turning[1, 1]
        coupling[0, 1], coupling[1, 0] = self.coupling[0, 1], self.coupling[1, 0]
        return _Articulated(turning, coupling, self.mass)

    def times(self, w: SX, u: SX) -> tuple[SX, SX]:
        return self.turning @ w + self.coupling @ u, self.coupling.T @ w + self.mass @ u

    def column(self, prismatic: bool) -> tuple[SX, SX]:
        if prismatic:
            return self.coupling[:, 2], self.mass[:, 2]
        return self.turning[:, 2], self.coupling[2, :].T

    def without(self, uw: SX, uu: SX, pivot: SX, body: Body) -> _Articulated:
        """I - U D⁻¹ Uᵀ; the joint's own row is exactly zero unless it has a rotor."""
        pw, pu = uw * pivot, uu * pivot
        turning, coupling = self.turning - pw @ uw.T, self.coupling - pw @ uu.T
        mass = self.mass - pu @ uu.T
        rotor = isinstance(body.armature, Symbol) or body.armature != 0
        if not rotor and body.prismatic:
            coupling[:, 2] = 0
            mass[:, 2] = mass[2, :] = 0
        elif not rotor:
            coupling[2, :] = 0
            turning[:, 2] = turning[2, :] = 0
        return _Articulated(_symmetric(turning), coupling, _symmetric(mass))

    def spun(self, turn: tuple[SX, SX] | None) -> _Articulated:
        """The same inertia seen before the joint turned by (cosine, sine) about z."""
        if turn is None:
            return self
        return _Articulated(
            _symmetric(_spun(self.turning, *turn)),
            _spun(self.coupling, *turn),
            _symmetric(_spun(self.mass, *turn)),
        )

    def moved(self, rotation: SX, r: SX) -> _Articulated:
        """The same inertia seen at the parent's frame."""
        turning = rotation @ self.turning @ rotation.T
        coupling = rotation @ self.coupling @ rotation.T
        mass = _symmetric(rotation @ self.mass @ rotation.T)
        cross = ca.skew(r)
        shifted = coupling + cross @ mass
        return _Articulated(
            _symmetric(turning + cross @ coupling.T - shifted @ cross), shifted, mass
        )


def _bias(inertia: _Articulated, w: SX, u: SX) -> tuple[SX, SX]:
    """v ×* I v: the force of the velocities."""
    n, f = inertia.times(w, u)
    return ca.cross(w, n) + ca.cross(u, f), ca.cross(w, f)


def regrouped(table: Sequence[Body]) -> list[_Articulated]:
    """Inertias at the joints' frames, of an arm that moves alike with far fewer numbers.

    What of a body is the same all round its revolute axis moves as if it belonged to the parent:
    its mass m, the first moment h_z and diag(J, J, 0) with J = I_yy. Left are h_x, h_y, I_xx - J,
    I_zz and the products; the mass is gone, and with it most of the arithmetic.
    Source: M. Gautier and W. Khalil, IEEE Trans. Robotics and Automation 6 (1990), 368.
    """
    inertias = [_Articulated.of(body) for body in table]
    for i in reversed(range(len(table))):
        body, own = table[i], inertias[i]
        if body.prismatic:
            continue
        even = own.even()
        inertias[i] = own - even
        if body.parent >= 0:
            moved = even.moved(_sx(body.rotation), _sx(body.translation))
            inertias[body.parent] = inertias[body.parent] + moved
    return inertias


def _spun(matrix: SX, c: SX, s: SX) -> SX:
    """R A Rᵀ, R turning about z; (a, b; d, e) share s ((a - e) s + (b + d) c)."""
    (a, b, x), (d, e, y) = ([matrix[i, j] for j in range(3)] for i in range(2))
    u, v = matrix[2, 0], matrix[2, 1]
    shared = (a - e) * s + (b + d) * c
    whole = ca.SX(matrix)
    whole[0, 0], whole[1, 1] = a - s * shared, e + s * shared
    whole[0, 1], whole[1, 0] = c * shared - d, c * shared - b
    whole[0, 2], whole[1, 2] = c * x - s * y, s * x + c * y
    whole[2, 0], whole[2, 1] = c * u - s * v, s * u + c * v
    return whole


def _rotation(body: Body, turn: tuple[SX, SX] | None) -> SX:
    fixed = ca.SX(ca.DM(body.rotation))
    if turn is None:
        return fixed
    c, s = turn
    turned = ca.SX.eye(3) + 0
    turned[0, 0] = turned[1, 1] = c
    turned[0, 1], turned[1, 0] = -s, s
    return fixed @ turned


def _symmetric(matrix: SX) -> SX:
    """The upper triangle on both sides, so that equal entries are one expression."""
    whole = ca.SX(matrix)
    for i in range(3):
        for j in range(i):
            whole[i, j] = whole[j, i]
    return whole


def _sx(value: Any) -> SX:
    """A number, an array of numbers or of symbols, as SX."""
    array = np.array(value, dtype=object)
    rows = [[Symbol(x).sx for x in np.atleast_1d(line)] for line in np.atleast_1d(array)]
    return ca.vertcat(*[ca.horzcat(*line) for line in rows])
