"""Square path of the tool for each arm of the control benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import numpy as np
from arms import panda

from arm_dynamics import load_arm
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.model.arm_model import ArmModel

SIDE, DURATION = 0.1, 0.8
"""Side of the square [m] and duration of one side [s]."""
START = 0.1
"""Start time of the square [s]."""


@dataclass(frozen=True)
class Case:
    """Arm and initial configuration of its square, which is in the plane y, z."""

    load: Callable[[], ArmModel]
    posture: tuple[float, ...]


CASES = {
    "five_dof": Case(lambda: load_arm("five_dof"), (0.0, -0.9, 0.0, 0.0, 0.0)),
    "puma560": Case(lambda: load_arm("puma560"), (0.0, 0.7, -2.4, 0.0, 0.8, 0.0)),
    "panda": Case(panda, (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4)),
}


def square(arm: ArmModel, posture: tuple[float, ...]) -> CartesianTrajectory:
    """Return four sides, each from rest to rest, with constant orientation."""
    trajectory = CartesianTrajectory.from_configuration(arm, posture, START)
    corner = trajectory.position
    for side in ([0, SIDE, 0], [0, SIDE, -SIDE], [0, 0, -SIDE], [0, 0, 0]):
        trajectory = trajectory.line(corner + np.array(side), quintic(DURATION))
    return trajectory


def in_joints(arm: ArmModel, trajectory: CartesianTrajectory) -> JointTrajectory:
    """Return the square for joint-space controllers by inverse kinematics every 5 ms."""
    return solve_along(arm, trajectory, period=0.005).joints()
