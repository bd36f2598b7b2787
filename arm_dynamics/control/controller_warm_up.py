"""All that a controller may be asked for, once before an arm moves: compiling takes time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.effort_check import check_path
from arm_dynamics.control.reference_generator import CartesianReferenceGenerator, ReferenceGenerator
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.online_trajectory import (
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
)
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics import pose

STEP = 1e-3
"""Time [s] between two updates."""


def warm_up_controller(law: Controller) -> None:
    """Compile and import all that ``law`` needs, by updating it; its memory begins anew.

    A controller of the tool is updated along a trajectory of every kind. What a controller of the
    package's interface may raise in ``update`` is the loop's to report.
    """
    warm_up()
    state = State.of(law.arm.configuration("initial"))
    trajectories: Iterable[Trajectory] = [JointTrajectory.hold(state.q)]
    following: Callable[[], ReferenceGenerator] = ReferenceGenerator
    if isinstance(law, TaskSpaceController):
        trajectories, following = _motions(law), partial(CartesianReferenceGenerator, law)
    for trajectory in trajectories:
        with suppress(ArmDynamicsError, np.linalg.LinAlgError):
            _follow(law, following(), trajectory, state)
    law.reset(state)


def _follow(
    law: Controller, following: ReferenceGenerator, trajectory: Trajectory, state: State
) -> None:
    """Some updates: at rest, then along the trajectory."""
    if isinstance(following, CartesianReferenceGenerator):
        following.set_wrench(np.ones(6), 1.0)
    law.reset(state)
    following.start(JointTrajectory.hold(state.q))
    present = following.reference(0.0, None)
    law.update(state, present, 0.0)
    following.queue(trajectory)
    for k in range(1, 4):
        present = following.reference(k * STEP, present)
        law.update(state, present, STEP)


def _motions(law: TaskSpaceController) -> Iterable[Trajectory]:
    # scipy's interpolation: joint-space controllers start without it
    from arm_dynamics.control.trajectories.tool_splines import spline_through, timed_spline  # noqa: PLC0415

    arm, limits = law.arm, ToolLimits()
    present = Reference.hold(arm.configuration("initial"))
    here = pose(arm, present.q)
    for goal in (TargetPose.of(arm, *here, limits), TargetTwist.of(arm, np.zeros(6), STEP, limits)):
        yield OnlineCartesianTrajectory.toward(arm, goal, 0.0, present)
    rest = CartesianTrajectory.from_configuration(arm, present.q)
    yield check_path(arm, rest.starting_from(0.0, present), np.full(arm.nv, np.inf))
    yield spline_through(rest, [here], limits)
    yield timed_spline(rest, [0.5, 1.0], [here, here])
