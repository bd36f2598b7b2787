"""Modes of the joints between events: in which end stop, sticking or sliding."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.simulation.friction import velocity_after_dry_friction
from arm_dynamics.simulation.integrators.integrator import System

STOP, SPEED, HOLD = range(3)
"""Rows of the margins: to the end of a stop's range, to rest, to breaking away."""
MAX_EVALUATIONS = 300_000
"""Evaluations of ẏ per ``Modes``: ten seconds of five links in chaotic free fall take 190 000."""


class Modes:
    """ẏ = f(y), y = (q, v, z), with every joint's mode held; valid while ``margins`` are positive.

    side (nv,): -1 in the lower stop, 1 in the upper, 0 between. slide (nv,): the sign of v, by
    which dry friction acts. stuck: joints that friction holds, v_i = v̇_i = 0.
    """

    def __init__(self, system: System, y: Vector) -> None:
        self.system, self.nv, self.evaluations = system, system.lower.size, 0
        self.dry_friction_joints = np.flatnonzero(system.dry_friction_joints)
        q, v, _ = self.split(y)
        outward = (q >= system.upper) & (v > 0), (q <= system.lower) & (v < 0)
        upper, lower = (q > system.upper) | outward[0], (q < system.lower) | outward[1]
        self.side = upper.astype(float) - lower
        self.slide, self.stuck = np.zeros(self.nv), np.zeros(0, dtype=int)
        self._place(y)
        self.decide(y, {})

    def split(self, y: Vector) -> tuple[Vector, Vector, Vector]:
        """Return q, v and z of y."""
        return y[: self.nv], y[self.nv : 2 * self.nv], y[2 * self.nv :]

    def __call__(self, _: float, y: Vector) -> Vector:
        """Return ẏ = (v, v̇, n - λ z); raises InvalidValue after MAX_EVALUATIONS calls."""
        self.evaluations += 1
        if self.evaluations > MAX_EVALUATIONS:
            raise InvalidValue(f"more than {MAX_EVALUATIONS} evaluations of the accelerations")
        q, v, z = self.split(y)
        a = self.system.acceleration(q, v, z)
        if self.dry_friction_joints.size:
            a = self._rubbed(q, v, z, a)[0]
        if not z.size:
            return np.concatenate([v, a])
        decay, source = self.system.act_dot_terms(q, v, z)
        return np.concatenate([v, a, source - decay * z])

    def _rubbed(self, q: Vector, v: Vector, z: Vector, a: Vector) -> tuple[Vector, Vector]:
        """Return v̇ with dry friction, and the friction reserve of each stuck joint [N·m].

        Sliding: λ_i = -f_i or b_i. Stuck: λ_s from v̇_s = 0, (M⁻¹)_ss λ_s = -v̇_s without it.
        """
        inverse = self.system.inverse_mass(q)
        forward, backward = self.system.dry_friction_bounds(q, v, z)
        effort = np.where(self.slide > 0, -forward, np.where(self.slide < 0, backward, 0.0))
        s = self.stuck
        a = a + inverse @ effort
        held = np.linalg.solve(inverse[np.ix_(s, s)], -a[s])
        a += inverse[:, s] @ held
        a[s] = 0.0
        return a, np.array([backward[s] - held, held + forward[s]])

    def decide(self, y: Vector, released: dict[int, float]) -> None:
        """Decide which joints at rest stick or slide; ``released`` ones slide in that direction.

        -f_i <= λ_i <= b_i,  λ_i = -f_i where v̇_i > 0, b_i where v̇_i < 0: the problem of
        ``velocity_after_dry_friction`` with accelerations in place of velocities.
        """
        q, v, z = self.split(y)
        r = self.dry_friction_joints
        self.slide[r], self.stuck = np.sign(v[r]), self.stuck[:0]
        for i, direction in released.items():
            self.slide[i] = direction
        rest = r[self.slide[r] == 0]
        if not rest.size:
            return
        a, _ = self._rubbed(q, v, z, self.system.acceleration(q, v, z))
        inverse = self.system.inverse_mass(q)[np.ix_(rest, rest)]
        forward, backward = self.system.dry_friction_bounds(q, v, z)
        after = velocity_after_dry_friction(a[rest], inverse.copy(), forward[rest], backward[rest])
        self.slide[rest] = np.sign(after)
        self.stuck = rest[after == 0]

    def margins(self, y: Vector) -> Vector:
        """Return the margins of each mode (3, nv): STOP [rad], SPEED [rad/s], HOLD [N·m]."""
        q, v, z = self.split(y)
        lower, upper = self.system.lower, self.system.upper
        margins = np.full((3, self.nv), np.inf)
        inside, side = np.minimum(upper - q, q - lower), self.side
        margins[STOP] = np.where(side > 0, q - upper, np.where(side < 0, lower - q, inside))
        moving = self.slide != 0
        margins[SPEED, moving] = (self.slide * v)[moving]
        if self.stuck.size:
            _, left = self._rubbed(q, v, z, self.system.acceleration(q, v, z))
            margins[HOLD, self.stuck] = left.min(axis=0)
        return margins

    def switch(self, y: Vector, kind: int, joint: int) -> None:
        """Set the modes after the end of margin (kind, joint); y is changed in place."""
        q, v, z = self.split(y)
        released = {}
        if kind == STOP:
            q[joint] = self._limit(joint, q[joint])
            self.side[joint] = self._next_side(joint, q[joint])
        elif kind == SPEED:
            v[joint] = 0.0
            v[self.slide * v < 0] = 0.0  # those that came to rest in the same instant
        else:
            _, left = self._rubbed(q, v, z, self.system.acceleration(q, v, z))
            k = int(np.flatnonzero(self.stuck == joint)[0])
            released = {joint: -1.0 if left[0, k] < left[1, k] else 1.0}
        self._place(y)
        self.decide(y, released)

    def _limit(self, joint: int, q: float) -> float:
        """Return the limit that the joint reaches at q."""
        lower, upper = float(self.system.lower[joint]), float(self.system.upper[joint])
        return lower if abs(q - lower) < abs(q - upper) else upper

    def _next_side(self, joint: int, limit: float) -> float:
        """Return the side after entering or leaving the end stop at ``limit``."""
        if self.side[joint] != 0:
            return 0.0
        return 1.0 if limit == self.system.upper[joint] else -1.0

    def _place(self, y: Vector) -> None:
        """Set the end stops by ``side``: inactive, or active also where the joint just left."""
        q, (lower, upper) = y[: self.nv], (self.system.lower, self.system.upper)
        down, up = self.side < 0, self.side > 0
        q[up] = np.maximum(q, np.nextafter(upper, np.inf))[up]
        q[down] = np.minimum(q, np.nextafter(lower, -np.inf))[down]
        self.system.set_end_stops(
            np.where(up, upper, np.where(down, lower, -np.inf)),
            np.where(up, upper, np.where(down, lower, np.inf)),
        )
