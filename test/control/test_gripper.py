"""Gripper: held force, limits, stalls, the other joints, and rejected commands."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gripper_arm import FACE, HAND, LEVER, PIVOT, RADIUS, SECOND_JAW, TOUCH, ball, hand

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.gripper import Gripper, GripperCommand
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.errors import (
    CollisionRejected,
    InvalidValue,
    TrajectoryRejected,
    UnknownName,
)
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.load import load_arm, parse_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.simulation import Simulation

JAW = 1
"""Index of the gripper joint."""


def controlled(controller=PidGravity, scene=None, **options):
    """Return a loop on a simulated hand after its first cycle."""
    arm = options.pop("arm", hand())
    simulation = Simulation(arm, scene=ball() if scene is None else scene, dt=1e-3)
    loop = ControlLoop(SimulationDriver(arm, simulation), controller(arm), **options)
    loop.step()
    return SimpleNamespace(loop=loop, simulation=simulation)


def run(hold, seconds, until=lambda: False):
    """Run control cycles; return the rows q, reference and effort of the jaw."""
    rows = []
    for _ in range(round(seconds / hold.simulation.period)):
        hold.loop.step()
        state, reference, command = hold.loop.latest
        rows.append([x[JAW] for x in (state.q, reference.q, reference.v, command.value)])
        if until():
            break
    return np.array(rows)


def grip(hold, position, **options):
    """Return the goal of a command after it has ended."""
    goal = hold.loop.grip(GripperCommand((), [position], **options))
    run(hold, 4.0, lambda: goal.result is not None)
    return goal


def pressure(hold):
    """Return the normal force [N] of the jaw on the ball, and its lever [m] about the pivot."""
    contacts = hold.simulation.contacts
    ends = zip(contacts.first, contacts.second, strict=True)
    (i,) = [i for i, links in enumerate(ends) if "jaw_link" in links]
    center = hold.simulation.scene["ball"].position
    slide = hold.simulation.state.q[0]
    distance = np.linalg.norm(center[:2] - [PIVOT + slide, 0.0])
    return abs(contacts.force[i] @ contacts.normal[i]), np.sqrt(distance**2 - RADIUS**2)


@pytest.mark.parametrize("controller", [PidGravity, ComputedTorque])
@pytest.mark.parametrize("effort", [0.05, 0.8])
def test_a_stalled_jaw_holds_the_effort_over_its_lever(controller, effort):
    hold = controlled(controller)
    goal = grip(hold, 0.5, effort=[effort])
    assert (goal.result.outcome, goal.result.stalled, goal.result.reached_goal) == (
        *("aborted", True),
        False,
    )
    rows = run(hold, 1.0)
    np.testing.assert_array_equal(rows[:, 3], effort)
    np.testing.assert_array_equal(rows[:, 1], rows[:, 0])  # the reference is the measured position
    force, lever = pressure(hold)
    assert lever == pytest.approx(LEVER, rel=1e-2)
    assert force == pytest.approx(effort / lever, rel=1e-6)
    assert hold.simulation.state.q[JAW] == pytest.approx(TOUCH, abs=1e-3)


def test_with_allow_stalling_a_stall_has_succeeded():
    hold = controlled()
    hold.loop.gripper.configure({"stall_timeout": 0.2}, allow_stalling=True)
    result = grip(hold, 0.5).result
    assert (result.outcome, result.stalled) == ("succeeded", True)
    assert result.text.startswith("stalled: jaw at 0.268")


def test_a_free_jaw_reaches_its_position_within_the_speed_and_holds_it():
    hold = controlled()
    goal = hold.loop.grip(GripperCommand(["jaw"], [-0.4], velocity=[0.6]))
    rows = run(hold, 3.0, lambda: goal.result is not None)
    assert (goal.result.outcome, goal.result.reached_goal) == ("succeeded", True)
    assert np.abs(rows[:, 2]).max() == pytest.approx(0.6)
    after = run(hold, 1.0)
    assert after[-1, :2] == pytest.approx([-0.4, -0.4], abs=1e-4)


def test_the_effort_is_within_the_limit_of_the_goal_while_the_jaw_moves():
    arm = hand()
    rows = []
    for limit in (3.0, 2e-4):
        hold = controlled(arm=arm)
        hold.loop.grip(GripperCommand((), [-0.4], effort=[limit]))
        rows.append(run(hold, 0.5))
        assert np.abs(rows[-1][:, 3]).max() <= limit
    assert np.abs(rows[0][:, 3]).max() > 2e-4


def test_a_released_object_lets_the_jaw_reach_its_position():
    hold = controlled()
    grip(hold, 0.5, effort=[0.05])
    hold.simulation.set_scene(Scene(()))
    rows = run(hold, 3.0)
    assert rows[-1, 0] == pytest.approx(0.5, abs=0.01)
    assert np.abs(np.diff(rows[:, 0])).max() < 4.0 * hold.simulation.period


def test_the_new_goal_counts_and_the_jaw_opens():
    hold = controlled()
    first = hold.loop.grip(GripperCommand((), [0.5]))
    run(hold, 0.5)
    second = grip(hold, -0.3)
    assert (first.result.outcome, first.result.text) == ("aborted", "preempted by another goal")
    assert second.result.reached_goal


def test_a_slow_goal_stops_a_fast_jaw_within_the_distance_of_the_goal_before():
    hold = controlled(scene=Scene([]))
    hold.loop.grip(GripperCommand((), [0.5], velocity=[2.0]))
    run(hold, 1.0, lambda: hold.loop.reference.v[JAW] > 1.99)
    hold.loop.grip(GripperCommand((), [-0.4], velocity=[0.1]))
    assert run(hold, 1.0)[:, 1].max() < 0.5 + 1e-3
    assert hold.loop.reference.v[JAW] == pytest.approx(-0.1)


def test_a_canceled_goal_holds_the_measured_position():
    hold = controlled()
    goal = hold.loop.grip(GripperCommand((), [-0.4]))
    run(hold, 0.3)
    hold.loop.gripper.cancel(goal)
    at = run(hold, 0.004)[-1, 0]
    assert goal.result.outcome == "canceled"
    assert run(hold, 1.0)[-1, 0] == pytest.approx(at, abs=0.02)


def follow(hold, slide, jaw, seconds=1.0):
    now, present = hold.loop.present()
    point = Waypoint(now.time + seconds, as_readonly([slide, jaw]), as_readonly([0.0, 0.0]))
    start = Waypoint(now.time, present.q, present.v)
    hold.loop.follow(JointTrajectory((start, point)))


def test_the_arm_moves_while_the_gripper_holds_an_object():
    hold = controlled()
    grip(hold, 0.5, effort=[0.8])
    follow(hold, 0.2, hold.loop.reference.q[JAW])
    rows = run(hold, 1.5)
    np.testing.assert_array_equal(rows[:, 3], 0.8)
    assert hold.simulation.state.q[0] == pytest.approx(0.2, abs=1e-3)
    assert hold.simulation.scene["ball"].position[0] == pytest.approx(0.2 + FACE + RADIUS, abs=1e-3)
    hold.loop.request_stop()
    np.testing.assert_array_equal(run(hold, 0.2)[:, 3], 0.8)


def test_a_trajectory_that_moves_the_gripper_ends_its_hold_without_a_jump():
    hold = controlled()
    goal = hold.loop.grip(GripperCommand((), [-0.4]))
    before = run(hold, 0.4)[-1, 1]
    follow(hold, 0.0, 0.1)
    rows = run(hold, 1.5)
    assert goal.result.text == "interrupted: another trajectory moves the gripper"
    assert rows[0, 1] == pytest.approx(before, abs=0.01)
    assert rows[-1, 0] == pytest.approx(0.1, abs=1e-3)
    assert hold.loop.controller.effort_bound is None


def test_a_restart_ends_the_goal_and_the_hold():
    hold = controlled()
    goal = hold.loop.grip(GripperCommand((), [-0.4]))
    run(hold, 0.2)
    hold.simulation.reset()
    hold.loop.restart(hold.simulation.state)
    assert goal.result.outcome == "aborted"
    assert goal.result.text.startswith("interrupted: ")
    assert np.abs(run(hold, 0.5)[:, 0]).max() < 1e-6


def test_the_wrench_at_the_tool_is_that_of_the_ball_that_it_pushes():
    """At rest F = -tau of the slide, at the point of contact p: w = (F, p × F)."""
    point = np.array([FACE - 0.01, -0.03, 0.005])
    fixed = SceneObject("fixed", Shape("sphere", (0.1,)), point - [0.1, 0, 0], friction=0.0)
    simulation = Simulation(hand(), scene=Scene([fixed]), dt=1e-3)
    np.testing.assert_array_equal(simulation.tool_wrench(), np.zeros(6))
    for _ in range(50):
        simulation.submit(Command("effort", as_readonly([-3.0, 0.0]), simulation.state.time))
        simulation.advance()
    expected = [3.0, 0.0, 0.0, *np.cross(point, [3.0, 0.0, 0.0])]
    np.testing.assert_allclose(simulation.tool_wrench(), expected, atol=1e-4)


def test_a_fixed_object_rejects_the_goal_and_stops_a_gripper_that_moves_to_it():
    (free,) = ball(gap=0.01)
    fixed = Scene([replace(free, mass=0.0)])
    hold = controlled(scene=Scene(()))
    hold.loop.use_scene(fixed)
    with pytest.raises(CollisionRejected, match="link 'jaw_link' and object 'ball'"):
        hold.loop.grip(GripperCommand((), [0.5]))
    hold.loop.use_scene(Scene(()))
    goal = hold.loop.grip(GripperCommand((), [0.5]))
    run(hold, 0.2)
    hold.loop.use_scene(fixed)
    run(hold, 2.0)
    assert goal.result.outcome == "aborted"
    assert goal.result.text.startswith("stopped: distance of link 'jaw_link' and object 'ball'")
    assert hold.simulation.state.q[JAW] < TOUCH


def test_two_fingers_get_one_position_and_may_close_on_each_other():
    text = HAND.replace('name="jaw"', 'name="left"').replace("</robot>", SECOND_JAW)
    arm = parse_arm(text).with_gravity((0, 0, 0))
    assert (arm.tool_joints, arm.gripper_joints) == (("slide",), ("left", "right"))
    hold = controlled(arm=arm, scene=Scene(()))
    result = grip(hold, -0.3).result
    assert result.reached_goal
    assert hold.simulation.state.q == pytest.approx([0.0, -0.3, -0.3], abs=0.011)
    with pytest.raises(InvalidValue, match="expected one position of left, right"):
        hold.loop.grip(GripperCommand(["left"], [0.1]))


def test_two_jaws_of_one_motor_divide_its_effort():
    """A mimic joint: the jaws at q and -0.5 q press with F₁ and F₂, F₁ + 0.5 F₂ = τ, F₁ = F₂."""
    text = (Path(__file__).parents[1] / "data" / "urdf" / "gripper.urdf").read_text()
    follows = '<mimic joint="l" multiplier="0.5"/></joint></robot>'
    arm = parse_arm(re.sub(r"</joint>\s*</robot>", follows, text)).with_gravity((0, 0, 0))
    assert arm.gripper_joints == ("l",)
    box = Shape("box", (0.04, 0.04, 0.04))
    cube = SceneObject("cube", box, np.array([0.002, 0, 0.4]), mass=0.1)
    hold = controlled(arm=arm, scene=Scene([cube]))
    result = grip(hold, 0.3, effort=[6.0]).result
    assert result.stalled
    run(hold, 0.5)
    contacts = hold.simulation.contacts
    force = [np.abs(contacts.force_on(jaw)[0]) for jaw in ("left", "right")]
    assert force == pytest.approx([4.0, 4.0], rel=1e-3)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (GripperCommand(["jaw"], [np.nan]), "'jaw': position = nan; expected -0.5 to 0.6"),
        (GripperCommand(["jaw"], [0.7]), "'jaw': position = 0.7; expected -0.5 to 0.6"),
        (
            GripperCommand((), [0.1], effort=[-1.0]),
            "'jaw': effort = -1; expected a finite number",
        ),
        (GripperCommand((), [0.1], velocity=[np.inf]), "'jaw': velocity = inf"),
        (GripperCommand((), [0.1], effort=[1.0, 2.0]), "effort: 2 values; expected 1 or none"),
        (GripperCommand(["jaw"], []), "joints = jaw, 0 positions; expected one position of jaw"),
        (GripperCommand((), [0.1, 0.2]), "joints = none, 2 positions"),
    ],
)
def test_bad_values_are_rejected_and_the_goal_before_continues(command, message):
    hold = controlled()
    goal = hold.loop.grip(GripperCommand((), [-0.4]))
    with pytest.raises(InvalidValue, match=message):
        hold.loop.grip(command)
    run(hold, 3.0, lambda: goal.result is not None)
    assert goal.result.reached_goal


def test_unknown_joints_arms_without_gripper_and_other_controllers_are_rejected():
    hold = controlled()
    with pytest.raises(UnknownName, match=r"gripper joint.*slide.*jaw"):
        hold.loop.grip(GripperCommand(["slide"], [0.1]))
    hold.loop.switch_controller(GravityCompensation(hold.loop.arm))
    run(hold, 0.02)
    with pytest.raises(TrajectoryRejected, match="GravityCompensation, which commands effort"):
        hold.loop.grip(GripperCommand((), [0.1]))
    with pytest.raises(InvalidValue, match="joints of arm 'five_dof' = none; expected joints"):
        Gripper(load_arm("five_dof")).goal(GripperCommand((), [0.1]))


def test_position_servos_get_a_reference_whose_stiffness_gives_the_effort():
    """|q_ref - q| = F / K while the jaw is blocked, and less where it moves freely."""
    arm, K = hand(), 20.0
    gripper = Gripper(arm)
    gripper.configure({"stiffness": K})
    gripper.begin(gripper.goal(GripperCommand((), [0.5], effort=[0.4])))
    hold = PositionController(arm).hold_trajectory(State.of([0.0, 0.1]))
    for k in range(1000):
        state = State.of([0.0, 0.1], time=4e-3 * k)
        reference = gripper.reference(hold.at(0.0), state, hold, 1, "position")
        assert reference.q[JAW] - 0.1 <= 0.4 / K + 1e-12
    assert reference.q[JAW] - 0.1 == pytest.approx(0.4 / K)
    assert reference.q[0] == 0.0


def test_the_held_effort_is_within_the_continuous_effort_of_the_motor():
    """At the effort N kt sqrt((T - T_a) / (R_th R(T))) the winding settles at T."""
    thermal = {"thermal_resistance": 20.0, "derating_temperature": 80.0, "max_temperature": 100.0}
    arm = load_arm("so101").with_motor("gripper", current_limit=2.0, **thermal)
    motor = arm.actuators[arm.index("gripper")]
    c = motor.constants
    current = motor.continuous_effort / (c["gear_ratio"] * c["kt"])
    hot = c["resistance"] * (1 + c["temperature_coefficient"] * (80 - 25))
    assert 25 + 20.0 * hot * current**2 == pytest.approx(80.0)
    gripper = Gripper(arm)
    goal = gripper.goal(GripperCommand(["gripper"], [0.0], effort=[2.0]))
    assert goal.effort == pytest.approx([2.0])
    assert goal.held == pytest.approx([motor.continuous_effort])
    (usual,) = Gripper(load_arm("so101")).continuous_effort
    assert usual == pytest.approx(2.94 / 3)
