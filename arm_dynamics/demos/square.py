"""The square that tools draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.model.arm_model import ArmModel


def upright_square(
    arm: ArmModel, start: Sequence[float], side: float, side_time: float
) -> CartesianTrajectory:
    """Return an upright square of the tool in front of the arm, with rests at the corners.

    Clockwise from the middle of its top side; the orientation of the tool is constant.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    start : sequence of float
        Configuration (nv,) [rad] at the start.
    side : float
        Length of a side [m].
    side_time : float
        Time of one side [s].

    """
    trajectory = CartesianTrajectory.from_configuration(arm, start)
    top = trajectory.position
    across, down = np.array([0, side / 2, 0]), np.array([0, 0, -side])
    for k, corner in enumerate([across, across + down, down - across, -across, 0 * across]):
        profile = quintic(side_time if 0 < k < 4 else side_time / 2)
        trajectory = trajectory.line(top + corner, profile)
    return trajectory
