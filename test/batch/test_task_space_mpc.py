"""The controller "task_space_mpc": weights of the tool, targets in closed form, targets ahead."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import chain, five_dof
from scipy.linalg import solve_discrete_are

from arm_dynamics import Plant
from arm_dynamics.batch.planning.joint_mpc import PERIOD, JointMpc
from arm_dynamics.batch.planning.task_space_mpc import TaskSpaceMpc
from arm_dynamics.control import ControlLoop, to_task_reference
from arm_dynamics.control.lqr_design.lqr_gain import linear_dynamics
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.control.reference_generator import CartesianReferenceGenerator
from arm_dynamics.control.trajectories.online_trajectory import (
    OnlineCartesianTrajectory,
    TargetPose,
)
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.kinematics.frames import AXIS_NAMES, jacobian, pose, tool_position
from arm_dynamics.dynamics.kinematics.tool_motion import axis_weights
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.simulation import Simulation
from arm_dynamics.simulation.linearization import zero_order_hold

HOME = np.array(five_dof().configuration("initial"))
AXES = [f"tool.{axis}" for axis in AXIS_NAMES]


def test_at_rest_its_gains_minimize_the_errors_of_joints_and_tool():
    """K of the discrete Riccati equation with Q + Jᵀ W J; the plan has time steps of 0.6 ms."""
    arm, W = five_dof(), np.array([40.0, 20.0, 30.0, 2.0, 3.0, 1.0])
    weights = dict(zip(AXES, ({"weight": w} for w in W.tolist()), strict=True))
    controller = TaskSpaceMpc(arm, weights)
    controller.reset(State.of(HOME))
    controller.update(State.of(HOME), Reference.hold(HOME), 0.0)
    q, v, r = (controller.gains[x] for x in ("position_weight", "velocity_weight", "effort_weight"))
    J = jacobian(arm, HOME)
    Q = np.diag([*q, *v])
    Q[:5, :5] += J.T @ (W[:, None] * J)
    phi, gamma = zero_order_hold(*linear_dynamics(arm, HOME), PERIOD)
    P = solve_discrete_are(phi, gamma, PERIOD * Q, PERIOD * np.diag(r))
    K = np.linalg.solve(PERIOD * np.diag(r) + gamma.T @ P @ gamma, gamma.T @ P @ phi)
    found = controller.mpc.planner.plan.gains[0]
    np.testing.assert_allclose(found, K, rtol=0.03, atol=1e-3 * np.abs(K).max())


def test_the_weight_of_an_axis_is_the_least_cost_of_joint_errors_that_move_it_alone():
    """min eᵀ Q e subject to (J e)_1..3 = unit vector: 1 / q for a prismatic joint along x."""
    rail = chain({"kind": "prismatic", "axis": "1 0 0"})
    np.testing.assert_allclose(axis_weights(rail, [7.0]), [7.0, 0, 0, 0, 0, 0], rtol=1e-9)
    arm = five_dof()
    weights = axis_weights(arm, np.ones(5))
    assert (weights[:3] > 0).all()
    assert not weights[3:].any()  # five joints: the position is controlled
    np.testing.assert_allclose(axis_weights(arm, np.full(5, 3.0)), 3 * weights, rtol=1e-9)


def test_without_tool_weights_a_joint_reference_gives_the_command_of_mpc():
    arm, state = five_dof(), State.of(HOME + 0.01, 0.1 * np.ones(5))
    tool = TaskSpaceMpc(arm, {axis: {"weight": 0.0} for axis in AXES})
    for controller in (joint := JointMpc(arm), tool):
        controller.reset(State.of(HOME))
    hold = Reference.hold(HOME)
    np.testing.assert_allclose(
        tool.update(state, hold, 0.0).value, joint.update(state, hold, 0.0).value, atol=1e-9
    )


def loop_to(arm, *targets):
    """Return the loop, its reachability monitor and the final states after 1.5 s to each target."""
    controller = TaskSpaceMpc(arm)
    driver = SimulationDriver(arm, Simulation(arm, dt=5e-4, period=5e-3))
    loop = ControlLoop(driver, controller, self_collision=False)
    loop.reference_generator = CartesianReferenceGenerator(controller)
    monitor, ends = ReachabilityMonitor(controller, loop.events), []
    loop.step()
    for target in targets:
        goal = TargetPose.of(arm, target, np.eye(3), ToolLimits(max_linear_velocity=1.0))
        start = loop.latest[0].time, loop.latest[1]
        loop.reference_generator.queue(OnlineCartesianTrajectory.toward(arm, goal, *start))
        for _ in range(300):
            loop.step()
            monitor.update()
        ends.append(loop.state)
    return loop, monitor, ends


def test_joints_reach_the_closed_form_of_a_target_and_hold_at_the_nearest_pose_out_of_reach():
    """Tool at (0.5 + d) (cos θ, -sin θ) for θ and d: a target within, and one beyond the rail."""
    rail = {"kind": "prismatic", "axis": "1 0 0", "lower": -0.2, "upper": 0.2}
    arm = replace(chain({}, rail), name="other")
    near, far = np.array([0.5, 0, -0.3]), np.array([0.8, 0, -0.6])
    loop, monitor, (reached, held) = loop_to(arm, near, far)
    expected = [np.arctan2(0.3, 0.5), np.hypot(0.5, 0.3) - 0.5]
    np.testing.assert_allclose(reached.q, expected, atol=2e-4)
    np.testing.assert_allclose(held.q, [np.arctan2(0.6, 0.8), 0.2], atol=5e-3)
    assert np.abs(held.v).max() < 0.01
    assert monitor.out_of_reach
    text = loop.events.latest["out_of_reach"]
    assert "reachability error = 0.01" in text
    assert "expected at most 0.01 m; the tool slows down and moves to the nearest" in text
    assert loop.controller.mpc.failed == 0


@pytest.mark.parametrize("ahead", [True, False])
def test_a_tool_weight_reduces_the_error_of_the_tool_under_an_unknown_payload(ahead):
    """0.2 kg that the model does not contain; with or without the targets of later times."""
    arm, errors = five_dof(), []
    plant = Plant(arm.with_payload(0.2))
    target = to_task_reference(arm, Reference.hold(HOME))
    for factor in (0.0, 10.0):
        controller, state = TaskSpaceMpc(arm), State.of(HOME)
        controller.set_gains(
            {axis: {"weight": factor * controller.values[axis]["weight"]} for axis in AXES}
        )
        if ahead:
            controller.follow_references(lambda time: target)
        controller.reset(state)
        for k in range(150):
            command = controller.update(state, target, 5e-3 * (k > 0))
            state = plant.step(state, command, 5e-4, 10)
        errors.append(np.linalg.norm(tool_position(arm, state.q) - pose(arm, HOME)[0]))
    assert errors[1] < 0.5 * errors[0]
