"""Poses at rest: what holds them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import gravity
from arm_dynamics.errors import InvalidValue
from arm_dynamics.linearization import drive_response, drive_slopes, smooth_motion
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm
from arm_dynamics.motion import ArmMotion
from arm_dynamics.state import Command, State

ITERATIONS = 30
HELD = 1e-9
"""Largest share of the weight by which a pose may be missed that is called held."""


@takes_arm
def holding(arm: ArmModel, q: ArrayLike, interface: str = "effort") -> tuple[State, Command]:
    """The state at rest at ``q`` and the command under which it stays there.

    Raises InvalidValue where no command of the actuators holds the pose, such as beyond a
    supply's reach, or with gear play, where the joint is loose.
    """
    position, motion = arm.check_position("pose", q), smooth_motion(arm)
    weight, nv, z = gravity(arm, position), arm.nv, arm.initial_act.copy()
    x, v = np.concatenate([np.zeros(nv), z]), np.zeros(nv)
    scale = np.abs(weight).max() + 1.0
    for _ in range(ITERATIONS):
        miss, slope = _miss(motion, interface, position, x, weight)
        if np.abs(miss).max() <= HELD * scale:
            break
        x -= np.linalg.lstsq(slope, miss, rcond=None)[0]
    else:
        worst = int(np.argmax(np.abs(miss))) % nv
        raise InvalidValue(
            f"no {interface} command holds arm '{arm.name}' at this pose: joint"
            f" '{arm.joint_names[worst]}' carries {weight[worst]:.4g} N·m; choose another pose"
        )
    command = Command.checked(interface, x[:nv], nv)
    return State.of(position, v, weight, act=x[nv:]), command


def _miss(
    motion: ArmMotion, interface: str, q: Vector, x: Vector, weight: Vector
) -> tuple[Vector, Vector]:
    """What is missing of τ = g and ż = 0 at x = (u, z), and its slope."""
    nv = q.size
    u, z, v = x[:nv], x[nv:], np.zeros(nv)
    command = Command(interface, u)
    effort, rate = drive_slopes(motion, q, v, z, command)
    order = np.r_[2 * nv + z.size : 3 * nv + z.size, 2 * nv : 2 * nv + z.size]
    slope = np.concatenate([effort, rate])[:, order]
    value = drive_response(motion, np.concatenate([q, v, z, u]), z.size, interface)
    value[:nv] -= weight
    return value, slope
