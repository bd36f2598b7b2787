"""A demonstration motion of an arm's joints within all its limits."""

from __future__ import annotations

from functools import partial

import numpy as np

from arm_dynamics.collision.clearance_monitor import ClearanceMonitor
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

AMPLITUDE = 0.6
"""Maximum displacement from the initial configuration [rad]."""
MARGIN = 0.1
"""Minimum distance from the position limits [rad]."""
VELOCITY_FRACTION = 0.5
"""Maximum fraction of a joint's velocity limit."""
MAX_VELOCITY = 2.0
"""Velocity limit of faster joints [rad/s or m/s]."""
STEPS = 12
CLEARANCE = 0.008
"""Distance [m] that the links keep."""
HALVINGS = 5
SPLINE = 0.9
"""Factor of a reduced amplitude: the spline deviates from the cosine."""


def demo_trajectory(
    arm: ArmModel, q: Vector | None = None, scene: Scene = EMPTY_SCENE
) -> tuple[Waypoint, ...]:
    """Return one cycle from rest to rest at the initial configuration; first the motion to it.

    q_i(s) = q0_i + A_i (1 - cos(2π k_i s)) / 2,  s = t / T in [0, 1],  k_i = 1, 2, 1, 2 ...

    A_i points to the farther limit and is 0 for a joint with velocity limit 0. It is halved, up to
    HALVINGS times, while a link would touch another one or an object. T keeps every joint below
    VELOCITY_FRACTION of its limit.

    Parameters
    ----------
    arm : ArmModel
        Arm that moves.
    q : (nv,) array, optional
        Present configuration [rad]; default: the initial one. A joint with velocity limit 0 stays
        there; a continuous joint keeps its turns.
    scene : Scene
        Objects around the arm.

    Returns
    -------
    tuple of Waypoint

    """
    speed, usable = _speeds(arm)
    start = np.array(arm.configuration("initial"))
    here = start if q is None else q
    start = start + whole_turns(arm, start, here)
    start = np.where(speed > 0, start, here)
    up = np.clip(arm.upper - MARGIN - start, 0, AMPLITUDE)
    down = np.clip(start - arm.lower - MARGIN, 0, AMPLITUDE)
    amplitude = np.where(speed > 0, np.where(up >= down, up, -down), 0.0)
    turns = np.where(np.arange(arm.nv) % 2 == 0, 1, 2)
    amplitude *= _free_scale(arm, start, amplitude, turns, scene)
    slowest = float(np.max(np.pi * turns * np.abs(amplitude) / usable))
    length = max(4.0, slowest / VELOCITY_FRACTION)
    points = []
    begin = 0.0
    if (start != here).any():
        begin = move_time(arm, here, start)
        points.append(Waypoint(begin, as_readonly(start), as_readonly(np.zeros(arm.nv))))
    for s in np.linspace(0, 1, STEPS + 1)[1:].tolist():
        q_ref = _displaced(start, amplitude, turns, s)
        sine = np.sin(2 * np.pi * turns * s) if s < 1 else 0.0
        v_ref = amplitude * np.pi * turns * sine / length
        points.append(Waypoint(begin + s * length, as_readonly(q_ref), as_readonly(v_ref)))
    return tuple(points)


def _displaced(start: Vector, amplitude: Vector, turns: Vector, s: float) -> Vector:
    q: Vector = start + amplitude * (1 - np.cos(2 * np.pi * turns * s)) / 2
    return q


def _free_scale(
    arm: ArmModel, start: Vector, amplitude: Vector, turns: Vector, scene: Scene
) -> float:
    """Return a factor of the amplitude with which no link touches another one or an object."""
    monitor, scale = ClearanceMonitor(arm, CLEARANCE, scene), 1.0
    for _ in range(HALVINGS):
        reduced = scale * amplitude
        motion = partial(_displaced, start, reduced, turns)
        if not monitor.first_contact(motion, 0.0, 1.0, np.pi * turns * np.abs(reduced)):
            break
        scale /= 2
    return scale if scale == 1.0 else SPLINE * scale


def move_time(arm: ArmModel, q: Vector, goal: Vector) -> float:
    """Return the duration [s] of a cubic motion within VELOCITY_FRACTION of each velocity limit.

    T = max(1, 3/2 max_i |goal_i - q_i| / (VELOCITY_FRACTION v_i)), v_i at most MAX_VELOCITY.

    Parameters
    ----------
    arm : ArmModel
        Arm that moves.
    q, goal : (nv,) arrays
        Start and end [rad or m].

    """
    _, usable = _speeds(arm)
    return max(1.0, 1.5 * float(np.max(np.abs(goal - q) / usable)) / VELOCITY_FRACTION)


def _speeds(arm: ArmModel) -> tuple[Vector, Vector]:
    """Return the velocity limits (nv,), and the same with 1 in place of 0."""
    speed = np.minimum(arm.velocity_limit, MAX_VELOCITY)
    return speed, np.where(speed > 0, speed, 1.0)
