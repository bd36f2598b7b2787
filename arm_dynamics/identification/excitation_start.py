"""Motion of an arm that runs an excitation trajectory: first to its start, then the trajectory."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.trajectories.demo_trajectory import move_time
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.identification.excitation import Excitation
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns

REST = 0.5
"""Time at rest [s] before each part of the motion."""
AT_START = 1e-3
"""Distance from the start configuration [rad or m] that needs no motion to it."""


def excitation_motion(
    arm: ArmModel, excitation: Excitation, q: Vector, now: float
) -> JointTrajectory:
    """Return the motion from rest at ``q`` to the start, then the excitation trajectory.

    The motion to the start configuration is quintic and uses 5/8 of the velocity limits at most. It
    is not checked for self-collision.

    Parameters
    ----------
    arm : ArmModel
        Arm of the trajectory.
    excitation : Excitation
        Trajectory of the same joints.
    q : (nv,) array
        Present configuration [rad or m]; continuous joints keep its turns.
    now : float
        Time [s]; the motion begins REST later.

    Raises
    ------
    InvalidValue
        If the joints differ.
    TrajectoryRejected
        If the motion exceeds a limit.

    """
    excitation.require_joints(arm)
    turns, zero = whole_turns(arm, excitation.start, q), as_readonly(np.zeros(arm.nv))
    start, begin, points = as_readonly(excitation.start + turns), now + REST, []
    if np.abs(start - q).max() > AT_START:
        points.append(Waypoint(begin, as_readonly(q), zero, zero))
        begin += move_time(arm, q, start)
        points.append(Waypoint(begin, start, zero, zero))
        begin += REST
    points += [
        Waypoint(point.time, as_readonly(point.q + turns), point.v, point.a)
        for point in excitation.trajectory(begin).waypoints
    ]
    motion = JointTrajectory(tuple(points))
    motion.check(arm)
    return motion
