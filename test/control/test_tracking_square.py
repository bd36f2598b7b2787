"""Tracking controllers on a short side of a square: exact model, and wrong dry friction."""

import numpy as np
import pytest

from arm_dynamics import State, load_arm
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.lqr_design.lqr_gain import coulomb
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.simulation.trace import MotionRecord

NOT_TRACKING = ("position", "gravity_compensation", "pid")
"""No effort along a path, or, in pid, no gravity compensation."""
KINDS = [name for name in plugins.registered_names("controllers") if name not in NOT_TRACKING]
POSTURES = {
    "five_dof": (0.0, -0.9, 0.0, 0.0, 0.0),
    "puma560": (0.0, 0.7, -2.4, 0.0, 0.8, 0.0),
}


END = 0.32
"""Time [s] at which the reference is at rest."""


def tracked(
    plant: ArmModel, controller: Controller, posture: tuple[float, ...], seconds: float
) -> tuple[MotionRecord, Vector]:
    """Return the motion of ``plant``, and the distances (n,) [m] of its tool from the reference."""
    model = controller.arm
    start = CartesianTrajectory.from_configuration(model, posture, 0.02)
    line = start.line(start.position + np.array([0.0, 0.02, -0.02]), quintic(0.3))
    if isinstance(controller, TaskSpaceController):
        path = line
    else:
        path = solve_along(model, line, period=0.005).joints()
    trace = simulate_closed_loop(
        plant, controller, path, State.of(posture), seconds=seconds, period=1e-3, dt=5e-4,
        integrator="semi_implicit_euler",
    )  # fmt: skip
    targets = np.array([line.at(t).position for t in trace.time.tolist()])
    tools = np.array([tool_position(plant, q) for q in trace.q])
    return trace, np.linalg.norm(tools - targets, axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POSTURES)
def test_the_tool_stays_within_half_a_millimeter(name, kind):
    arm = load_arm(name)
    controller = build_controller(arm, kind, period=None)
    _, distance = tracked(arm, controller, POSTURES[name], END)
    assert np.sqrt((distance**2).mean()) < 0.5e-3


@pytest.mark.parametrize("error", [-30.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_friction_of_the_plant_wrong_by_30_percent_while_tracking(kind, error):
    """The tool stays within 4 mm (mpc: 6 mm), and then joints rest at efforts without steps.

    A compensation that oscillates would reverse its joints and step by twice its dry friction.
    """
    arm = load_arm("puma560")
    controller = build_controller(arm, kind, period=None)
    plant = with_model_error(arm, friction=error)
    trace, distance = tracked(plant, controller, POSTURES["puma560"], END + 0.28)
    assert distance.max() < (6e-3 if kind.endswith("mpc") else 4e-3)  # gains of a period of 20 ms
    late = trace.time > END + 0.08
    velocity, effort = trace.v[late], trace.tau[late]
    moving = np.sign(np.where(np.abs(velocity) > 1e-9, velocity, 0.0))
    assert np.abs(np.diff(moving, axis=0)).sum(axis=0).max() <= 2  # one start and one stop
    assert np.abs(velocity).max() < 0.01
    assert (np.abs(np.diff(effort, axis=0)).max(axis=0) < 0.05 * coulomb(arm)).all()
