"""Task-space controllers leave a singular configuration toward targets that they can reach."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain

from arm_dynamics import Plant, State, load_arm
from arm_dynamics.control.controllers.impedance import Impedance
from arm_dynamics.control.controllers.resolved_rate import ResolvedRate
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.task_space_base import to_task_reference
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.dynamics.kinematics.closed_loop_ik import ClosedLoopIk
from arm_dynamics.dynamics.kinematics.inverse_kinematics import nearest_reachable
from arm_dynamics.dynamics.kinematics.singular_escape import second_order
from arm_dynamics.safety.events import Events

DT = 2e-3
GAINS = {
    "tracking_rate": 10.0,
    "nullspace_rate": 2.0,
    "singular_value_threshold": 0.05,
    "max_joint_acceleration": 100.0,
}
STRETCHED = {
    "two_link": (0.0, 0.0),
    "four_joint": (0.0, 0.3, 0.0, 0.0),
    "three_link": (0.0, 0.0, 0.0),
}

WRIST = np.array([0.1, 0.8, -2.4, 0.3, 0.0, 0.2])
"""Of the puma560: axes 4 and 6 are in line."""

HAND = """<link name="hand"/><joint name="hand_fixed" type="fixed"><origin xyz="0.4 0 0"/>
<parent link="J2_link"/><child link="hand"/></joint>"""


def along_lost_direction(arm, q, distance):
    """Return the tool pose of q, displaced outward [m] along the direction lost by J."""
    virtual, held = ClosedLoopIk(arm), to_task_reference(arm, Reference.hold(q))
    rows = (virtual.scale[:, None] * frames.jacobian(arm, q))[virtual.axes]
    u = np.zeros(6)
    u[virtual.axes] = np.linalg.svd(rows)[0][:, -1]
    u *= np.sign(u[:3] @ (held.position - frames.joint_origins(arm, q)[1])) or 1.0
    turned = pin.exp3(distance / virtual.reach * u[3:]) @ held.rotation
    return replace(held, position=held.position + distance * u[:3], rotation=turned)


def tracked_ik(arm, q, task, seconds=3.0):
    """Return a CLIK that tracked a target from q; its limits hold at every instant."""
    virtual = ClosedLoopIk(arm)
    virtual.reset(np.asarray(q, dtype=float))
    for _ in range(round(seconds / DT)):
        before = virtual.v
        virtual.update(task, DT, GAINS)
        assert (virtual.q >= arm.lower).all()
        assert (virtual.q <= arm.upper).all()
        assert (np.abs(virtual.v) <= arm.velocity_limit * (1 + 1e-9)).all()
        if np.isinf(arm.upper).all():  # a joint that reaches its limit stops there
            assert np.abs(virtual.v - before).max() <= 100.0 * DT * (1 + 1e-9)
    return virtual


@pytest.mark.parametrize("name", ["four_joint", "puma560", "seven_dof_can"])
def test_second_order_motion_is_the_derivative_of_the_jacobian(name):
    arm, y, h = load_arm(name), np.array([0.3, -0.7, 0.5, 0.2, 0.9, -0.4]), 1e-6
    q = np.clip(np.linspace(-0.6, 0.8, arm.nv), arm.lower, arm.upper)
    found = second_order(np.array(frames.jacobian(arm, q)), y)
    columns = [
        y @ (frames.jacobian(arm, q + h * e) - frames.jacobian(arm, q - h * e)) / (2 * h)
        for e in np.eye(arm.nv)
    ]
    np.testing.assert_allclose(found, (np.array(columns) + np.array(columns).T) / 2, atol=1e-8)


@pytest.mark.quick(9)
@pytest.mark.parametrize("distance", [-0.3, -0.05, -0.01])
@pytest.mark.parametrize("bent", [0.0, 1e-12, -1e-9, 1e-6, -1e-3])
@pytest.mark.parametrize("name", STRETCHED)
def test_a_stretched_arm_reaches_a_target_straight_inward(name, bent, distance):
    arm = load_arm(name)
    q = np.array(STRETCHED[name])
    virtual = tracked_ik(arm, q + bent, along_lost_direction(arm, q, distance))
    assert virtual.reachability_error < max(1e-3, 4e-4 * virtual.reach)
    assert np.abs(virtual.v).max() < 0.02


@pytest.mark.parametrize("name", STRETCHED)
@pytest.mark.parametrize("distance", [0.3, 0.01, 0.0])
def test_an_unreachable_target_or_one_at_the_tool_causes_no_motion(name, distance):
    arm, q = load_arm(name), np.array(STRETCHED[name])
    virtual = tracked_ik(arm, q, along_lost_direction(arm, q, distance), 1.0)
    np.testing.assert_allclose(virtual.q, q, atol=1e-9)
    assert virtual.reachability_error == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize("bent", [0.0, 1e-12, 1e-3])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("stop", [0.0, 0.01])
def test_an_elbow_bends_to_the_side_that_its_limits_allow(stop, side, bent):
    """Its limit is at full extension or shortly behind, on the bent side."""
    limits = {"lower": -stop, "upper": 2.5} if side > 0 else {"lower": -2.5, "upper": stop}
    free = {"effort": 10.0, "lower": -3.0, "upper": 3.0, "axis": "0 1 0"}
    arm = chain(free, {**free, **limits, "xyz": "0.5 0 0"}, more=HAND)
    q = np.array([0.2, -side * min(bent, stop)])
    task = along_lost_direction(arm, np.array([0.2, 0.0]), -0.2)
    virtual = tracked_ik(arm, q, task)
    assert virtual.reachability_error < 1e-3
    assert side * virtual.q[1] > 0.1


@pytest.mark.parametrize("distance", [-0.3, -0.1, 0.1])
def test_a_wrist_turns_out_of_its_singular_configuration(distance):
    """The lost rotation needs a self-motion of joints 4 and 6, whose own second order is 0."""
    arm = load_arm("puma560").with_actuator("ideal")
    virtual = tracked_ik(arm, WRIST, along_lost_direction(arm, WRIST, distance))
    assert virtual.reachability_error < 1e-3


def test_a_folded_arm_turns_to_the_side_where_its_elbow_opens():
    """The posture attracts joint 1 to the other side, where the elbow would have to close again."""
    arm, q = load_arm("two_link"), np.array([-1.865, np.pi])
    target = np.array([0.029, 0.0, -0.03])
    virtual = tracked_ik(
        arm, q, replace(to_task_reference(arm, Reference.hold(q)), position=target)
    )
    assert virtual.q[0] < q[0]
    assert virtual.reachability_error < 3e-3


def chosen_direction(sideways, last=(0.0, 0.0)):
    """Return the direction in which a stretched arm bends toward a target inward and to a side, and
    the gradient of the outward position after the motion to the side.
    """
    arm, q = load_arm("two_link"), np.zeros(2)
    held = to_task_reference(arm, Reference.hold(q))
    outward = held.position - frames.joint_origins(arm, q)[0]
    outward /= np.linalg.norm(outward)
    side = sideways * np.cross([0.0, 1.0, 0.0], outward)
    virtual = ClosedLoopIk(arm)
    virtual.reset(q)
    virtual.joints[3] = last
    virtual.update(replace(held, position=held.position - 0.05 * outward + side), DT, GAINS)
    moved = q + np.linalg.pinv(frames.jacobian(arm, q)[:3]) @ side
    return virtual.joints[3], frames.jacobian(arm, moved)[:3].T @ (0.05 * outward)


@pytest.mark.parametrize("sideways", [0.19, -0.19])
def test_an_arm_bends_to_the_side_to_which_the_target_moves_it(sideways):
    """Also if the direction of the last period opposes it."""
    direction, gradient = chosen_direction(sideways)
    assert direction @ gradient < -0.05 * np.linalg.norm(gradient)
    np.testing.assert_allclose(chosen_direction(sideways, -direction)[0], direction, atol=1e-9)


def test_an_arm_keeps_the_side_to_which_it_bends():
    direction, _ = chosen_direction(0.0)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    for last in (direction, -direction):
        np.testing.assert_allclose(chosen_direction(0.0, last)[0], last, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "q", "target", "turned"),
    [
        (
            "four_joint",
            (2.0075, -np.pi, -np.pi, np.pi),
            (0.02528, -0.00682, -0.24828),
            (-1.08518, 1.23911, 0.91363),
        ),
        (
            "seven_dof_can",
            (1.44133, 1.40631, 0.87186, 0.001, -0.53875, 0.7854, -1.5682),
            (-0.30434, -0.06932, 0.20915),
            (0.59161, -1.33118, 1.77244),
        ),
    ],
)
def test_an_arm_near_a_singular_configuration_comes_to_rest(name, q, target, turned):
    """Where the curvature ends, and where a joint is about to meet its position limit."""
    arm = load_arm(name)
    task = replace(
        to_task_reference(arm, Reference.hold(np.array(q))),
        position=np.array(target),
        rotation=pin.exp3(np.array(turned)),
    )
    virtual = tracked_ik(arm, np.clip(q, arm.lower, arm.upper), task)
    for _ in range(2):
        virtual.update(task, DT, GAINS)
        assert np.abs(virtual.v).max() < 1e-2


@pytest.mark.parametrize("kind", [ResolvedRate, TaskSpace, Impedance])
def test_the_arm_leaves_a_stretched_configuration(kind):
    arm, q = load_arm("four_joint").with_actuator("ideal"), np.array(STRETCHED["four_joint"])
    task, controller, plant, state = (
        along_lost_direction(arm, q, -0.3),
        kind(arm),
        Plant(arm),
        State.of(q),
    )
    controller.reset(state)
    for k in range(1000):
        state = plant.step(state, controller.update(state, task, DT * (k > 0)), DT / 2, 2)
    reached = frames.tool_position(arm, state.q)
    assert np.linalg.norm(reached - task.position) < (2e-2 if kind is Impedance else 1e-3)


def stall(arm, q, task, seconds=2.0):
    """Return the monitor and its events after some time [s] at a target that may have a twist."""
    controller, events = TaskSpace(arm), Events()
    monitor = ReachabilityMonitor(controller, events)
    controller.reset(State.of(q))
    for k in range(round(seconds / DT)):
        at = task.position + k * DT * task.twist[:3]
        controller.reachable_reference(replace(task, position=at), DT * (k > 0))
        monitor.update()
    return monitor, events


def test_a_stall_is_one_event_that_names_its_cause():
    arm, q = load_arm("four_joint").with_actuator("ideal"), np.array(STRETCHED["four_joint"])
    monitor, events = stall(arm, q, along_lost_direction(arm, q, 0.3))
    assert events.counts["stalled"] == 1
    assert "near singularity" in events.latest["stalled"]
    assert "distance = 0.3 m" in events.latest["stalled"]
    monitor, events = stall(arm, q, along_lost_direction(arm, q, -0.3))
    assert not monitor.stalled
    assert not events.counts["stalled"]


@pytest.mark.parametrize("beyond", [0.0015, 0.006, 0.3])
def test_an_arm_at_rest_away_from_its_target_is_stalled_at_any_distance(beyond):
    arm, q = load_arm("two_link"), np.array(STRETCHED["two_link"])
    _, events = stall(arm, q, along_lost_direction(arm, q, beyond))
    assert events.counts["stalled"] == 1
    assert f"distance = {beyond:g} m without progress" in events.latest["stalled"]
    near = along_lost_direction(arm, q, 0.0008)
    assert not stall(arm, q, near)[1].counts["stalled"], "that counts as reached"


def test_motion_along_the_workspace_limit_is_not_a_stall_but_its_end_is():
    arm, q = load_arm("two_link"), np.array(STRETCHED["two_link"])
    beyond, along = along_lost_direction(arm, q, 0.05), np.zeros(6)
    along[2] = 0.2
    monitor, events = stall(arm, q, replace(beyond, twist=along), 3.0)
    assert monitor.reachability_error > 0.05
    assert not events.counts["stalled"]
    monitor, events = stall(
        arm, q, replace(beyond, position=beyond.position * [1.0, 1.0, 0.0]), 3.0
    )
    assert events.counts["stalled"] == 1


def test_a_wrist_stalls_at_the_pose_nearest_to_a_target_beyond_its_reach():
    """The elbow is stretched where the tool comes closest: 0.041 m are left."""
    arm = load_arm("puma560").with_actuator("ideal")
    task = along_lost_direction(arm, WRIST, 0.3)
    best = nearest_reachable(arm, task.position, task.rotation, initial_guess=WRIST, restarts=10)
    monitor, events = stall(arm, WRIST, task)
    assert best.position_error > 0.04
    assert monitor.reachability_error == pytest.approx(
        np.hypot(best.position_error, best.orientation_error), abs=1e-3
    )
    assert events.counts["stalled"] == 1
    assert "near singularity" in monitor.stalled


def test_a_stall_at_a_position_limit_names_the_joint():
    free = {"effort": 10.0, "lower": -0.5, "upper": 0.5, "axis": "0 1 0"}
    arm = chain(free, {**free, "xyz": "0.5 0 0"}, more=HAND)
    q = np.array([0.5, 0.3])
    monitor, events = stall(arm, q, to_task_reference(arm, Reference.hold(q + 0.6)))
    assert events.counts["stalled"] == 1
    assert f"position limit of joint '{arm.joint_names[0]}'" in monitor.stalled
