"""All that a controller may be asked for, once before an arm moves: compiling takes time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskController
from arm_dynamics.control.effort_check import checked
from arm_dynamics.control.reference_generator import Following, ToolFollowing
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.online_trajectory import AtTwist, ToolGlide, ToPose
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics import pose

STEP = 1e-3
"""Time [s] between two updates."""


def rehearse(law: Controller) -> None:
    """Compile and import all that ``law`` needs, by updating it; its memory begins anew.

    A controller of the tool is updated along a trajectory of every kind. What a controller of the
    package's interface may raise in ``update`` is the loop's to report.
    """
    warm_up()
    state = State.of(law.arm.pose("initial"))
    trajectories: Iterable[Trajectory] = [JointTrajectory.hold(state.q)]
    following: Callable[[], Following] = Following
    if isinstance(law, TaskController):
        trajectories, following = _motions(law), partial(ToolFollowing, law)
    for trajectory in trajectories:
        with suppress(ArmDynamicsError, np.linalg.LinAlgError):
            _follow(law, following(), trajectory, state)
    law.reset(state)


def _follow(law: Controller, following: Following, trajectory: Trajectory, state: State) -> None:
    """Some updates: at rest, then along the trajectory."""
    if isinstance(following, ToolFollowing):
        following.push(np.ones(6), 1.0)
    law.reset(state)
    following.begin(JointTrajectory.hold(state.q))
    present = following.reference(0.0, None)
    law.update(state, present, 0.0)
    following.post(trajectory)
    for k in range(1, 4):
        present = following.reference(k * STEP, present)
        law.update(state, present, STEP)


def _motions(law: TaskController) -> Iterable[Trajectory]:
    # scipy's interpolation: joint-space controllers start without it
    from arm_dynamics.control.trajectories.tool_splines import through, timed  # noqa: PLC0415

    arm, limits = law.arm, ToolLimits()
    present = Reference.hold(arm.pose("initial"))
    here = pose(arm, present.q)
    for goal in (ToPose.of(arm, *here, limits), AtTwist.of(arm, np.zeros(6), STEP, limits)):
        yield ToolGlide.to(arm, goal, 0.0, present)
    rest = CartesianTrajectory.rest(arm, present.q)
    yield checked(arm, rest.after(0.0, present), np.full(arm.nv, np.inf))
    yield through(rest, [here], limits)
    yield timed(rest, [0.5, 1.0], [here, here])
