"""Task-space controller over topics: targets, paths, limits and rejected inputs."""

import time
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import PoseStamped, Transform, Twist, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import pose, twist
from arm_dynamics.model.load import load_arm

from .link import INTRODUCTION, LOCKSTEP, Motion, stamp, to_time
from .marker_client import DOWN, MOVED, UP, Client

NODE = "task_space_controller"
NAN = float("nan")


@cache
def arm():
    return load_arm("five_dof")


def home():
    return pose(arm(), arm().configuration("initial"))


def placed(offset=(0, 0, 0), turn=(0, 0, 0), frame="base_link"):
    """Return a PoseStamped at an ``offset`` [m] and ``turn`` [rad] from the initial pose."""
    p, R = home()
    return stamped(p + np.array(offset), pin.exp3(np.array(turn, dtype=float)) @ R, frame)


def stamped(p, R, frame="base_link"):
    message = PoseStamped()
    message.header.frame_id = frame
    at, q = message.pose.position, message.pose.orientation
    at.x, at.y, at.z = (float(x) for x in p)
    q.x, q.y, q.z, q.w = quaternion_from_rotation(R).tolist()
    return message


def moving(linear=(0, 0, 0), angular=(0, 0, 0), frame="base_link"):
    message = TwistStamped()
    message.header.frame_id = frame
    v, w = message.twist.linear, message.twist.angular
    v.x, v.y, v.z = (float(x) for x in linear)
    w.x, w.y, w.z = (float(x) for x in angular)
    return message


def pushing(force, frame="base_link"):
    message = WrenchStamped()
    message.header.frame_id = frame
    f = message.wrench.force
    f.x, f.y, f.z = (float(x) for x in force)
    return message


def path(*poses, frame="base_link"):
    message = Path(poses=list(poses))
    message.header.frame_id = frame
    return message


def timetable(*points, start=0.0, names=("tool",), frame="base_link"):
    """Return timed poses: (time, PoseStamped) or (time, PoseStamped, velocity (3,))."""
    message = MultiDOFJointTrajectory(joint_names=list(names))
    message.header.frame_id, message.header.stamp = frame, to_time(start)
    for after, where, *velocity in points:
        point = MultiDOFJointTrajectoryPoint()
        t, transform = to_time(after), Transform()
        point.time_from_start.sec, point.time_from_start.nanosec = t.sec, t.nanosec
        at = where.pose.position
        transform.translation.x, transform.translation.y, transform.translation.z = at.x, at.y, at.z
        transform.rotation = where.pose.orientation
        point.transforms = [transform]
        if velocity:
            twist_message = Twist()
            v = twist_message.linear
            v.x, v.y, v.z = (float(x) for x in velocity[0])
            point.velocities = [twist_message]
        message.points.append(point)
    return message


def tool_of(message):
    return pose(arm(), np.array(message.position))


def distance(message, goal):
    """Return the distance [m] of the tool from a PoseStamped; rotations are not controlled."""
    at = goal.pose.position
    return np.linalg.norm(tool_of(message)[0] - [at.x, at.y, at.z])


@pytest.fixture(scope="module")
def loop(shared):
    """Start an arm with a task-space controller in lockstep; return the recorded states."""
    states = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start(NODE)
    shared.wait_until(states, 0.1)
    return states


@pytest.fixture
def rested(shared, loop):
    """Move the arm to its initial pose."""
    move_to(shared, loop, placed())
    return loop


def move_to(shared, loop, goal, within=1e-3):
    """Move the tool to a pose and wait until it is at rest there."""
    shared.publish(goal, f"{NODE}/target_pose")

    def there():
        newest = loop.newest
        return distance(newest, goal) < within and np.abs(newest.velocity).max() < 1e-3

    shared.wait_for(there, "the pose is not reached")


def moves(messages):
    """Return whether the arm moves in any of the messages."""
    return any(np.abs(message.velocity).max() > 1e-2 for message in messages)


def departure_time(references):
    """Return the time [s] at which the reference has left its start."""
    p = np.array([[getattr(m.pose.position, axis) for axis in "xyz"] for m in references])
    displacement = np.linalg.norm(p - p[0], axis=1) > 1e-3
    return stamp(references[int(np.argmax(displacement))])


def count(shared, kind):
    values = shared.diagnosis(NODE, lambda _: True)
    return int(values.get(kind, 0))


def counted(shared, kind, before):
    """Return the latest event of a kind after its count exceeds ``before``."""
    values = shared.diagnosis(NODE, lambda v: int(v.get(kind, 0)) > before, f"no {kind}")
    return values[f"last {kind}"]


def test_targets_are_rejected_in_an_emergency_stop_and_do_not_continue_after_it(shared, loop):
    reference = shared.record(PoseStamped, f"{NODE}/reference_pose")
    shared.publish(timetable((100.0, placed((0.1, 0, 0)))), f"{NODE}/trajectory")
    shared.wait_for(lambda: reference.raw and departure_time(reference.messages()), "no motion")
    assert shared.trigger("simulator/emergency_stop").success
    shared.diagnosis("simulator", lambda v: v["message"].startswith("emergency stop by"))
    for topic, message in {
        "target_pose": placed((0.02, 0, 0)),
        "target_twist": moving((0.01, 0, 0)),
        "target_wrench": pushing((1, 0, 0)),
        "path": path(placed((0.02, 0, 0))),
        "trajectory": timetable((1.0, placed((0.02, 0, 0)))),
    }.items():
        shared.publish(message, f"{NODE}/{topic}")
        text = f"~/{topic}: emergency stop by service"
        shared.diagnosis(NODE, lambda v, t=text: v.get("last target_rejected", "").startswith(t))
    held = np.array(loop.newest.position)
    assert shared.trigger("simulator/reset_emergency_stop").success
    shared.wait_longer(loop, 20.0)
    assert np.abs(loop.newest.position - held).max() < 2e-3
    assert shared.trigger("simulator/reset").success


# --- poses


def test_a_pose_is_reached_straight_and_at_bounded_speed(shared, rested):
    goal = placed((0.1, 0.15, -0.1), (0.2, -0.3, 0.4))
    first = len(rested)
    move_to(shared, rested, goal, 1e-4)
    messages = rested.messages(first)
    motion = Motion(messages[::10])
    p, _ = home()
    offset = np.array([0.1, 0.15, -0.1])
    tools = np.array([pose(arm(), q)[0] for q in motion.q]) - p
    across = tools - np.outer(tools @ offset, offset) / (offset @ offset)
    assert np.linalg.norm(across, axis=1).max() < 2e-3
    speeds = [np.linalg.norm(twist(arm(), q, v)[:3]) for q, v in zip(motion.q, motion.v)]  # noqa: B905
    assert 0.2 < max(speeds) < 0.26


def test_current_and_reference_pose_have_the_stamps_of_states(shared, rested):
    records = {
        name: shared.record(kind, f"{NODE}/{name}")
        for name, kind in (
            ("current_pose", PoseStamped), ("current_twist", TwistStamped),
            ("reference_pose", PoseStamped), ("reference_markers", MarkerArray),
            ("reference_wrench", WrenchStamped),
        )
    }  # fmt: skip
    first = len(rested)
    shared.wait_for(lambda: all(len(r) > 5 for r in records.values()), "nothing published")
    states = {
        m.header.stamp.sec * 10**9 + m.header.stamp.nanosec: m for m in rested.messages(first)
    }
    compared = 0
    for message in records["current_pose"].messages():
        found = states.get(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec)
        assert message.header.frame_id == "base_link"
        if found is not None:
            assert distance(found, message) < 1e-9
            compared += 1
    assert compared > 2
    assert distance(rested.newest, records["reference_pose"].newest) < 1e-3
    assert records["reference_wrench"].newest.header.frame_id == "tool"
    axes, missed = records["reference_markers"].newest.markers
    assert axes.type == Marker.LINE_LIST
    assert len(axes.points) == len(axes.colors) == 6
    assert missed.action == Marker.DELETE


def test_rviz_markers_move_the_tool(shared, rested):
    """The publisher of a drag ends when its message has arrived: target_pose allows only one."""
    topic = f"{NODE}/target_pose"
    shared.publish(placed(), topic)
    shared.leave(topic)
    controls = shared.start("rviz_controls")
    client = Client(shared)
    client.wait(lambda found: set(found) == {"tool"}, "no marker of the tool")
    goal = placed((-0.05, 0.1, 0.03))
    for kind in (DOWN, MOVED, UP):
        client.send("tool", kind, goal.pose)
    shared.wait_for(lambda: distance(rested.newest, goal) < 5e-3, "the tool stays")
    shared.wait_for(lambda: not shared._listener.count_publishers(topic), "the publisher stays")
    assert controls.stop() == 0
    shared.publish(placed(), topic)
    shared.wait_for(lambda: distance(rested.newest, placed()) < 5e-3, "the tool stays there")


def test_an_unreachable_pose_is_approached_and_reported(shared, rested):
    """The tool approaches the end of the straight path within the workspace and rests there."""
    before = count(shared, "out_of_reach")
    first = len(rested)
    goal = placed((1.5, 0, 0))
    shared.publish(goal, f"{NODE}/target_pose")
    shared.wait_longer(rested, 5.0)
    assert "nearest" in counted(shared, "out_of_reach", before)
    values = shared.diagnosis(NODE, lambda v: float(v["reachability error [m]"]) > 0.2)
    assert "out of reach" in values["message"]
    assert values["level"] == 1
    assert float(values["min singular value [m]"]) < 0.2
    motion = Motion(rested.messages(first))
    assert np.isfinite(motion.q).all()
    assert (np.abs(motion.v) < 1.05 * arm().velocity_limit).all()
    assert np.abs(motion.v[-100:]).max() < 0.05
    assert (np.abs(motion.tau) <= arm().effort_limit + 1e-9).all()
    start, references = len(rested), shared.record(PoseStamped, f"{NODE}/reference_pose")
    shared.wait_for(lambda: len(references), "no reference")
    move_to(shared, rested, placed())
    back = Motion(rested.messages(start))
    turned = back.t[np.abs(back.v).max(axis=1) > 0.05]
    assert turned[0] - departure_time(references.messages()) < 1.0  # reference near the workspace
    shared.diagnosis(NODE, lambda v: v["message"] == "running", "not within reach again")


# --- twists


def test_a_twist_moves_the_tool_and_times_out(shared, rested):
    first = len(rested)
    shared.publish(moving((0, 0.1, 0)), f"{NODE}/target_twist")
    shared.wait_longer(rested, 2.0)
    messages = rested.messages(first)
    motion = Motion(messages)
    speeds = np.array([twist(arm(), q, v)[1] for q, v in zip(motion.q, motion.v, strict=True)])
    assert 0.095 < speeds.max() < 0.11
    moved_at = motion.t[speeds > 0.05]
    assert 0.1 < moved_at[-1] - moved_at[0] < 0.6
    assert np.abs(speeds[-50:]).max() < 1e-3
    p, _ = home()
    displacement = tool_of(messages[-1])[0] - p
    assert displacement[1] == pytest.approx(0.1 * (0.25 + 0.1 / 2 - 0.15 / 2), abs=1e-3)
    assert np.abs(displacement[[0, 2]]).max() < 1e-3


def test_a_stream_of_twists_is_one_motion(shared, rested):
    """The time-out exceeds the pauses of a busy machine in simulated time."""
    topic, first = f"{NODE}/target_twist", len(rested)
    assert shared.set(NODE, command_timeout=2.0)[0].successful
    shared.meet(TwistStamped, topic)
    begin = stamp(rested.newest)
    while stamp(rested.newest) < begin + 1.5:
        shared.publish(moving((0, 0.1, -0.05)), topic)
        shared.wait_longer(rested, 0.02)
    shared.publish(moving(), topic)
    assert shared.set(NODE, command_timeout=0.25)[0].successful
    motion = Motion(rested.messages(first))
    steady = slice(motion.at(begin + 0.7), motion.at(begin + 1.4))
    rates = np.array(
        [twist(arm(), q, v)[:3] for q, v in zip(motion.q[steady], motion.v[steady], strict=True)]
    )
    assert np.allclose(rates, [0, 0.1, -0.05], atol=3e-3)
    shared.wait_longer(rested, 1.0)
    assert np.abs(np.array(rested.newest.velocity)).max() < 1e-2


def test_targets_of_several_publishers_are_ignored(shared, rested):
    before = count(shared, "target_ignored")
    topic = f"{NODE}/target_pose"
    shared.meet(PoseStamped, topic)
    other = shared._caller.create_publisher(PoseStamped, topic, 10)
    try:
        shared.wait_for(lambda: other.get_subscription_count() > 0, "no subscriber")
        shared.wait_longer(rested, 0.5)
        first = len(rested)
        shared.wait_for(lambda: shared._listener.count_publishers(f"/{topic}") > 1, "one publisher")
        shared.publish(placed((0.1, 0, 0)), topic)
        event = counted(shared, "target_ignored", before)
        assert "test_caller" in event
        assert "test_listener" in event
        motion = Motion(rested.messages(first))
        assert np.abs(motion.q - motion.q[0]).max() < 1e-3
    finally:
        shared._caller.destroy_publisher(other)
    shared.wait_for(lambda: shared._listener.count_publishers(f"/{topic}") == 1, "still two")
    goal = placed((0.05, 0, 0))
    time.sleep(INTRODUCTION)  # until the node detects the end of the other publisher
    move_to(shared, rested, goal)


# --- paths


def test_a_path_is_followed(shared, rested):
    corners = [(0, 0.1, 0), (0, 0.1, -0.1), (0, 0, -0.1), (0, 0, 0)]
    first = len(rested)
    shared.publish(path(*[placed(c) for c in corners]), f"{NODE}/path")
    side = 0.1 / 0.25 + 0.25
    shared.wait_for(lambda: moves(rested.messages(first, 10)), "no motion")
    shared.wait_longer(rested, 4 * side + 3.0)
    motion = Motion(rested.messages(first)[::5])
    p, _ = home()
    tools = np.array([pose(arm(), q)[0] for q in motion.q]) - p
    for corner in corners:
        assert np.linalg.norm(tools - corner, axis=1).min() < 1e-3
    y, z = tools[:, 1], -tools[:, 2]
    inside = [np.clip(x, 0, 0.1) - x for x in (y, z)]
    sides = [np.hypot(inside[0], z - level) for level in (0, 0.1)]
    sides += [np.hypot(y - level, inside[1]) for level in (0, 0.1)]
    off = np.minimum.reduce(sides)
    assert off.max() < 2e-3
    assert np.abs(tools[:, 0]).max() < 2e-3
    assert np.linalg.norm(tools[-1]) < 1e-3
    fast = motion.t[np.abs(motion.v).max(axis=1) > 0.01]
    assert fast[-1] - fast[0] == pytest.approx(4 * side, abs=0.3)


def test_timed_poses_are_reached_on_time(shared, rested):
    start = round(stamp(rested.newest) + 20.0, 3)  # the simulation is faster than real time
    points = [(1.0, placed((0, 0.1, 0)), (0, 0.1, 0)), (2.0, placed((0, 0.15, -0.05)), (0, 0, 0))]
    first = len(rested)
    shared.publish(timetable(*points, start=start), f"{NODE}/trajectory")
    shared.wait_until(rested, start + 3.0)
    messages = rested.messages(first)
    motion = Motion(messages)
    for t, goal, velocity in points:
        k = motion.at(start + t)
        assert distance(messages[k], goal) < 1e-3
        assert twist(arm(), motion.q[k], motion.v[k])[:3] == pytest.approx(velocity, abs=5e-3)


# --- gains, payload and wrench


def pushed(states, first, height):
    """Return the downward displacement [m] since the state ``first``, after 1 s at the start."""
    displacement = np.array([tool_of(m)[0][2] for m in states.messages(first, 25)]) - height
    down = displacement < -3e-3
    return float(np.median(displacement[down])) if down.any() and not down[-20:].any() else None


def test_stiffness_is_a_live_parameter_and_a_wrench_deflects_the_tool(ros):
    """With stiffness K a wrench F moves the tool by F / K as long as it is commanded."""
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.start(NODE, controller="impedance", command_timeout=2.0)
    ros.wait_until(states, 0.5)
    height = tool_of(states.newest)[0][2]
    displacement, damping = {}, []
    wrenches = ros.record(WrenchStamped, f"{NODE}/reference_wrench")
    for stiffness in (1000.0, 2000.0):
        for name in (f"gains.tool.{axis}.stiffness" for axis in "xyz"):
            assert ros.set(NODE, **{name: stiffness})[0].successful
            assert ros.get(NODE, name) == stiffness
        damping.append(ros.get(NODE, "gains.tool.z.damping"))
        first = len(states)
        ros.publish(pushing((0, 0, -20.0)), f"{NODE}/target_wrench")
        displacement[stiffness] = ros.wait_for(
            lambda first=first: pushed(states, first, height), "the tool is not pushed, or stays so"
        )
    assert displacement == pytest.approx({K: -20.0 / K for K in displacement}, rel=0.1)
    forces = [(m.wrench.force.x, m.wrench.force.y, m.wrench.force.z) for m in wrenches.messages()]
    largest = max(forces, key=np.linalg.norm)
    assert np.linalg.norm(largest) == pytest.approx(20.0, rel=0.05)
    assert (home()[1] @ largest)[2] < -19.0  # in tool axes; the force points down
    assert damping[1] == pytest.approx(2**0.5 * damping[0]), "damping follows the stiffness"
    result = ros.set(NODE, **{"gains.tool.x.stiffness": -1.0})[0]
    assert not result.successful
    assert ros.set(NODE, payload_mass=1.0)[0].successful
    ros.wait_longer(states, 0.5)
    assert ros.stop_all() == [0, 0], ros.report("")


def test_speed_is_a_live_parameter(shared, rested):
    assert shared.set(NODE, max_linear_velocity=0.05)[0].successful
    try:
        first = len(rested)
        move_to(shared, rested, placed((0, 0.05, 0)))
        motion = Motion(rested.messages(first)[::10])
        speeds = [
            np.linalg.norm(twist(arm(), q, v)[:3]) for q, v in zip(motion.q, motion.v, strict=True)
        ]
        assert 0.04 < max(speeds) < 0.055
    finally:
        shared.set(NODE, max_linear_velocity=0.25)
    assert not shared.set(NODE, max_linear_velocity=0.0)[0].successful


# --- rejected inputs


def with_long_quaternion():
    message = placed()
    message.pose.orientation.w = 2.0
    return message


FAR = path(placed((0.1, 0, 0)), placed((1.0, 0, 0)))
REJECTED = {
    "frame of a pose": ("target_pose", placed(frame="world"), ["world", "base_link"]),
    "no frame": ("target_twist", moving((0.1, 0, 0), frame=""), ["''", "base_link"]),
    "frame in a path": ("path", path(placed(), placed(frame="map")), ["pose 1", "map"]),
    "quaternion": ("target_pose", with_long_quaternion(), ["quaternion", "length", "unit"]),
    "NaN": ("target_pose", placed((NAN, 0, 0)), ["position", "nan"]),
    "axis": ("target_twist", moving((0, 0, 0), (0.1, 0, 0)), ["rx", "x, y, z"]),
    "NaN twist": ("target_twist", moving((0, NAN, 0)), ["twist", "nan"]),
    "infinite wrench": ("target_wrench", pushing((0, np.inf, 0)), ["wrench", "inf"]),
    "too strong": ("target_wrench", pushing((0, 0, 1e308)), ["wrench", "joint 'R", "limit"]),
    "endless": ("trajectory", timetable((2**31 - 1, placed())), ["duration = ", "at most 1000 s"]),
    "no poses": ("path", path(), ["0 poses", "expected 1 to"]),
    "far away": ("path", FAR, ["out of reach from", "position error", "m at"]),
    "another joint": ("trajectory", timetable((1, placed()), names=["R1"]), ["R1", "tool"]),
    "times": ("trajectory", timetable((1, placed()), (1, placed())), ["point 1", "increasing"]),
    "too fast": ("trajectory", timetable((0.1, placed((0, 0.3, 0)))), ["velocity", "within"]),
    "past": ("trajectory", timetable((0.01, placed()), start=0.001), ["last waypoint"]),
}


def test_invalid_targets_are_rejected_with_their_cause_and_do_not_move_the_arm(shared, rested):
    first = len(rested)
    before = count(shared, "target_rejected")
    for kind, (topic, message, words) in REJECTED.items():
        shared.publish(message, f"{NODE}/{topic}")
        event = counted(shared, "target_rejected", before)
        before += 1
        for word in (f"~/{topic}", *words):
            assert word in event, f"{kind}: {event}"
    motion = Motion(rested.messages(first)[::10])
    assert np.abs(motion.q - motion.q[0]).max() < 1e-3


def test_a_target_before_the_first_state_is_rejected(ros):
    ros.start(NODE)
    ros.publish(placed(), f"{NODE}/target_pose")
    values = ros.diagnosis(NODE, lambda v: "target_rejected" in v)
    assert "received states = 0" in values["last target_rejected"]
    assert values["message"] == "waiting for joint_states"
    assert ros.stop_all() == [0], ros.report("")


def test_a_joint_space_controller_ends_the_node_with_one_line(ros):
    process = ros.start(NODE, controller="pid_gravity")
    assert process.wait() == 2
    assert len(process.output.strip().splitlines()) == 1, process.output
    for word in ("pid_gravity", "task_space", "resolved_rate", "impedance", "task_space_mpc"):
        assert word in process.output
