"""All that a law of the tool may be asked for, once before an arm moves: compiling takes time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from arm_dynamics.controllers.task import TaskController
from arm_dynamics.following.tool_following import ToolFollowing
from arm_dynamics.following.way_check import checked
from arm_dynamics.kinematics import pose
from arm_dynamics.state import Reference, State
from arm_dynamics.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.trajectories.tool_glide import ToolGlide
from arm_dynamics.trajectories.tool_goals import AtTwist, ToPose
from arm_dynamics.trajectories.tool_paths import ToolLimits
from arm_dynamics.trajectories.tool_splines import through, timed

STEP = 1e-3
"""Time [s] between two updates."""


def rehearse(law: TaskController) -> None:
    """Update the law along a trajectory of every kind, and forget it all."""
    state = State.of(law.arm.pose("initial"))
    for trajectory in _motions(law):
        following = ToolFollowing(law)
        following.push(np.ones(6), 1.0)
        following.begin(JointTrajectory.hold(state.q))
        present = following.reference(0.0, None)
        following.post(trajectory)
        for k in range(1, 4):
            present = following.reference(k * STEP, present)
            law.update(state, present, STEP)
    law.reset(state)


def _motions(law: TaskController) -> Iterable[Trajectory]:
    arm, limits = law.arm, ToolLimits()
    present = Reference.hold(arm.pose("initial"))
    here = pose(arm, present.q)
    for goal in (ToPose.of(arm, *here, limits), AtTwist.of(arm, np.zeros(6), STEP, limits)):
        yield ToolGlide.to(arm, goal, 0.0, present)
    rest = CartesianTrajectory.rest(arm, present.q)
    yield checked(arm, rest.after(0.0, present), np.full(arm.nv, np.inf))
    yield through(rest, [here], limits)
    yield timed(rest, [0.5, 1.0], [here, here])
