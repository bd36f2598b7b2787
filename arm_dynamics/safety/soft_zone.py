"""The last stretch before a position limit: efforts that push on fade, and a damper brakes."""

from __future__ import annotations

import math

from arm_dynamics.scalar import clip, compiled, maximum, minimum, where

FADE = 0.1
"""Share of a velocity limit over which efforts that speed a joint up are faded out."""
LARGEST_STEP = 0.5
"""Most that the damper may take of a joint's speed in one cycle: beyond 1 it would swing."""

BRAKING = 0.02
"""Time constant [s] at which a speed beyond its limit is braked, if a cycle can follow."""


@compiled
def speed_brake(inertia: float, dt: float) -> float:
    """B = m / BRAKING,  B <= LARGEST_STEP m / dt [N·m·s/rad]."""
    return minimum(inertia / BRAKING, LARGEST_STEP * inertia / maximum(dt, 1e-6))


@compiled
def room_share(room: float, zone: float) -> float:
    """s = clip(room / zone, 0, 1), of the way that is left; without a zone 1 up to the limit."""
    return where(zone > 0.0, clip(room / maximum(zone, 1e-12), 0.0, 1.0), where(room > 0, 1.0, 0.0))


@compiled
def zone_damping(inertia: float, push: float, speed: float, zone: float, dt: float) -> float:
    """D = m r + k / r,  k = u / z,  r = max(V / z, sqrt(k / m)),  D <= LARGEST_STEP m / dt.

    With u (1 - x / z) pushing on, x the way into the zone,  m x'' + D x' + k x = k z  has the
    real roots -r and -k / (m r): a joint that enters at no more than V approaches x = z and never
    passes it. Inertia m [kg·m²], strongest push u [N·m] beyond the weight, V [rad/s], zone z
    [rad], cycle dt [s]; returns [N·m·s/rad].
    """
    stiffness = push / maximum(zone, 1e-12)
    root = maximum(speed / maximum(zone, 1e-12), math.sqrt(stiffness / inertia))
    wanted = inertia * root + stiffness / root
    return where(zone > 0.0, minimum(wanted, LARGEST_STEP * inertia / maximum(dt, 1e-6)), 0.0)


@compiled
def faded_effort(
    wanted: float,
    weight: float,
    v: float,
    below: float,
    above: float,
    speed: float,
    damping: float,
    brake: float,
) -> float:
    """τ = g + s (τ* - g) - D v - B v_over: what drives a joint on fades, never its weight g.

    s is the share of room left on the side that τ* - g pushes to (``below``, ``above``), or of
    speed, clip((V - |v|) / (FADE V), 0, 1), if that is less and it speeds the joint up. D acts
    on a joint that moves on in a zone, B [N·m·s/rad] on v_over, its speed
    beyond V. Efforts [N·m], speed limit V and v [rad/s].
    """
    push = wanted - weight
    slack = clip((speed - abs(v)) / (FADE * speed), 0.0, 1.0)
    room = where(push > 0.0, above, below)
    share = where(push * v > 0.0, minimum(room, slack), room)
    ahead = where(v > 0.0, above, below)
    over = v - clip(v, -speed, speed)
    return weight + share * push - where(ahead < 1.0, damping, 0.0) * v - brake * over
