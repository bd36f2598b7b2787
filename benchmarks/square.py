"""A square of the tool for each arm that control is measured on."""

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
"""Of a square [m], and of one side [s]."""
START = 0.1
"""When it begins [s]."""


@dataclass(frozen=True)
class Case:
    """An arm and the posture in which its square begins; the square is in the plane y, z."""

    load: Callable[[], ArmModel]
    posture: tuple[float, ...]


CASES = {
    "five_dof": Case(lambda: load_arm("five_dof"), (0.0, -0.9, 0.0, 0.0, 0.0)),
    "puma560": Case(lambda: load_arm("puma560"), (0.0, 0.7, -2.4, 0.0, 0.8, 0.0)),
    "panda": Case(panda, (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4)),
}


def square(arm: ArmModel, posture: tuple[float, ...]) -> CartesianTrajectory:
    """Four sides, each from rest to rest; the rotation stays."""
    way = CartesianTrajectory.from_configuration(arm, posture, START)
    corner = way.position
    for side in ([0, SIDE, 0], [0, SIDE, -SIDE], [0, 0, -SIDE], [0, 0, 0]):
        way = way.line(corner + np.array(side), quintic(DURATION))
    return way


def in_joints(arm: ArmModel, way: CartesianTrajectory) -> JointTrajectory:
    """The same square for laws of the joints, by inverse kinematics every 5 ms."""
    return solve_along(arm, way, period=0.005).joints()
