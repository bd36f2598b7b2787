"""Streams of targets, pushes and unreachable references in the control loop."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.control.reference_generator import (
    RESTART_THRESHOLD,
    RISE,
    CartesianReferenceGenerator,
    ReferenceGenerator,
)
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.online_trajectory import (
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
)
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import rotation_vector
from arm_dynamics.core.state import Reference, State, TaskReference
from arm_dynamics.dynamics.kinematics.closed_loop_ik import clik_step
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.load import load_arm
from arm_dynamics.safety.braking import default_deceleration
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation import Simulation

PERIOD = 2e-3
LIMITS = ToolLimits()


@pytest.fixture
def loop():
    arm = load_arm("five_dof")
    controller = TaskSpace(arm)
    control_loop = ControlLoop(SimulationDriver(arm, Simulation(arm, period=PERIOD)), controller)
    control_loop.reference_generator = CartesianReferenceGenerator(controller)
    control_loop.step()
    return control_loop


def send(loop, goal):
    state, reference, _ = loop.latest
    loop.reference_generator.queue(
        OnlineCartesianTrajectory.toward(loop.arm, goal, state.time, reference)
    )


def test_a_stream_of_twists_has_no_lag(loop):
    goal = TargetTwist.of(loop.arm, [0, 0.1, 0, 0, 0, 0], 0.25, LIMITS)
    passed = []
    for k in range(600):
        if k % 10 == 0:
            send(loop, goal)
        loop.step()
        passed.append(loop.reference.position[1])
    assert (passed[-1] - passed[-301]) / (300 * PERIOD) == pytest.approx(0.1, rel=1e-4)


def test_a_commanded_wrench_rises_and_decays_with_its_time_constant(loop):
    wrench, begin = np.array([1.0, -2.0, 3.0, 0, 0, 0]), loop.state.time
    loop.reference_generator.set_wrench(wrench, begin + 0.3)
    for _ in range(100):
        loop.step()
        fraction = -np.expm1(-(loop.state.time - begin) / RISE)
        assert np.allclose(loop.reference.wrench, fraction * wrench, atol=1e-9)
    for _ in range(600):
        loop.step()
    assert not isinstance(loop.reference, TaskReference)
    with pytest.raises(InvalidValue, match="wrench"):
        loop.reference_generator.set_wrench([np.nan] * 6, 1.0)


def test_an_unreachable_target_is_reported_once_and_the_next_one_starts_reachable(loop):
    p, monitor = (
        tool_position(loop.arm, loop.state.q),
        ReachabilityMonitor(loop.controller, loop.events),
    )
    send(loop, TargetPose.of(loop.arm, p + np.array([1.5, 0, 0]), np.eye(3), LIMITS))
    for _ in range(3000):
        loop.step()
        monitor.update()
    assert monitor.out_of_reach
    assert monitor.near_singularity
    assert monitor.max_reachability_error == pytest.approx(monitor.reachability_error)
    assert loop.events.counts["out_of_reach"] == loop.events.counts["near_singularity"] == 1
    assert np.linalg.norm(loop.reference.position - tool_position(loop.arm, loop.state.q)) > 0.5
    send(loop, TargetPose.of(loop.arm, p, np.eye(3), LIMITS))
    loop.step()
    tool = tool_position(loop.arm, loop.controller.clik.q)
    assert np.linalg.norm(loop.reference.position - tool) < RESTART_THRESHOLD
    for _ in range(3000):
        loop.step()
        monitor.update()
    assert not monitor.out_of_reach
    assert np.linalg.norm(tool_position(loop.arm, loop.state.q) - p) < 1e-3


@pytest.mark.parametrize("name", ["five_dof", "two_link"])
def test_warm_up_does_not_change_a_controller(name):
    arm = load_arm(name)
    controller, other = TaskSpace(arm), TaskSpace(arm)
    warm_up_controller(controller)
    state, reference = (
        State.of(arm.configuration("initial")),
        Reference.hold(arm.configuration("initial")),
    )
    for each in (controller, other):
        each.reset(state)
    for dt in (0.0, 0.001, 0.001):
        now, then = (each.update(state, reference, dt).value for each in (controller, other))
        assert np.array_equal(now, then)


def test_after_warm_up_a_target_compiles_nothing(loop):
    warm_up_controller(loop.controller)
    kernels = {kernel: len(kernel.signatures) for kernel in (clik_step, rotation_vector)}
    p = tool_position(loop.arm, loop.state.q)
    send(loop, TargetPose.of(loop.arm, p + np.array([0, 0.1, 0]), np.eye(3), LIMITS))
    for _ in range(5):
        loop.step()
    assert {kernel: len(kernel.signatures) for kernel in kernels} == kernels


def loop_on_line(control_loop):
    """Return the loop in the middle of a straight line of its tool."""
    state = control_loop.state
    to = tool_position(control_loop.arm, state.q) + np.array([0.0, 0.2, -0.1])
    control_loop.follow(
        CartesianTrajectory.from_configuration(control_loop.arm, state.q, state.time).line(
            to, quintic(0.6)
        )
    )
    while control_loop.state.time < state.time + 0.3:
        control_loop.step()
    return control_loop


@pytest.mark.parametrize("kind", [CartesianReferenceGenerator, None])
def test_a_stop_request_during_a_path_stops_the_arm(loop, kind):
    if kind is None:
        loop.reference_generator = ReferenceGenerator()
        loop.reference_generator.start(JointTrajectory.hold(loop.state.q))
    loop_on_line(loop)
    q, v = loop.state.q, loop.state.v
    assert np.abs(loop.reference.q - q).max() > 0.1  # the posture differs
    assert np.abs(v).max() > 0.3
    loop.request_stop()
    commands = [loop.command.value]
    while loop.trajectory.end + 0.5 > loop.state.time or loop.reference_generator.pending:
        loop.step()
        commands.append(loop.command.value)
        assert not isinstance(loop.reference, TaskReference)
    distance = v**2 / 2 / default_deceleration(loop.arm) * np.sign(v)
    np.testing.assert_allclose(loop.reference.q, q + distance, atol=5e-3)
    np.testing.assert_allclose(loop.state.q, loop.reference.q, atol=5e-3)
    steps = np.abs(np.diff(commands, axis=0)).max(axis=0)
    assert (steps < 0.25 * loop.arm.effort_limit).all()


def test_joint_targets_during_a_tool_motion_start_at_the_measured_configuration(loop):
    loop_on_line(loop)
    q = loop.state.q
    loop.hold({"R5": q[4]})
    loop.step()
    np.testing.assert_allclose(loop.reference.q, q, atol=1e-12)
    loop_on_line(loop)
    q, v = loop.state.q, loop.state.v
    names = loop.arm.joint_names
    loop.follow(parse_trajectory(loop.arm, names, [1.0], [q], [np.zeros(5)], start=loop.state.time))
    loop.step()
    np.testing.assert_allclose(loop.reference.q, q + v * PERIOD, atol=1e-2)


def test_a_controller_restarted_in_motion_continues_and_decelerates(loop):
    controller, v = loop.controller, np.array([0.5, -0.4, 0.3, 0.2, 50.0])
    q = loop.arm.configuration("initial")
    controller.reset(State.of(q, v))
    most = np.minimum(v, loop.arm.velocity_limit)
    np.testing.assert_array_equal(controller.clik.v, most)
    hold = to_task_reference(loop.arm, Reference.hold(q))
    np.testing.assert_allclose(controller.reachable_reference(hold, 0.0).v, most)
    slowest = controller.controller_gains["max_joint_acceleration"]
    for _ in range(3000):
        before = controller.clik.v
        controller.reachable_reference(hold, PERIOD)
        assert np.abs(controller.clik.v - before).max() <= slowest * PERIOD * (1 + 1e-9)
    np.testing.assert_allclose(controller.clik.v, 0, atol=1e-3)
    assert np.linalg.norm(tool_position(loop.arm, controller.clik.q) - hold.position) < 1e-4


def test_the_tool_error_includes_lag_and_unreachable_distance(loop):
    monitor = ReachabilityMonitor(loop.controller, loop.events)
    rested = tool_position(loop.arm, loop.state.q)
    for k in range(1500):
        if k == 5:
            goal = TargetPose.of(loop.arm, rested + np.array([1.5, 0, 0]), np.eye(3), LIMITS)
            send(loop, goal)
        loop.step()
        state, reference, _ = loop.latest
        missed = to_task_reference(loop.arm, reference).position - tool_position(loop.arm, state.q)
        far, turned = monitor.tool_error(state, reference)
        assert far == pytest.approx(np.linalg.norm(missed), abs=1e-12)
        assert turned == 0.0  # this arm does not control rotation
    assert far > 0.05


@pytest.mark.parametrize("axis", range(3))
def test_the_orientation_error_is_an_angle(axis):
    arm = load_arm("puma560")
    controller = TaskSpace(arm)
    q = np.array([0.3, -0.5, 0.4, 0.2, 0.6, -0.1])
    held = to_task_reference(arm, Reference.hold(q))
    turn = pin.exp3(0.3 * np.eye(3)[axis])
    task = replace(held, position=held.position + 0.02 * np.eye(3)[axis])
    task = replace(task, rotation=turn @ task.rotation)
    control_loop = ReachabilityMonitor(controller, Events()).tool_error(State.of(q), task)
    assert control_loop == pytest.approx((0.02, 0.3), abs=1e-9)
