"""What a trajectory asks of the motors, held against their limits before it is followed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, vector
from arm_dynamics.dynamics import rnea
from arm_dynamics.errors import InvalidValue, TrajectoryRefused
from arm_dynamics.kinematics import jacobian
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Trajectory

SPACING = 0.02
"""Time [s] between two looks at the effort, both ends of every segment among them."""
MOST, MOST_IN_ALL = 50, 20_000
"""Looks a segment, however long it is, and about the most at all; its two ends always count."""
EDGE = 1e-9
"""Share of a segment by which its ends are looked at from within."""


def check_effort(model: ArmModel, trajectory: Trajectory, limit: Vector) -> None:
    """|M(q) a + C(q, v) v + g(q)| <= limit (nv,) [N·m] along the trajectory, by ``model``.

    Looks every SPACING, and at both ends of every segment, where the accelerations of cubic
    splines are largest. Raises TrajectoryRefused with joint, effort, limit and time.
    """
    for time in _times(trajectory):
        reference = trajectory.at(time)
        effort = rnea(model, reference.q, reference.v, reference.a)
        for i in np.flatnonzero(np.abs(effort) > limit * (1 + 1e-9)):
            raise TrajectoryRefused(
                f"joint '{model.joint_names[i]}': effort {effort[i]:.6g} N·m at {time:.3f} s"
                f" exceeds the limit {limit[i]:.6g}"
            )


def check_wrench(arm: ArmModel, q: Vector, wrench: ArrayLike) -> None:
    """|J(q)ᵀ w| <= the arm's effort limits (nv,) [N·m], for a wrench w (6,) [N, N·m] at the tool.

    Raises InvalidValue with joint, effort and limit, or for a wrench that is not finite.
    """
    effort, limit = jacobian(arm, q).T @ vector("wrench", wrench, 6), arm.effort_limit
    for i in np.flatnonzero(~(np.abs(effort) <= limit)):
        raise InvalidValue(
            f"wrench: joint '{arm.joint_names[i]}' would need {effort[i]:.6g} N·m for it alone;"
            f" its limit is {limit[i]:.6g}"
        )


def _times(trajectory: Trajectory) -> Iterator[float]:
    """Where to look [s]."""
    knots = [trajectory.start, trajectory.end]
    if isinstance(trajectory, JointTrajectory):
        knots = [waypoint.time for waypoint in trajectory.waypoints]
    most = min(MOST, max(MOST_IN_ALL // len(knots), 1))
    for start, end in pairwise(knots):
        count = min(max(ceil((end - start) / SPACING), 1), most)
        yield from np.linspace(start + EDGE * (end - start), end - EDGE * (end - start), count + 1)
    yield trajectory.end
