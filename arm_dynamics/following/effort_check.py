"""What a trajectory asks of the motors, held against their limits before it is followed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import rnea
from arm_dynamics.errors import TrajectoryRefused
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Trajectory

SPACING = 0.02
"""Time [s] between two looks at the effort, both ends of every segment among them."""
MOST = 50
"""Looks a segment, however long it is."""
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


def _times(trajectory: Trajectory) -> Iterator[float]:
    """Where to look [s]."""
    knots = [trajectory.start, trajectory.end]
    if isinstance(trajectory, JointTrajectory):
        knots = [waypoint.time for waypoint in trajectory.waypoints]
    for start, end in pairwise(knots):
        count = min(max(ceil((end - start) / SPACING), 1), MOST)
        yield from np.linspace(start + EDGE * (end - start), end - EDGE * (end - start), count + 1)
    yield trajectory.end
