"""Warm-up of a controller before an arm moves: compilation and imports take time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.reference_generator import (
    CartesianReferenceGenerator,
    ReferenceGenerator,
)
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.effort_check import check_path
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.online_trajectory import (
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
)
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics.frames import pose

STEP = 1e-3
"""Time between two updates [s]."""


def warm_up_controller(controller: Controller, *, every_function: bool = True) -> None:
    """Compile and import all that a controller needs, by updating it; its memory is reset.

    A task-space controller is updated along a trajectory of every kind. Errors that a controller
    may raise in ``update`` are left to the loop.

    Parameters
    ----------
    controller : Controller
        Controller before its first use.
    every_function : bool
        Whether to compile all functions of the imported modules too, as a physical arm requires.
        Those of task-space controllers take half a minute, where their modules are imported.

    """
    if every_function:
        warm_up()
    state = State.of(controller.arm.configuration("initial"))
    trajectories: Iterable[Trajectory] = [JointTrajectory.hold(state.q)]
    generator: Callable[[], ReferenceGenerator] = ReferenceGenerator
    if isinstance(controller, TaskSpaceController):
        trajectories = _cartesian_trajectories(controller)
        generator = partial(CartesianReferenceGenerator, controller)
    for trajectory in trajectories:
        with suppress(ArmDynamicsError, np.linalg.LinAlgError):
            references = generator()
            if isinstance(references, CartesianReferenceGenerator):
                references.set_wrench(np.ones(6), 1.0)
            controller.reset(state)
            references.start(JointTrajectory.hold(state.q))
            reference = references.reference(0.0, None)
            controller.update(state, reference, 0.0)
            references.queue(trajectory)
            for k in range(1, 4):
                reference = references.reference(k * STEP, reference)
                controller.update(state, reference, STEP)
            moving = as_readonly(np.full(controller.arm.nv, STEP))  # friction compensation
            controller.update(state, replace(reference, v=moving), STEP)
    controller.reset(state)


def _cartesian_trajectories(controller: TaskSpaceController) -> Iterable[Trajectory]:
    # scipy's interpolation: joint-space controllers start without it
    from arm_dynamics.control.trajectories.tool_splines import (  # noqa: PLC0415
        spline_through,
        timed_spline,
    )

    arm, limits = controller.arm, ToolLimits()
    current = Reference.hold(arm.configuration("initial"))
    here = pose(arm, current.q)
    twist = TargetTwist.of(arm, np.zeros(6), STEP, limits)
    for target in (TargetPose.of(arm, *here, limits), twist):
        yield OnlineCartesianTrajectory.toward(arm, target, 0.0, current)
    rest = CartesianTrajectory.from_configuration(arm, current.q)
    yield check_path(arm, rest.starting_from(0.0, current), np.full(arm.nv, np.inf))
    yield spline_through(rest, [here], limits)
    yield timed_spline(rest, [0.5, 1.0], [here, here])
