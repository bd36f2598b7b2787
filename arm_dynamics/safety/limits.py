"""What is left of a wanted command within the limits of position, speed, effort and its rate."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.positive import solve_positive
from arm_dynamics.safety.derating import derated_share
from arm_dynamics.safety.safe_stop import reaction_time
from arm_dynamics.safety.settings import SafetySettings
from arm_dynamics.safety.soft_zone import (
    FADE,
    LARGEST_STEP,
    faded_effort,
    room_share,
    speed_brake,
    zone_damping,
)
from arm_dynamics.scalar import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
    maximum,
    minimum,
)
from arm_dynamics.timing import LoopTiming

LARGEST_SPEED = 100.0
"""Speed [rad/s or m/s] taken where a joint has no velocity limit."""
LONGEST = 0.05
"""Longest time [s] that a change of a command is reckoned over: a host that stood still."""
LOWER, UPPER, SPEED, EFFORT = 0, 1, 2, 3


@compiled_for(VECTOR, VECTOR, MATRIX, NUMBER)
def near_limits(q: Vector, v: Vector, table: Vector, zone: float) -> bool:
    """Whether any joint is in a zone before a limit (``table`` (4, nv)) or nearly at its speed."""
    near = 0
    for i in range(q.size):
        near += q[i] < table[LOWER, i] + zone or q[i] > table[UPPER, i] - zone
        near += abs(v[i]) > (1.0 - FADE) * table[SPEED, i]
    return near > 0


@compiled_for(VECTOR, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, NUMBER, NUMBER, VECTOR_OUT)
def fade_efforts(
    wanted: Vector, q: Vector, v: Vector, weight: Vector, M: Vector, table: Vector,
    zone: float, dt: float, out: Vector,
) -> None:  # fmt: skip
    """``faded_effort`` of every joint, into ``out`` (nv,).

    D <= m / dt and B <= LARGEST_STEP m / dt, m = 1 / Σ_j |M⁻¹_ij|: no eigenvalue of dt M⁻¹ (D + B)
    is above 1.5 then, however the joints are coupled (column sums); dampers are unstable from 2.
    """
    inverse = solve_positive(M, np.eye(q.size))
    for i in range(q.size):
        coupled = 0.0
        for j in range(q.size):
            coupled += abs(inverse[i, j])
        push, most = table[EFFORT, i] + abs(weight[i]), 1.0 / (coupled * maximum(dt, 1e-6))
        damping = minimum(zone_damping(M[i, i], push, table[SPEED, i], zone, dt), most)
        below = room_share(q[i] - table[LOWER, i], zone)
        above = room_share(table[UPPER, i] - q[i], zone)
        speed, brake = table[SPEED, i], minimum(speed_brake(M[i, i], dt), LARGEST_STEP * most)
        out[i] = faded_effort(wanted[i], weight[i], v[i], below, above, speed, damping, brake)


@compiled_for(VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, NUMBER, VECTOR_OUT)
def bound_efforts(
    wanted: Vector, last: Vector, temperature: Vector, table: Vector, hot: Vector, step: float,
    out: Vector,
) -> None:  # fmt: skip
    """τ = clip(clip(τ*, ±s(T) τmax), last ± step τmax) of every joint, into ``out`` (nv,)."""
    for i in range(wanted.size):
        limit = table[EFFORT, i]
        share = derated_share(temperature[i], hot[0], hot[1], hot[2])
        held = clip(wanted[i], -share * limit, share * limit)
        out[i] = clip(held, last[i] - step * limit, last[i] + step * limit)


class Limits:
    """Keeps commands within an arm's limits; remembers what was sent last.

    Efforts change by no more than ``effort_rate`` limits a second, whatever else is wanted:
    derating and the soft zone come before. A position goal moves no faster than the velocity
    limit, and from beyond a position limit inward alone; a velocity fades toward a position limit.
    """

    def __init__(self, arm: ArmModel, settings: SafetySettings, delay: float = 0.0) -> None:
        """``delay`` [periods] from a measurement to its command: dampers are weaker for it."""
        self.arm = arm
        self.settings = s = settings
        self._late = reaction_time(LoopTiming(1.0, delay))
        speed = s.velocity_share * np.minimum(arm.velocity_limit, LARGEST_SPEED)
        self.table = np.array([arm.lower, arm.upper, speed, s.effort_share * arm.effort_limit])
        self.last: Vector = np.zeros(arm.nv)
        self._hot = np.array([s.derate_from, s.hottest, s.derate_to])
        self._apply = {"effort": self._effort, "position": self._position, "velocity": self._speed}

    def start(self, value: Vector) -> None:
        """Go on from ``value`` (nv,), what the motors have now."""
        self.last = np.array(value, float)

    def apply(
        self, interface: str, wanted: Vector, q: Vector, v: Vector, temperature: Vector, dt: float
    ) -> Vector:
        """What may be sent instead of ``wanted`` (nv,), dt [s] after the last."""
        dt = min(max(dt, 0.0), LONGEST)
        self.last = self._apply[interface](wanted, q, v, temperature, dt)
        return self.last

    def effort_bound(self, temperature: Vector) -> Vector:
        """s(T) τmax (nv,) [N·m]."""
        shares = [derated_share(t, *self._hot.tolist()) for t in temperature.tolist()]
        bound: Vector = np.array(shares) * self.table[EFFORT]
        return bound

    def carried(self, q: Vector, temperature: Vector) -> Vector:
        """clip(g(q), ±s(T) τmax) (nv,) [N·m]."""
        bound = self.effort_bound(temperature)
        held: Vector = np.minimum(np.maximum(gravity(self.arm, q), -bound), bound)
        return held

    def _effort(self, wanted: Vector, q: Vector, v: Vector, warm: Vector, dt: float) -> Vector:
        out, zone = np.empty(q.size), self.settings.soft_zone
        if near_limits(q, v, self.table, zone):
            weight, M = gravity(self.arm, q), mass_matrix(self.arm, q)
            fade_efforts(wanted, q, v, weight, M, self.table, zone, self._late * dt, out)
            wanted = out
        step = self.settings.effort_rate * dt
        bound_efforts(wanted, self.last, warm, self.table, self._hot, step, out)
        return out

    def _position(self, wanted: Vector, q: Vector, v: Vector, warm: Vector, dt: float) -> Vector:
        lower, upper, speed, _ = self.table
        step = speed * dt
        near = np.minimum(np.maximum(wanted, self.last - step), self.last + step)
        outer = np.minimum(lower, self.last), np.maximum(upper, self.last)  # may be led back
        held: Vector = np.minimum(np.maximum(near, outer[0]), outer[1])
        return held

    def _speed(self, wanted: Vector, q: Vector, v: Vector, warm: Vector, dt: float) -> Vector:
        out = np.empty(q.size)
        fade_speeds(wanted, q, self.table, self.settings.soft_zone, out)
        return out


@compiled_for(VECTOR, VECTOR, MATRIX, NUMBER, VECTOR_OUT)
def fade_speeds(wanted: Vector, q: Vector, table: Vector, zone: float, out: Vector) -> None:
    """v = clip(v*, -s_below V, s_above V), s the share of room left, into ``out`` (nv,)."""
    for i in range(q.size):
        below = room_share(q[i] - table[LOWER, i], zone)
        above = room_share(table[UPPER, i] - q[i], zone)
        speed = table[SPEED, i]
        out[i] = minimum(maximum(wanted[i], -below * speed), above * speed)
