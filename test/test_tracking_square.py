"""Each tracking controller holds 0.5 mm along a short side of a square with the exact model."""

import numpy as np
import pytest

from arm_dynamics import State, load_arm
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.core import plugins
from arm_dynamics.dynamics.kinematics import tool_position

NOT_TRACKING = ("position", "gravity_compensation", "pid")
"""No effort along a path, or, in pid, no gravity compensation."""
KINDS = [name for name in plugins.registered_names("controllers") if name not in NOT_TRACKING]
POSTURES = {
    "five_dof": (0.0, -0.9, 0.0, 0.0, 0.0),
    "puma560": (0.0, 0.7, -2.4, 0.0, 0.8, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POSTURES)
def test_the_tool_stays_within_half_a_millimeter(name, kind):
    arm, posture = load_arm(name), POSTURES[name]
    controller = build_controller(arm, kind, period=None)
    start = CartesianTrajectory.from_configuration(arm, posture, 0.02)
    line = start.line(start.position + np.array([0.0, 0.02, -0.02]), quintic(0.3))
    if isinstance(controller, TaskSpaceController):
        path = line
    else:
        path = solve_along(arm, line, period=0.005).joints()
    trace = simulate_closed_loop(
        arm, controller, path, State.of(posture), seconds=0.32, period=1e-3, dt=5e-4,
        integrator="semi_implicit_euler",
    )  # fmt: skip
    targets = np.array([line.at(t).position for t in trace.time.tolist()])
    tools = np.array([tool_position(arm, q) for q in trace.q])
    assert np.sqrt(((tools - targets) ** 2).sum(axis=1).mean()) < 0.5e-3
