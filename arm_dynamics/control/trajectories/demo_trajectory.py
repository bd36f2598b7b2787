"""A walk through an arm's joint space that stays inside all its limits."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

AMPLITUDE = 0.6
"""Largest excursion [rad] from the initial pose."""
MARGIN = 0.1
"""Distance [rad] kept from the limits."""
SPEED = 0.5
"""Largest share of a joint's velocity limit."""
MAX_VELOCITY = 2.0
"""Velocity limit [rad/s or m/s] above which a faster joint moves no faster here."""
STEPS = 12


def demo_trajectory(arm: ArmModel, q: Vector | None = None) -> tuple[Waypoint, ...]:
    """One round that starts and ends at rest in the initial pose; first the way there from ``q``.

    q_i(s) = q0_i + A_i (1 - cos(2π k_i s)) / 2,  s = t / T in [0, 1],  k_i = 1, 2, 1, 2 ...

    A_i reaches towards the farther limit, and is 0 for a joint whose velocity limit is 0;
    T keeps every joint below SPEED of its limit. q (nv,) [rad] defaults to the initial pose; a
    joint without speed stays there, and a continuous joint keeps its turns.
    """
    speed, usable = _speeds(arm)
    start = np.array(arm.configuration("initial"))
    here = start if q is None else q
    start = start + whole_turns(arm, start, here)
    start = np.where(speed > 0, start, here)
    reach = np.where(speed > 0, _reach(arm, start), 0.0)
    turns = np.where(np.arange(arm.nv) % 2 == 0, 1, 2)
    length = max(4.0, float(np.max(np.pi * turns * np.abs(reach) / usable)) / SPEED)
    points = []
    begin = 0.0
    if (start != here).any():
        begin = move_time(arm, here, start)
        points.append(Waypoint(begin, as_readonly(start), as_readonly(np.zeros(arm.nv))))
    for s in np.linspace(0, 1, STEPS + 1)[1:].tolist():
        q_ref = start + reach * (1 - np.cos(2 * np.pi * turns * s)) / 2
        sine = np.sin(2 * np.pi * turns * s) if s < 1 else 0.0
        v_ref = reach * np.pi * turns * sine / length
        points.append(Waypoint(begin + s * length, as_readonly(q_ref), as_readonly(v_ref)))
    return tuple(points)


def move_time(arm: ArmModel, q: Vector, goal: Vector) -> float:
    """Duration [s] of a cubic from ``q`` to ``goal`` (nv,) [rad or m] below SPEED of each limit.

    T = max(1, 3/2 max_i |goal_i - q_i| / (SPEED v_i)); limits above FASTEST count as FASTEST.
    """
    _, usable = _speeds(arm)
    return max(1.0, 1.5 * float(np.max(np.abs(goal - q) / usable)) / SPEED)


def _speeds(arm: ArmModel) -> tuple[Vector, Vector]:
    """Velocity limits (nv,), and the same with 1 in place of 0."""
    speed = np.minimum(arm.velocity_limit, MAX_VELOCITY)
    return speed, np.where(speed > 0, speed, 1.0)


def _reach(arm: ArmModel, start: Vector) -> Vector:
    up = np.clip(arm.upper - MARGIN - start, 0, AMPLITUDE)
    down = np.clip(start - arm.lower - MARGIN, 0, AMPLITUDE)
    return np.where(up >= down, up, -down)
