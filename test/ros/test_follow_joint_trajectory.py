"""FollowJointTrajectory action between two processes: every result of a goal."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml

from .link import (
    GAINS,
    INITIAL,
    JOINTS,
    LOCKSTEP,
    ROOT,
    Motion,
    stamp,
    to_time,
    trajectory,
)

try:
    from action_msgs.msg import GoalStatus
    from builtin_interfaces.msg import Duration
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance, JointTrajectoryControllerState, SpeedScalingFactor
    from control_msgs.srv import QueryTrajectoryState
except ImportError as error:
    raise RuntimeError("control_msgs is missing: run interfaces/build.py") from error

from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

MOVEIT = yaml.safe_load((ROOT / "config/moveit/five_dof_controllers.yaml").read_text())
MANAGER = MOVEIT["moveit_simple_controller_manager"]
CONTROLLER = MANAGER["controller_names"][0]
NAME = f"{CONTROLLER}/{MANAGER[CONTROLLER]['action_ns']}"
"""The action that MoveIt calls by its controllers file."""
AWAY = INITIAL + np.array([0.3, 0.25, -0.3, 0.4, -0.3])
REST = np.zeros(5)
SCALING = "joint_controller/speed_scaling_input"
Result = FollowJointTrajectory.Result


@pytest.fixture(scope="module")
def states(shared):
    """Start a controlled arm in lockstep; return the recorded states."""
    record = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start("joint_controller", GAINS, reject_invalid_goals=False)
    shared.wait_until(record, 0.1)
    return record


@pytest.fixture(autouse=True)
def at_home(request):
    """Move the arm to its initial configuration before each test."""
    if "states" not in request.fixturenames:
        return
    shared, states = request.getfixturevalue("shared"), request.getfixturevalue("states")
    assert shared.pause(False).success
    if SCALING in shared._publishers:
        scale(shared, 1.0)
    if np.abs(np.array(states.newest.position) - INITIAL).max() > 1e-3:
        free = dict.fromkeys(JOINTS, -1.0)  # the test before may have left the arm in motion
        result = send(shared, goal((1.5, INITIAL, REST), path=free))
        assert result.error_code == Result.SUCCESSFUL


def goal(*points, path=None, end=None, goal_time=0.0, **more):
    """Return a goal; ``path`` and ``end`` are position tolerances by joint."""
    message = FollowJointTrajectory.Goal(trajectory=trajectory(*points, **more))
    wait = to_time(abs(goal_time))
    message.goal_time_tolerance = Duration(sec=wait.sec, nanosec=wait.nanosec)
    message.path_tolerance = [JointTolerance(name=n, position=x) for n, x in (path or {}).items()]
    message.goal_tolerance = [JointTolerance(name=n, position=x) for n, x in (end or {}).items()]
    return message


def begin(ros, message, feedback=None):
    """Send a goal and return its handle; it must be accepted."""
    client = ros.action(FollowJointTrajectory, NAME)
    handle = ros.answer(client.send_goal_async(message, feedback_callback=feedback))
    assert handle.accepted, ros.report("the goal was rejected")
    return handle


def end(ros, handle):
    """Return the result of a goal; store its status in ``end.status``."""
    answer = ros.answer(handle.get_result_async())
    end.status = answer.status
    return answer.result


def send(ros, message):
    return end(ros, begin(ros, message))


def slow(seconds=40.0, **more):
    """Return a goal with a long duration."""
    return goal((seconds, AWAY, REST), **more)


def test_a_goal_succeeds_with_feedback(shared, states):
    received = []
    handle = begin(
        shared, goal((3.0, AWAY, REST), end=dict.fromkeys(JOINTS, 0.01)), received.append
    )
    result = end(shared, handle)
    assert end.status == GoalStatus.STATUS_SUCCEEDED
    assert result.error_code == Result.SUCCESSFUL
    assert np.abs(np.array(states.newest.position) - AWAY).max() < 0.011
    assert received
    for feedback in (message.feedback for message in received):
        assert tuple(feedback.joint_names) == JOINTS
        difference = np.array(feedback.desired.positions) - np.array(feedback.actual.positions)
        np.testing.assert_array_equal(feedback.error.positions, difference)
    stamps = np.array([stamp(m.feedback) for m in received])
    assert (np.diff(stamps) >= 0).all()
    assert {m.feedback.header.frame_id for m in received} == {"base_link"}
    for part in ("desired", "actual", "error"):
        passed = np.array([since_start(getattr(m.feedback, part)) for m in received])
        assert 0 <= passed[0] < passed[-1]
        np.testing.assert_allclose(np.diff(passed), np.diff(stamps), atol=0.005)


def since_start(point):
    """Return time_from_start [s] of a point."""
    return point.time_from_start.sec + point.time_from_start.nanosec * 1e-9


def test_the_moveit_controllers_file_matches_the_arm():
    assert MOVEIT["moveit_controller_manager"].startswith("moveit_simple_controller_manager/")
    assert MANAGER[CONTROLLER]["type"] == "FollowJointTrajectory"
    assert tuple(MANAGER[CONTROLLER]["joints"]) == JOINTS
    assert NAME == "joint_controller/follow_joint_trajectory"


INVALID = {
    "no points": (goal(), Result.INVALID_GOAL, ["number of waypoints = 0"]),
    "sizes": (goal((1, AWAY[:3])), Result.INVALID_GOAL, ["3 positions; expected 5"]),
    "times": (goal((1, AWAY), (1, INITIAL)), Result.INVALID_GOAL, ["strictly increasing"]),
    "nan": (goal((1, [0, float("nan"), 0, 0, 0])), Result.INVALID_GOAL, ["R2", "nan"]),
    "moving end": (goal((1, AWAY, REST + 0.1)), Result.INVALID_GOAL, ["R1", "0.1 rad/s"]),
    "position": (goal((9, [0, -1.1, 0.9, 0, 0], REST)), Result.INVALID_GOAL,
        ["'R3'", "position = 0.9 rad at", "0.6"]),
    "velocity": (goal((0.2, AWAY, REST)), Result.INVALID_GOAL, ["velocity", "at", "limit 1.2"]),
    "tolerance": (goal((1, AWAY), path={"R2": -3.0}), Result.INVALID_GOAL, ["R2", "path", "-3"]),
    "unknown joint": (goal((1, AWAY), names=[*JOINTS[:4], "R9"]), Result.INVALID_JOINTS, ["R9"]),
    "missing joint": (goal((1, AWAY[:4]), names=JOINTS[:4]), Result.INVALID_JOINTS, ["R5"]),
    "no joints": (goal((1, []), names=[]), Result.INVALID_JOINTS, ["R1"]),
    "long ago": (goal((1e-9, AWAY), start=1e-9), Result.OLD_HEADER_TIMESTAMP, ["last waypoint"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_goal_is_aborted_with_code_and_reason(shared, states, kind):
    message, code, words = INVALID[kind]
    result = send(shared, message)
    assert end.status == GoalStatus.STATUS_ABORTED
    assert result.error_code == code
    for word in words:
        assert word in result.error_string


def test_invalid_goals_are_rejected_by_default_with_a_logged_reason(ros):
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)
    client = ros.action(FollowJointTrajectory, NAME)
    for message, _, _ in INVALID.values():
        assert not ros.answer(client.send_goal_async(message)).accepted
    assert not ros.answer(client.send_goal_async(INVALID["unknown joint"][0])).accepted
    count = str(len(INVALID) + 1)
    values = ros.diagnosis("joint_controller", lambda v: v.get("goal_rejected") == count)
    assert "INVALID_JOINTS: unknown joint 'R9'" in values["last goal_rejected"]
    assert values["control_msgs"] == "found"
    assert ros.stop_all() == [0, 0], ros.report("")
    log = [line for line in ros.processes[1].output.splitlines() if "goal_rejected: " in line]
    assert len(log) == len(INVALID) + 1
    for line, (_, _, words) in zip(log, INVALID.values(), strict=False):
        assert all(word in line for word in words), line


def test_a_goal_is_aborted_when_the_simulator_ends(ros):
    states = ros.states()
    simulator = ros.start("simulator", **LOCKSTEP)
    ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)
    handle = begin(ros, slow(1000.0))
    assert simulator.stop() == 0
    result = end(ros, handle)
    assert end.status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Result.INVALID_GOAL
    assert "interrupted: no publisher on /joint_states" in result.error_string


def test_an_effort_beyond_the_limit_is_rejected(shared, states):
    assert shared.set("joint_controller", payload_mass=16.0)[0].successful
    result = send(shared, goal((1.5, AWAY, REST)))
    assert shared.set("joint_controller", payload_mass=0.0)[0].successful
    assert result.error_code == Result.INVALID_GOAL
    assert "effort" in result.error_string
    assert "expected within the limit" in result.error_string


def test_an_error_on_the_path_aborts_with_joint_amount_limit_and_time(shared, states):
    result = send(shared, goal((1.0, AWAY, REST), path={"R3": 1e-6}))
    assert end.status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Result.PATH_TOLERANCE_VIOLATED
    assert "joint 'R3': position error" in result.error_string
    assert "expected within the tolerance 1e-06 at" in result.error_string
    shared.wait_longer(states, 1.0)
    assert np.abs(states.newest.velocity).max() < 1e-3


def test_tolerances_are_parameters_and_minus_one_erases_them(shared, states):
    tight = {"constraints__R3__trajectory": 1e-6}
    assert shared.set("joint_controller", **tight)[0].successful
    assert send(shared, goal((1.0, AWAY, REST))).error_code == Result.PATH_TOLERANCE_VIOLATED
    erased = send(shared, goal((1.0, INITIAL, REST), path={"R3": -1.0}))
    assert erased.error_code == Result.SUCCESSFUL
    assert not shared.set("joint_controller", constraints__R3__trajectory=-1.0)[0].successful
    assert shared.set("joint_controller", constraints__R3__trajectory=0.0)[0].successful


def test_an_error_at_the_end_aborts_after_the_goal_time(shared, states):
    result = send(shared, goal((1.0, AWAY, REST), end={"R3": 1e-15}, goal_time=0.05))
    assert end.status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Result.GOAL_TOLERANCE_VIOLATED
    assert "joint 'R3': position error" in result.error_string
    assert "0.05 s after the trajectory's end" in result.error_string


def test_cancel_brings_the_arm_to_rest_before_the_target(shared, states):
    first = len(states)
    handle = begin(shared, slow(4.0))
    shared.wait_longer(states, 1.5)
    answer = shared.answer(handle.cancel_goal_async())
    assert len(answer.goals_canceling) == 1
    result = end(shared, handle)
    assert end.status == GoalStatus.STATUS_CANCELED
    assert "stopped" in result.error_string
    shared.wait_longer(states, 1.0)
    motion = Motion(states.messages(first))
    assert np.abs(motion.v).max() > 0.05
    assert np.abs(motion.v[-1]).max() < 1e-3
    assert np.abs(motion.q[-1] - AWAY).max() > 0.02


def test_cancel_returns_while_the_simulator_is_paused(shared, states):
    handle = begin(shared, slow())
    shared.wait_longer(states, 0.5)
    assert shared.pause().success
    shared.answer(handle.cancel_goal_async())
    result = end(shared, handle)
    assert end.status == GoalStatus.STATUS_CANCELED
    assert "no joint state for" in result.error_string
    assert shared.pause(False).success
    shared.wait_longer(states, 1.0)
    assert np.abs(states.newest.velocity).max() < 1e-3
    assert np.abs(np.array(states.newest.position) - AWAY).max() > 0.2


def test_a_goal_that_is_over_cannot_be_canceled(shared, states):
    handle = begin(shared, goal((0.5, INITIAL, REST)))
    end(shared, handle)
    assert not shared.answer(handle.cancel_goal_async()).goals_canceling


def test_a_new_goal_preempts(shared, states):
    first = begin(shared, slow())
    shared.wait_longer(states, 0.5)
    second = begin(shared, goal((1.0, INITIAL, REST)))
    result = end(shared, first)
    assert end.status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Result.INVALID_GOAL
    assert "preempted" in result.error_string
    assert end(shared, second).error_code == Result.SUCCESSFUL


def test_a_trajectory_from_the_topic_overrides_without_aborting(shared, states):
    shared.meet(JointTrajectory, "joint_controller/joint_trajectory")
    handle = begin(shared, slow())
    shared.wait_longer(states, 0.5)
    shared.publish(trajectory((0.5, INITIAL, REST)), "joint_controller/joint_trajectory")
    result = end(shared, handle)
    assert end.status == GoalStatus.STATUS_SUCCEEDED
    assert "another trajectory" in result.error_string


def test_a_reset_aborts(shared, states):
    handle = begin(shared, slow(12.0))
    shared.wait_longer(states, 5.0)
    assert shared.trigger("simulator/reset").success
    result = end(shared, handle)
    assert result.error_code == Result.INVALID_GOAL
    assert "interrupted" in result.error_string


CLIENT = """\
import sys, time, rclpy
from rclpy.action import ActionClient
from control_msgs.action import FollowJointTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
rclpy.init()
node = rclpy.create_node("doomed")
client = ActionClient(node, FollowJointTrajectory, sys.argv[1])
client.wait_for_server()
points = [JointTrajectoryPoint(positions=[float(x) for x in sys.argv[3:8]], velocities=[0.0] * 5)]
points[0].time_from_start.sec = 8
goal = FollowJointTrajectory.Goal()
goal.trajectory = JointTrajectory(joint_names=sys.argv[2].split(","), points=points)
future = client.send_goal_async(goal)
rclpy.spin_until_future_complete(node, future)
result = future.result().get_result_async()
print("accepted", future.result().accepted, flush=True)
rclpy.spin_until_future_complete(node, result)
"""


def test_the_goal_of_a_killed_client_is_completed(shared, states):
    arguments = [NAME, ",".join(JOINTS), *map(str, AWAY)]
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *arguments],
        cwd=ROOT,
        env={**os.environ, "ROS_DOMAIN_ID": str(shared.domain)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert client.stdout.readline() == "accepted True\n"
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait(10)
        client.stdout.close()
    close = lambda: np.abs(np.array(states.newest.position) - AWAY).max() < 0.01  # noqa: E731
    shared.wait_for(close, "the goal of the killed client is not reached")
    assert send(shared, goal((1.5, INITIAL, REST))).error_code == Result.SUCCESSFUL


def test_partial_joint_goals_require_their_parameter(shared, states):
    part = goal((1.0, [AWAY[2]], [0.0]), names=["R3"])
    rejected = send(shared, part)
    assert rejected.error_code == Result.INVALID_JOINTS
    assert "the parameter allow_partial_joints_goal true" in rejected.error_string
    assert shared.set("joint_controller", allow_partial_joints_goal=True)[0].successful
    assert send(shared, part).error_code == Result.SUCCESSFUL
    assert shared.set("joint_controller", allow_partial_joints_goal=False)[0].successful
    moved = np.array(states.newest.position) - INITIAL
    assert moved[2] == pytest.approx(-0.3, abs=0.01)
    assert np.abs(np.delete(moved, 2)).max() < 0.01


def test_partial_trajectories_on_the_topic_require_the_same_parameter(shared, states):
    part = trajectory((1.0, [AWAY[2]], [0.0]), names=["R3"])
    shared.publish(part, "joint_controller/joint_trajectory")
    values = shared.diagnosis("joint_controller", lambda v: "trajectory_rejected" in v)
    assert "allow_partial_joints_goal true" in values["last trajectory_rejected"]
    assert shared.set("joint_controller", allow_partial_joints_goal=True)[0].successful
    shared.publish(part, "joint_controller/joint_trajectory")
    expected = np.where(np.array(JOINTS) == "R3", AWAY, INITIAL)
    close = lambda: np.abs(np.array(states.newest.position) - expected).max() < 0.01  # noqa: E731
    shared.wait_for(close, "R3 did not move")
    assert shared.set("joint_controller", allow_partial_joints_goal=False)[0].successful


def test_a_cmd_timeout_within_the_goal_time_is_ignored_with_a_warning(shared, states):
    assert shared.set("joint_controller", constraints__goal_time=0.5)[0].successful
    assert shared.set("joint_controller", cmd_timeout=0.5)[0].successful
    values = shared.diagnosis("joint_controller", lambda v: "cmd_timeout_ignored" in v)
    assert values["last cmd_timeout_ignored"] == (
        "cmd_timeout = 0.5 s; expected more than constraints.goal_time (0.5 s);"
        " the time-out is disabled"
    )
    for result in shared.set("joint_controller", cmd_timeout=0.0, constraints__goal_time=0.0):
        assert result.successful


# --- speed scaling, state, query


def scale(shared, factor):
    if SCALING not in shared._publishers:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        shared._publishers[SCALING] = shared._listener.create_publisher(
            SpeedScalingFactor, SCALING, latched
        )
    shared._publishers[SCALING].publish(SpeedScalingFactor(factor=factor))


def test_speed_scaling_pauses_and_resumes(shared, states):
    record = shared.record(JointTrajectoryControllerState, "joint_controller/controller_state")
    handle = begin(shared, goal((4.0, AWAY, REST), goal_time=0.5))
    shared.wait_longer(states, 1.0)
    scale(shared, 0.0)
    shared.wait_for(lambda: record.raw and record.newest.speed_scaling_factor == 0.0, "no pause")
    held = record.newest
    assert not np.any(held.reference.velocities)
    shared.wait_longer(states, 6.0)
    shared.wait_for(lambda: stamp(record.newest) > stamp(held) + 5, "no newer state")
    assert record.newest.reference.positions == held.reference.positions
    assert np.abs(np.array(held.reference.positions) - AWAY).max() > 0.1
    scale(shared, 1.0)
    assert end(shared, handle).error_code == Result.SUCCESSFUL
    shared.wait_for(lambda: record.newest.speed_scaling_factor == 1.0, "still slow")


def test_time_from_start_of_desired_and_actual(shared, states):
    """At half speed ``desired`` advances half as fast; before the start both are negative."""
    received = []
    scale(shared, 0.5)
    ahead = stamp(states.newest) + 2.0
    end(shared, begin(shared, goal((0.5, INITIAL + 0.05, REST), start=ahead), received.append))
    scale(shared, 1.0)
    desired, actual = (
        np.array([since_start(getattr(m.feedback, part)) for m in received])
        for part in ("desired", "actual")
    )
    assert desired[0] < actual[0] < 0
    stamps = np.array([stamp(m.feedback) for m in received])
    np.testing.assert_allclose(actual, stamps - ahead, atol=0.005)
    late = stamps > ahead
    rate = np.diff(desired[late]).sum() / np.diff(actual[late]).sum()
    assert rate == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("factor", [-0.5, 1.5, float("nan")])
def test_an_invalid_speed_scaling_factor_is_rejected(shared, states, factor):
    scale(shared, factor)
    shared.diagnosis(
        "joint_controller", lambda v: f"{factor:g}" in v.get("last speed_scaling_rejected", "")
    )


def test_controller_state_contains_all_fields(shared, states):
    first = len(states)
    record = shared.record(JointTrajectoryControllerState, "joint_controller/controller_state")
    shared.wait_for(lambda: len(record) > 10, "no controller_state")
    by_stamp = {stamp(message): message for message in states.messages(first)}
    compared = 0
    for message in record.messages():
        assert tuple(message.joint_names) == JOINTS
        assert message.speed_scaling_factor == 1.0
        difference = np.array(message.reference.positions) - np.array(message.feedback.positions)
        np.testing.assert_array_equal(message.error.positions, difference)
        assert len(message.output.effort) == 5
        if stamp(message) in by_stamp:
            assert message.feedback.positions == by_stamp[stamp(message)].position
            compared += 1
    assert compared > 0


def query(shared, seconds):
    request = QueryTrajectoryState.Request(time=to_time(seconds))
    return shared.call(QueryTrajectoryState, "joint_controller/query_state", request)


def test_query_returns_the_future_reference(shared, states):
    start = round(stamp(states.newest) + 3.0, 3)
    handle = begin(shared, goal((0, INITIAL, REST), (1.0, AWAY, REST), start=start))
    middle = query(shared, start + 0.5)
    assert middle.success
    assert tuple(middle.name) == JOINTS
    np.testing.assert_allclose(middle.position, (INITIAL + AWAY) / 2, atol=1e-9)
    np.testing.assert_allclose(middle.velocity, 1.5 * (AWAY - INITIAL), atol=1e-6)
    np.testing.assert_allclose(query(shared, start + 9.0).position, AWAY, atol=1e-12)
    assert query(shared, 0.0).success
    past = query(shared, 1e-3)
    assert not past.success
    assert "no trajectory at" in past.message
    assert end(shared, handle).error_code == Result.SUCCESSFUL


# --- controller switches


def test_controller_switches_in_motion_are_bumpless(shared, states):
    commands = shared.record(JointState, "joint_commands")
    handle = begin(shared, goal((4.0, AWAY, REST), end=dict.fromkeys(JOINTS, 0.05)))
    shared.wait_longer(states, 1.5)
    for name in ("pid", "pid_gravity"):
        assert shared.set("joint_controller", controller=name)[0].successful
        shared.wait_longer(states, 0.7)
    assert end(shared, handle).error_code == Result.SUCCESSFUL
    efforts = np.array([message.effort for message in commands.messages()])
    assert np.abs(np.diff(efforts, axis=0)).max() < 1.0


def test_gains_are_those_of_the_active_controller(shared, states):
    before = shared.get("joint_controller", "gains.R1.p")
    assert shared.set("joint_controller", controller="pid")[0].successful
    assert shared.get("joint_controller", "gains.R1.p") == before
    assert shared.set("joint_controller", controller="gravity_compensation")[0].successful
    gains = {n for n in shared.describe("joint_controller") if n.startswith("gains.R1.")}
    assert gains == {"gains.R1.d"}
    assert shared.get("joint_controller", "gains.R1.d") == 0.0
    assert shared.set("joint_controller", gains__R1__d=5.0)[0].successful
    assert shared.set("joint_controller", controller="pid_gravity")[0].successful
    assert shared.get("joint_controller", "gains.R1.p") > 0
    for name in JOINTS:  # those of the file again
        restored = {f"gains__{name}__{gain}": x for gain, x in file_gains(name).items()}
        answers = shared.set("joint_controller", **restored)
        assert all(r.successful for r in answers), [r.reason for r in answers]


def file_gains(joint):
    given = yaml.safe_load(GAINS.read_text())["joint_controller"]["ros__parameters"]["gains"]
    return given[joint]


@pytest.mark.parametrize(("name", "word"), [("unheard_of", "pid_gravity"), ("position", "effort")])
def test_an_incompatible_controller_is_rejected(shared, states, name, word):
    result = shared.set("joint_controller", controller=name)[0]
    assert not result.successful
    assert word in result.reason
    assert shared.get("joint_controller", "controller") == "pid_gravity"


# --- in one process with the simulator, and without control_msgs


def test_the_composed_node_accepts_goals(ros):
    states = ros.states()
    ros.start("composed", GAINS, real_time_factor=1000.0)
    ros.wait_until(states, 0.1)
    result = send(ros, goal((1.0, AWAY, REST), end=dict.fromkeys(JOINTS, 0.01)))
    assert result.error_code == Result.SUCCESSFUL
    assert np.abs(np.array(states.newest.position) - AWAY).max() < 0.011
    assert ros.stop_all() == [0], ros.report("")


def test_without_control_msgs_other_interfaces_work_and_the_log_names_the_package(
    ros, monkeypatch, tmp_path
):
    for package in ("control_msgs", "controller_manager_msgs"):
        hidden = tmp_path / f"{package}.py"
        hidden.write_text("raise ModuleNotFoundError('hidden by a test')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    controller = ros.start("joint_controller", GAINS)
    ros.wait_until(states, 0.1)
    ros.publish(trajectory((1.0, AWAY, REST)), "joint_controller/joint_trajectory")
    ros.wait_for(
        lambda: np.abs(np.array(states.newest.position) - AWAY).max() < 0.01,
        "the target is not reached",
    )
    record = ros.record(JointTrajectory, "joint_controller/tracking")
    ros.wait_for(lambda: len(record), "no tracking")
    assert "control_msgs" in controller.output
    assert "follow_joint_trajectory" in controller.output
    values = ros.diagnosis("joint_controller", lambda v: "control_msgs" in v)
    assert values["control_msgs"] == "missing"
    assert "controller_manager" not in controller.output
    assert ros.stop_all() == [0, 0], ros.report("")
