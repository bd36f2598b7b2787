"""A walk through an arm's joint space that stays inside all its limits."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.trajectories.joint_trajectory import Waypoint

AMPLITUDE = 0.6
"""Largest excursion [rad] from the initial pose."""
MARGIN = 0.1
"""Distance [rad] kept from the limits."""
SPEED = 0.5
"""Largest share of a joint's velocity limit."""
STEPS = 12


def walk(arm: ArmModel) -> tuple[Waypoint, ...]:
    """One round that starts and ends at rest in the initial pose.

    q_i(s) = q0_i + A_i (1 - cos(2π k_i s)) / 2,  s = t / T in [0, 1],  k_i = 1, 2, 1, 2 ...

    A_i reaches towards the farther limit, and is 0 for a joint whose velocity limit is 0;
    T keeps every joint below SPEED of its limit.
    """
    start = np.array(arm.pose("initial"))
    speed = np.minimum(arm.velocity_limit, 2.0)
    reach = np.where(speed > 0, _reach(arm, start), 0.0)
    turns = np.where(np.arange(arm.nv) % 2 == 0, 1, 2)
    peak = np.pi * turns * np.abs(reach) / np.where(speed > 0, speed, 1.0)
    length = max(4.0, float(np.max(peak)) / SPEED)
    phases = np.linspace(0, 1, STEPS + 1)[1:]
    return tuple(
        Waypoint(
            float(s * length),
            frozen(start + reach * (1 - np.cos(2 * np.pi * turns * s)) / 2),
            frozen(
                reach * np.pi * turns * (np.sin(2 * np.pi * turns * s) if s < 1 else 0) / length
            ),
        )
        for s in phases
    )


def _reach(arm: ArmModel, start: Vector) -> Vector:
    up = np.clip(arm.upper - MARGIN - start, 0, AMPLITUDE)
    down = np.clip(start - arm.lower - MARGIN, 0, AMPLITUDE)
    return np.where(up >= down, up, -down)
