"""Limits of commands: position, velocity, effort, effort rate, derating and soft limit zones.

In the zone before a position limit, efforts toward the limit fade and a damper brakes the joint.
"""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled,
    compiled_for,
    maximum,
    minimum,
    where,
)
from arm_dynamics.core.small_matrices import solve_spd
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.controlled_stop import reaction_time
from arm_dynamics.safety.safety_settings import SafetySettings


@compiled_for(NUMBER, NUMBER, NUMBER, NUMBER)
def derating_scale(temperature: float, start: float, limit: float, least: float) -> float:
    """Return the effort scale of a warm motor.

    s = clip(1 - (1 - least) (T - start) / (limit - start), least, 1); temperatures [°C]; 1 if the
    temperature is not measured (NaN).
    """
    fallen = (1.0 - least) * (temperature - start) / (limit - start)
    return where(fallen > 0.0, clip(1.0 - fallen, least, 1.0), 1.0)


FADE = 0.1
"""Fraction of a velocity limit over which accelerating efforts fade."""
MAX_STEP = 0.5
"""Largest fraction of its velocity that a damper removes per cycle; above 1 it oscillates."""

BRAKING = 0.02
"""Time constant [s] of braking a velocity beyond its limit, if the cycle is short enough."""


@compiled
def overspeed_damping(inertia: float, dt: float) -> float:
    """Return B = m / BRAKING,  B <= MAX_STEP m / dt [N·m·s/rad]."""
    return minimum(inertia / BRAKING, MAX_STEP * inertia / maximum(dt, 1e-6))


@compiled
def distance_scale(distance: float, zone: float) -> float:
    """Return s = clip(distance / zone, 0, 1) of the distance to a limit; 1 without a zone."""
    inside = clip(distance / maximum(zone, 1e-12), 0.0, 1.0)
    return where(zone > 0.0, inside, where(distance > 0, 1.0, 0.0))


@compiled
def soft_limit_damping(inertia: float, push: float, speed: float, zone: float, dt: float) -> float:
    """Return D = m r + k / r,  k = u / z,  r = max(V / z, sqrt(k / m)),  D <= MAX_STEP m / dt.

    With u (1 - x / z) toward the limit, x the distance into the zone,
    m x'' + D x' + k x = k z  has the real roots -r and -k / (m r): a joint that enters at no more
    than V approaches x = z and never passes it. Inertia m [kg·m²], largest push u [N·m] beyond the
    gravity torque, V [rad/s], zone z [rad], cycle dt [s]; returns [N·m·s/rad].
    """
    stiffness = push / maximum(zone, 1e-12)
    root = maximum(speed / maximum(zone, 1e-12), math.sqrt(stiffness / inertia))
    desired = inertia * root + stiffness / root
    return where(zone > 0.0, minimum(desired, MAX_STEP * inertia / maximum(dt, 1e-6)), 0.0)


@compiled
def soft_limited_effort(
    desired: float,
    gravity_torque: float,
    v: float,
    below: float,
    above: float,
    speed: float,
    damping: float,
    brake: float,
) -> float:
    """Return τ = g + s (τ* - g) - D v - B v_over: the gravity torque g does not fade.

    s is ``distance_scale`` on the side toward which τ* - g acts (``below``, ``above``), or the
    velocity scale clip((V - |v|) / (FADE V), 0, 1) if that is smaller and the joint accelerates. D
    acts on a joint that moves toward a limit in its zone, B [N·m·s/rad] on v_over, its velocity
    beyond V. Efforts [N·m], speed limit V and v [rad/s].
    """
    push = desired - gravity_torque
    slack = clip((speed - abs(v)) / (FADE * speed), 0.0, 1.0)
    distance = where(push > 0.0, above, below)
    scale = where(push * v > 0.0, minimum(distance, slack), distance)
    ahead = where(v > 0.0, above, below)
    over = v - clip(v, -speed, speed)
    return gravity_torque + scale * push - where(ahead < 1.0, damping, 0.0) * v - brake * over


MAX_VELOCITY = 100.0
"""Velocity limit [rad/s or m/s] of joints without one."""
MAX_PERIOD = 0.05
"""Longest time [s] for the change of a command, after an interruption of the host."""
LOWER, UPPER, SPEED, EFFORT = 0, 1, 2, 3


@compiled_for(VECTOR, VECTOR, MATRIX, NUMBER)
def near_limits(q: Vector, v: Vector, table: Vector, zone: float) -> bool:
    """Return whether any joint is near a position or velocity limit of ``table`` (4, nv)."""
    near = 0
    for i in range(q.size):
        near += q[i] < table[LOWER, i] + zone or q[i] > table[UPPER, i] - zone
        near += abs(v[i]) > (1.0 - FADE) * table[SPEED, i]
    return near > 0


@compiled_for(VECTOR, (VECTOR, VECTOR), (VECTOR, MATRIX), MATRIX, NUMBER, NUMBER, VECTOR_OUT)
def soft_limit_efforts(
    desired: Vector, state: tuple[Vector, Vector], dynamics: tuple[Vector, Matrix], table: Matrix,
    zone: float, dt: float, out: Vector,
) -> None:  # fmt: skip
    """Write ``soft_limited_effort`` of every joint into ``out`` (nv,).

    ``state``: q and v (nv,); ``dynamics``: gravity torque (nv,) and mass matrix M (nv, nv).
    D <= m / dt and B <= MAX_STEP m / dt, m = 1 / Σ_j |M⁻¹_ij|: no eigenvalue of dt M⁻¹ (D + B)
    then exceeds 1.5, for any coupling of the joints (column sums); dampers are unstable from 2.
    """
    (q, v), (gravity_torque, M) = state, dynamics
    inverse = solve_spd(M, np.eye(q.size))
    for i in range(q.size):
        coupled = 0.0
        for j in range(q.size):
            coupled += abs(inverse[i, j])
        push, limit = table[EFFORT, i] + abs(gravity_torque[i]), 1.0 / (coupled * maximum(dt, 1e-6))
        damping = minimum(soft_limit_damping(M[i, i], push, table[SPEED, i], zone, dt), limit)
        below = distance_scale(q[i] - table[LOWER, i], zone)
        above = distance_scale(table[UPPER, i] - q[i], zone)
        speed, brake = table[SPEED, i], minimum(overspeed_damping(M[i, i], dt), MAX_STEP * limit)
        out[i] = soft_limited_effort(
            desired[i], gravity_torque[i], v[i], below, above, speed, damping, brake
        )


@compiled_for(VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, NUMBER, VECTOR_OUT)
def clamp_efforts(
    desired: Vector, last: Vector, temperature: Vector, table: Vector, hot: Vector, step: float,
    out: Vector,
) -> None:  # fmt: skip
    """Write τ = clip(clip(τ*, ±s(T) τmax), last ± step τmax) of every joint into ``out`` (nv,)."""
    for i in range(desired.size):
        limit = table[EFFORT, i]
        scale = derating_scale(temperature[i], hot[0], hot[1], hot[2])
        limited = clip(desired[i], -scale * limit, scale * limit)
        out[i] = clip(limited, last[i] - step * limit, last[i] + step * limit)


class CommandLimiter:
    """Limits commands of an arm; stores the last command.

    Efforts change by at most ``max_effort_rate`` limits per second, after derating and soft
    limits. A position command moves at most at the velocity limit, and from beyond a position
    limit only inward. A velocity fades toward a position limit.
    """

    def __init__(self, arm: ArmModel, settings: SafetySettings, delay: float = 0.0) -> None:
        """``delay`` [periods] from a measurement to its command: it reduces the damping."""
        self.arm = arm
        self.settings = s = settings
        self._late = reaction_time(LoopTiming(1.0, delay))
        speed = s.velocity_limit_scale * np.minimum(arm.velocity_limit, MAX_VELOCITY)
        self.table = np.array(
            [arm.lower, arm.upper, speed, s.effort_limit_scale * arm.effort_limit]
        )
        self.last: Vector = np.zeros(arm.nv)
        self._hot = np.array([s.derating_temperature, s.max_temperature, s.derating_min_scale])
        self._apply = {
            "effort": self._effort,
            "position": self._position,
            "velocity": self._velocity,
        }

    def start(self, value: Vector) -> None:
        """Start from ``value`` (nv,), the present command of the motors."""
        self.last = np.array(value, float)

    def apply(
        self, interface: str, desired: Vector, q: Vector, v: Vector, temperature: Vector, dt: float
    ) -> Vector:
        """Return the limited command for ``desired`` (nv,), dt [s] after the last one."""
        dt = min(max(dt, 0.0), MAX_PERIOD)
        self.last = self._apply[interface](desired, q, v, temperature, dt)
        return self.last

    def effort_bound(self, temperature: Vector) -> Vector:
        """Return s(T) τmax (nv,) [N·m]."""
        scales = [derating_scale(t, *self._hot.tolist()) for t in temperature.tolist()]
        bound: Vector = np.array(scales) * self.table[EFFORT]
        return bound

    def gravity_effort(self, q: Vector, temperature: Vector) -> Vector:
        """Return clip(g(q), ±s(T) τmax) (nv,) [N·m]."""
        bound = self.effort_bound(temperature)
        limited: Vector = np.minimum(np.maximum(gravity(self.arm, q), -bound), bound)
        return limited

    def _effort(
        self, desired: Vector, q: Vector, v: Vector, temperature: Vector, dt: float
    ) -> Vector:
        out, zone = np.empty(q.size), self.settings.soft_limit_zone
        if near_limits(q, v, self.table, zone):
            dynamics = gravity(self.arm, q), mass_matrix(self.arm, q)
            soft_limit_efforts(desired, (q, v), dynamics, self.table, zone, self._late * dt, out)
            desired = out
        step = self.settings.max_effort_rate * dt
        clamp_efforts(desired, self.last, temperature, self.table, self._hot, step, out)
        return out

    def _position(
        self, desired: Vector, q: Vector, v: Vector, temperature: Vector, dt: float
    ) -> Vector:
        lower, upper, speed, _ = self.table
        step = speed * dt
        near = np.minimum(np.maximum(desired, self.last - step), self.last + step)
        outer = np.minimum(lower, self.last), np.maximum(upper, self.last)  # may move back
        limited: Vector = np.minimum(np.maximum(near, outer[0]), outer[1])
        return limited

    def _velocity(
        self, desired: Vector, q: Vector, v: Vector, temperature: Vector, dt: float
    ) -> Vector:
        out = np.empty(q.size)
        soft_limit_velocities(desired, q, self.table, self.settings.soft_limit_zone, out)
        return out


@compiled_for(VECTOR, VECTOR, MATRIX, NUMBER, VECTOR_OUT)
def soft_limit_velocities(
    desired: Vector, q: Vector, table: Vector, zone: float, out: Vector
) -> None:
    """Write v = clip(v*, -s_below V, s_above V), s = ``distance_scale``, into ``out`` (nv,)."""
    for i in range(q.size):
        below = distance_scale(q[i] - table[LOWER, i], zone)
        above = distance_scale(table[UPPER, i] - q[i], zone)
        speed = table[SPEED, i]
        out[i] = minimum(maximum(desired[i], -below * speed), above * speed)
