"""Gripper actions over ROS: a simulated hand that grasps a ball, its contacts, rejected goals."""

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
from control_msgs.msg import GripperCommand as Command
from control_msgs.srv import QueryTrajectoryState
from geometry_msgs.msg import WrenchStamped
from gripper_arm import HAND, ball
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.collision.scene_files import scene_text
from arm_dynamics.ros.topics.contact_topics import LENGTH

from .link import LOCKSTEP, trajectory

EFFORT = 0.5
ACTIONS = {
    ParallelGripperCommand: "joint_controller/gripper_cmd",
    GripperCommand: "joint_controller/gripper_action",
}


@pytest.fixture(scope="module")
def hand(shared, tmp_path_factory):
    """Start a weightless hand around a ball; return its recorded states."""
    folder = tmp_path_factory.mktemp("hand")
    (folder / "hand.urdf").write_text(HAND)
    (folder / "ball.yaml").write_text(scene_text(ball()))
    arm, states = folder / "hand.urdf", shared.states()
    shared.start(
        *("simulator",), arm=arm, scene=folder / "ball.yaml", dt=1e-3, gravity=[0, 0, 0], **LOCKSTEP
    )
    shared.start("joint_controller", arm=arm, allow_partial_joints_goal=True)
    shared.wait_until(states, 0.1)
    return states


@pytest.fixture(autouse=True)
def opened(shared, hand):
    """Open the hand before each test."""
    assert sent(shared, parallel([-0.3])).result.reached_goal


def parallel(position, **fields):
    fields = {"name": ["jaw"], "position": position, **fields}
    return ParallelGripperCommand.Goal(command=JointState(**fields))


def begun(shared, goal, feedback=None):
    kind = next(kind for kind in ACTIONS if isinstance(goal, kind.Goal))
    client = shared.action(kind, ACTIONS[kind])
    return shared.answer(client.send_goal_async(goal, feedback_callback=feedback))


def sent(shared, goal):
    """Return status and result of an accepted goal."""
    handle = begun(shared, goal)
    assert handle.accepted, shared.report("rejected")
    return shared.answer(handle.get_result_async())


def passed(shared, hand, seconds):
    """Wait until ``seconds`` more are simulated, and recorded: a record lags on a busy machine."""
    reply = shared.call(QueryTrajectoryState, "joint_controller/query_state")
    time = float(reply.message.split()[2])  # "reference at TIME s"
    shared.wait_until(hand, time - 1e-3 + seconds)


def test_a_grasp_stalls_and_holds_the_commanded_effort(shared, hand):
    markers = shared.record(MarkerArray, "simulator/contacts")
    wrenches = shared.record(WrenchStamped, "simulator/tool_wrench")
    answer = sent(shared, parallel([0.5], effort=[EFFORT]))
    assert answer.status == GoalStatus.STATUS_ABORTED  # as of ros2_control without allow_stalling
    assert (answer.result.stalled, answer.result.reached_goal) == (True, False)
    assert list(answer.result.state.name) == ["jaw"]
    assert answer.result.state.position[0] == pytest.approx(0.2685, abs=1e-3)
    passed(shared, hand, 0.2)
    assert hand.newest.effort[1] == EFFORT
    first = len(markers)
    shared.wait_for(lambda: len(markers) > first and len(wrenches), "no contacts")
    cleared, *arrows = markers.newest.markers
    assert cleared.action == Marker.DELETEALL
    jaw = next(arrow for arrow in arrows if "jaw_link" in arrow.ns.split())
    assert sorted(jaw.ns.split()) == ["ball", "jaw_link"]
    start, end = (np.array([p.x, p.y, p.z]) for p in jaw.points)
    pivot = np.array([0.03, 0.0, 0.0])
    moment = np.cross(start - pivot, end - start) / LENGTH
    assert abs(moment[2]) == pytest.approx(EFFORT, rel=1e-3)
    wrench = wrenches.newest
    assert wrench.header.frame_id == "palm"
    force = [getattr(wrench.wrench.force, axis) for axis in "xyz"]
    np.testing.assert_allclose(force, 0, atol=1e-3)  # the grasp forces are internal


def test_with_allow_stalling_the_goal_succeeds_and_the_arm_carries_the_ball(shared, hand):
    assert shared.set("joint_controller", gripper__allow_stalling=True)[0].successful
    answer = sent(shared, parallel([0.5], effort=[EFFORT]))
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert answer.result.stalled
    goal = FollowJointTrajectory.Goal(trajectory=trajectory((1.0, [0.1], [0.0]), names=["slide"]))
    client = shared.action(FollowJointTrajectory, "joint_controller/follow_joint_trajectory")
    handle = shared.answer(client.send_goal_async(goal))
    assert shared.answer(handle.get_result_async()).result.error_code == 0
    passed(shared, hand, 0.1)
    assert hand.newest.effort[1] == EFFORT
    assert hand.newest.position[0] == pytest.approx(0.1, abs=1e-3)
    assert shared.set("joint_controller", gripper__allow_stalling=False)[0].successful


def test_gripper_command_has_one_position_and_effort(shared, hand):
    feedback = []
    handle = begun(shared, GripperCommand.Goal(command=Command(position=-0.45)), feedback.append)
    answer = shared.answer(handle.get_result_async())
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert answer.result.reached_goal
    assert answer.result.position == pytest.approx(-0.45, abs=0.011)
    assert all(not m.feedback.stalled for m in feedback)
    blocked = GripperCommand.Goal(command=Command(position=0.5, max_effort=0.2))
    answer = sent(shared, blocked)
    assert answer.result.stalled
    passed(shared, hand, 0.2)
    assert hand.newest.effort[1] == 0.2


def test_a_canceled_goal_holds_and_a_new_goal_preempts(shared, hand):
    handle = begun(shared, parallel([0.6], velocity=[0.01]))
    passed(shared, hand, 0.5)
    assert shared.answer(handle.cancel_goal_async()).goals_canceling
    answer = shared.answer(handle.get_result_async())
    assert answer.status == GoalStatus.STATUS_CANCELED
    at = answer.result.state.position[0]
    passed(shared, hand, 1.0)
    assert hand.newest.position[1] == pytest.approx(at, abs=0.01)
    handle = begun(shared, parallel([0.6], velocity=[0.01]))
    assert sent(shared, parallel([-0.3])).result.reached_goal
    assert shared.answer(handle.get_result_async()).status == GoalStatus.STATUS_ABORTED


def test_a_wrench_on_a_link_accelerates_it_and_ends(shared, hand):
    """In one period Δv = F dt / m in free space; then the controller returns the slide."""
    assert shared.pause().success
    passed(shared, hand, 0.0)
    wrench = WrenchStamped(header=Header(frame_id="palm"))
    wrench.wrench.force.x = -7.0  # away from the ball
    shared.publish(wrench, "simulator/link_wrench")

    def moved():
        states = len(hand)
        assert shared.trigger("simulator/step").success
        shared.wait_for(lambda: len(hand) > states, "no step")
        return hand.newest.velocity[0] if abs(hand.newest.velocity[0]) > 1e-3 else None

    velocity = shared.wait_for(moved, "no wrench")
    assert shared.pause(False).success
    assert velocity == pytest.approx(-7.0 * 0.002 / 0.35, rel=1e-3)
    shared.wait_for(lambda: hand.newest.effort[0] > 1.0, "the wrench is not compensated")
    passed(shared, hand, 2.5)
    assert hand.newest.effort[0] == pytest.approx(0.0, abs=0.05)


def test_an_emergency_stop_ends_the_goal(shared, hand):
    handle = begun(shared, parallel([0.1], velocity=[0.01]))
    assert shared.trigger("simulator/emergency_stop").success
    answer = shared.answer(handle.get_result_async())
    assert answer.status == GoalStatus.STATUS_ABORTED
    assert not begun(shared, parallel([0.0])).accepted
    at = answer.result.state.position[0]
    assert shared.trigger("simulator/reset_emergency_stop").success
    passed(shared, hand, 1.0)
    assert hand.newest.position[1] == pytest.approx(at, abs=0.01)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({"position": [np.nan]}, "'jaw': position = nan; expected -0.5 to 0.6"),
        ({"position": [2.0]}, "'jaw': position = 2; expected -0.5 to 0.6"),
        ({"position": [0.1], "effort": [-1.0]}, "'jaw': effort = -1; expected a finite number"),
        ({"position": [0.1], "name": ["jav"]}, "unknown gripper joint 'jav'; known: jaw"),
        ({"position": [0.1] * 2000, "name": ["jaw"] * 2000}, "2000"),
    ],
)
def test_bad_goals_are_rejected_with_the_reason(shared, hand, command, reason):
    command = dict(command)
    assert not begun(shared, parallel(command.pop("position"), **command)).accepted
    key = "last goal_rejected"
    shared.diagnosis("joint_controller", lambda values: reason in values.get(key, ""))
