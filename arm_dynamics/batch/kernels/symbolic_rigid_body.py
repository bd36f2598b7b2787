"""Rigid-body dynamics on symbols: zeros and ones of the body table vanish from the expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.spatial_inertia import (
    BodyFrame,
    Inertia,
    Rotation,
    entries,
    frames,
    rotated_about_z,
    sx,
)
from arm_dynamics.batch.kernels.symbolic_math import SX
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.bodies import Body


def solve_ldl(mass: SX, right: SX) -> SX:
    """Return M⁻¹ R by M = Lᵀ D L; zeros of M, between branches of the tree, cost nothing.

    Parameters
    ----------
    mass : SX
        Symmetric positive definite matrix M, shape (n, n).
    right : SX
        R, shape (n, m).

    References
    ----------
    R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.5.

    """
    n, (lower, inverse), x = mass.shape[0], factor_ldl(mass), ca.SX(right)
    for k in reversed(range(n)):
        for i in range(k):
            x[i, :] -= lower[k, i] * x[k, :]
    for k in range(n):
        x[k, :] *= inverse[k]
        for i in range(k):
            x[k, :] -= lower[k, i] * x[i, :]
    return x


def factor_ldl(mass: SX) -> tuple[SX, list[SX]]:
    """Return the unit lower triangular L (n, n) and the entries of D⁻¹ (n,) of M = Lᵀ D L."""
    n = mass.shape[0]
    rest, lower, inverse = ca.SX(mass), ca.SX.eye(n), [ca.SX(1)] * n
    for k in reversed(range(n)):
        inverse[k] = 1 / rest[k, k]
        for i in [i for i in range(k) if not rest[k, i].is_zero()]:
            lower[k, i] = rest[k, i] * inverse[k]
            for j in range(i + 1):
                rest[i, j] -= lower[k, i] * rest[k, j]
    return lower, inverse


def inverse_root(mass: SX) -> SX:
    """Return the lower triangular G (n, n) of M⁻¹ = G Gᵀ: G = L⁻¹ D^(-1/2)."""
    lower, inverse = factor_ldl(mass)
    n, root = mass.shape[0], ca.SX.eye(mass.shape[0])
    for k in range(n):
        for i in range(k):
            root[k, :] -= lower[k, i] * root[i, :]
    return ca.mtimes(root, ca.diag(ca.sqrt(ca.vertcat(*inverse))))


class Chain:
    """Bodies at configuration q, one SX scalar per body: M(q) v̇ + C(q, v) v + g(q) = tau."""

    def __init__(self, table: Sequence[Body], gravity: Vector, q: Sequence[SX]) -> None:
        self.table = tuple(table)
        self.gravity = ca.SX(ca.DM(np.array(gravity)))
        self.frames = frames(table, q)

    def acceleration(self, v: Sequence[SX], tau: Sequence[SX]) -> list[SX]:
        """Return v̇ = M⁻¹ (tau - C v - g).

        Written out for up to about eight joints in series, M and its factors take fewer
        operations than articulated bodies: inertias of composite bodies keep their zeros.
        """
        bias = self.inverse_dynamics(v, [ca.SX(0)] * len(self.table))
        rest = ca.vertcat(*[x - y for x, y in zip(tau, bias, strict=True)])
        found = solve_ldl(self.mass_matrix(), rest)
        return [found[i] for i in range(len(self.table))]

    def inverse_dynamics(self, v: Sequence[SX], a: Sequence[SX]) -> list[SX]:
        """Return tau = M a + C v + g by the Newton-Euler equations, armature included.

        References
        ----------
        J. Luh, M. Walker, R. Paul, J. Dynamic Systems, Measurement and Control 102 (1980), 69;
        with the matrix of all accelerations of a body: W. Khalil, J.-F. Kleinfinger, IEEE J.
        Robotics and Automation 3 (1987), 517.

        """
        loads = self._loads(v, a)
        tau: list[SX] = [None] * len(self.table)
        for i in reversed(range(len(self.table))):
            body, (n, f) = self.table[i], loads[i]
            tau[i] = (f if body.prismatic else n)[2] + sx(body.armature) * a[i]
            if body.parent >= 0:
                moved = _to_parent(self.frames[i], n, f)
                loads[body.parent] = tuple(
                    x + y for x, y in zip(loads[body.parent], moved, strict=True)
                )
        return tau

    def mass_matrix(self) -> SX:
        """Return M(q) (nv, nv) by the composite-rigid-body algorithm, armature included.

        References
        ----------
        R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.2.

        """
        size = len(self.table)
        composite, matrix = [frame.inertia for frame in self.frames], ca.SX.zeros(size, size)
        for i in reversed(range(size)):
            body, (n, f) = self.table[i], _unit_force(composite[i], self.table[i].prismatic)
            matrix[i, i] = (f if body.prismatic else n)[2] + sx(body.armature)
            j = i
            while (above := self.table[j].parent) >= 0:
                n, f = _to_parent(self.frames[j], n, f)
                j = above
                matrix[i, j] = matrix[j, i] = (f if self.table[j].prismatic else n)[2]
            if body.parent >= 0:
                composite[body.parent] += self.frames[i].inertia_in_parent(composite[i])
        return matrix

    def placements(self) -> list[tuple[SX, SX]]:
        """Return rotation (3, 3) and origin (3,) of each body in base axes."""
        placed: list[tuple[SX, SX]] = []
        for body, frame in zip(self.table, self.frames, strict=True):
            rotation, origin = ca.SX.eye(3), ca.SX.zeros(3)
            if body.parent >= 0:
                rotation, origin = placed[body.parent]
            origin = origin + rotation @ frame.translation
            placed.append((_turned(rotation @ frame.fixed, frame.turn), origin))
        return [
            (_turned(rotation, frame.body), origin)
            for (rotation, origin), frame in zip(placed, self.frames, strict=True)
        ]

    def _loads(self, v: Sequence[SX], a: Sequence[SX]) -> list[Any]:
        """Return the inertial moment n and force f of each body, without its children.

        n = I ẇ + w × I w + m c × a and f = m a + field m c; the base accelerates against gravity.
        """
        moved: list[tuple[SX, SX, SX, SX]] = []
        loads = []
        for i, (body, frame) in enumerate(zip(self.table, self.frames, strict=True)):
            w, turning, linear = ca.SX.zeros(3), ca.SX.zeros(3), -self.gravity
            if body.parent >= 0:
                w, turning, linear, field = moved[body.parent]
                linear = linear + field @ frame.translation
            w, turning, linear = (frame.from_parent(x) for x in (w, turning, linear))
            speed, rate = (ca.vertcat(0, 0, x) for x in (v[i], a[i]))
            if body.prismatic:
                linear = linear + 2 * ca.cross(w, speed) + rate
            else:
                turning, w = turning + ca.cross(w, speed) + rate, w + speed
            field = _field(w, turning)
            moved.append((w, turning, linear, field))
            inertia = frame.inertia
            force = inertia.mass * linear + field @ inertia.moment
            moment = inertia.turning @ turning + _gyroscopic(inertia.turning, w)
            loads.append((moment + ca.cross(inertia.moment, linear), force))
        return loads


def _turned(rotation: SX, turn: Rotation | None) -> SX:
    """Return R Rz: a rotation about z before R."""
    if turn is None:
        return rotation
    return ca.horzcat(*[rotated_about_z(rotation[i, :].T, (turn[0], -turn[1])) for i in range(3)]).T


def _field(w: SX, turning: SX) -> SX:
    """Return the matrix (3, 3) from a point of a body to its acceleration: [ẇ] + [w][w]."""
    (x, y, z), (a, b, c) = entries(w), entries(turning)
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    rows = ((-yy - zz, xy - c, xz + b), (xy + c, -xx - zz, yz - a), (xz - b, yz + a, -xx - yy))
    return ca.vertcat(*[ca.horzcat(*row) for row in rows])


def _gyroscopic(I: SX, w: SX) -> SX:  # noqa: E741 - the usual symbol
    """Return w × I w, by the products of w that ``_field`` contains too."""
    x, y, z = entries(w)
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return ca.vertcat(
        (I[2, 2] - I[1, 1]) * yz + I[1, 2] * (yy - zz) + I[0, 2] * xy - I[0, 1] * xz,
        (I[0, 0] - I[2, 2]) * xz + I[0, 2] * (zz - xx) + I[0, 1] * yz - I[1, 2] * xy,
        (I[1, 1] - I[0, 0]) * xy + I[0, 1] * (xx - yy) + I[1, 2] * xz - I[0, 2] * yz,
    )


def _unit_force(inertia: Inertia, prismatic: bool) -> tuple[SX, SX]:
    """Return moment and force of a unit acceleration about or along z."""
    z, (x, y, _) = ca.SX.zeros(3), entries(inertia.moment)
    if not prismatic:
        return inertia.turning[:, 2], ca.vertcat(-y, x, 0)
    z[2] = inertia.mass
    return ca.vertcat(y, -x, 0), z


def _to_parent(frame: BodyFrame, n: SX, f: SX) -> tuple[SX, SX]:
    """Return moment and force about the origin and in the axes of the parent's frame."""
    force = frame.to_parent(f)
    return frame.to_parent(n) + ca.cross(frame.translation, force), force
