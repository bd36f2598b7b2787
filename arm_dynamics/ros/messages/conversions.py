"""Conversion between values and ROS messages; joints are matched by name.

Poses, twists and wrenches are accepted only in the base frame.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Pose, PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import MultiDOFJointTrajectory

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import (
    NO_OPTIONS,
    Options,
    parse_trajectory,
)
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.errors import CommandRejected, DriverFault, InvalidValue, TrajectoryRejected
from arm_dynamics.core.rotations import quaternion_from_rotation, rotation_from_quaternion
from arm_dynamics.core.state import Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages.serialization import JointStateContent, split_time


class Frames(NamedTuple):
    """Names of the frames in messages."""

    base: str
    """Frame of all poses, twists and wrenches."""
    tool: str
    """Frame that the task-space controller moves."""
    prefix: str = ""
    """Prefix of every frame."""


def to_seconds(stamp: Time) -> float:
    """Return a message's time in seconds."""
    return float(stamp.sec + stamp.nanosec * 1e-9)


def to_time(seconds: float) -> Time:
    """Return seconds as a message's time, to the nearest nanosecond."""
    sec, nanosec = split_time(seconds)
    return Time(sec=sec, nanosec=nanosec)


def to_duration(seconds: float) -> Duration:
    """Return seconds as a message's duration, to the nearest nanosecond; may be negative."""
    sec, nanosec = split_time(seconds)
    return Duration(sec=sec, nanosec=nanosec)


def header(frame: str, time: float) -> Header:
    """Return a header with ``frame`` and ``time`` [s]."""
    return Header(stamp=to_time(time), frame_id=frame)


def to_double_array(values: Vector) -> array[float]:
    """Return a vector as an array, which rclpy accepts without checking every entry."""
    return array("d", values.tobytes())


def read_state(names: tuple[str, ...], message: JointStateContent) -> State:
    """Return the state of ``names`` in their order; raise DriverFault for missing joints.

    Velocity and effort may be empty: velocity is then 0, effort unknown (NaN). Other lengths than
    that of the names are rejected. Joints that are not in ``names`` are ignored.
    """
    try:
        pick = _order(names, message.names)
        q = _pick("position", message.position, message.names, pick)
        still, unknown = np.zeros(len(message.names)), np.full(len(message.names), np.nan)
        velocity = message.velocity if message.velocity.size else still
        effort = message.effort if message.effort.size else unknown
        v = _pick("velocity", velocity, message.names, pick)
        tau = _pick("effort", effort, message.names, pick)
    except InvalidValue as error:
        raise DriverFault(str(error)) from error
    return State(message.time, q, v, tau)


def read_command(names: tuple[str, ...], message: JointStateContent) -> Command:
    """Return an effort command from joint_commands, or a position command without efforts.

    Raise CommandRejected with the cause.
    """
    positions = message.position.size and not message.effort.size
    try:
        unknown = [name for name in message.names if name not in names]
        if unknown:
            raise InvalidValue(f"joint = '{unknown[0]}'; expected one of {', '.join(names)}")
        pick = _order(names, message.names)
        interface = "position" if positions else "effort"
        values = message.position if positions else message.effort
        value = _pick(interface, values, message.names, pick)
    except InvalidValue as error:
        raise CommandRejected(str(error)) from error
    return Command(interface, value, message.time)


def read_voltage(
    names: Sequence[str], order: Sequence[str], message: Float64MultiArray, now: float
) -> Command:
    """Return a voltage command for ``names`` from values in ``order``.

    If the layout has one label per joint, the labels must be the joints in that order.
    """
    labels = [dimension.label for dimension in message.layout.dim]
    if len(labels) == len(names) and all(labels) and labels != list(order):
        raise CommandRejected(f"labels = {labels}; expected {list(order)}")
    if len(message.data) != len(names):
        raise CommandRejected(
            f"values = {len(message.data)}; expected {len(names)} ({', '.join(order)})"
        )
    by_name = dict(zip(order, message.data, strict=True))
    return Command("voltage", as_readonly([by_name[name] for name in names]), now)


def read_trajectory(
    arm: ArmModel, message: JointTrajectoryMessage, now: float, options: Options = NO_OPTIONS
) -> JointTrajectory:
    """Return a validated trajectory; stamp 0 means now. Raise TrajectoryRejected."""
    points = message.points
    return parse_trajectory(
        arm,
        message.joint_names,
        [p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in points],
        [p.positions for p in points],
        [p.velocities for p in points],
        [p.accelerations for p in points],
        start=to_seconds(message.header.stamp) or now,
        efforts=[p.effort for p in points],
        options=options,
    )


def _order(names: tuple[str, ...], given: tuple[str, ...]) -> list[int] | None:
    """Return the index in ``given`` of each name; None for the same order."""
    if given == names:
        return None
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidValue(f"joints = {list(given)}; expected also '{missing[0]}'")
    if len(set(given)) != len(given):
        raise InvalidValue(f"joints = {list(given)}; expected each name once")
    return [given.index(name) for name in names]


def _pick(
    field: str,
    values: Vector,
    given: tuple[str, ...],
    pick: list[int] | None,
) -> Vector:
    if values.size != len(given):
        raise InvalidValue(f"{field} entries = {values.size}; expected {len(given)}, one per name")
    vector = values if pick is None else values[pick]
    vector.flags.writeable = False
    return vector


Placed = tuple[list[float], Matrix]
"""Position (3,) [m] and rotation (3, 3)."""


def read_pose(frames: Frames, message: PoseStamped) -> Placed:
    """Return the pose in the base frame; raise InvalidValue for another frame or quaternion."""
    _check_frame(frames, message.header)
    return placed("pose", message.pose.position, message.pose.orientation)


def read_twist(frames: Frames, message: TwistStamped) -> list[float]:
    """Return the twist (6,) [m/s, rad/s] in the base frame; raise InvalidValue for another."""
    _check_frame(frames, message.header)
    return [*_xyz(message.twist.linear), *_xyz(message.twist.angular)]


def read_wrench(frames: Frames, message: WrenchStamped) -> list[float]:
    """Return the wrench (6,) [N, N·m] in the base frame; raise InvalidValue for another."""
    _check_frame(frames, message.header)
    return [*_xyz(message.wrench.force), *_xyz(message.wrench.torque)]


def read_path(frames: Frames, message: Path) -> list[Placed]:
    """Return the poses of a path; an empty frame of one of them is that of the path."""
    _check_frame(frames, message.header)
    poses = []
    for i, stamped in enumerate(message.poses):
        if stamped.header.frame_id:
            _check_frame(frames, stamped.header, f"pose {i}: ")
        pose = stamped.pose
        poses.append(placed(f"pose {i}", pose.position, pose.orientation))
    return poses


def read_timed_poses(
    frames: Frames, message: MultiDOFJointTrajectory
) -> tuple[list[float], list[Placed], list[list[float]] | None, float | None]:
    """Return times [s] from the start, poses, twists (6,) if given, and the start [s]; None: now.

    Raise TrajectoryRejected for another joint than the tool frame and for points that are not a
    single pose, InvalidValue for a wrong frame or quaternion.
    """
    _check_frame(frames, message.header)
    names = list(message.joint_names)
    if names != [frames.tool]:
        raise TrajectoryRejected(
            f"joint_names = {names}; expected only the tool frame '{frames.tool}'"
        )
    points = message.points
    for i, point in enumerate(points):
        if len(point.transforms) != 1:
            raise TrajectoryRejected(f"point {i}: transforms = {len(point.transforms)}; expected 1")
    poses = [
        placed(f"point {i}", p.transforms[0].translation, p.transforms[0].rotation)
        for i, p in enumerate(points)
    ]
    times = [p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in points]
    counts = [len(point.velocities) for point in points]
    twists = None
    if any(counts):
        odd = next((i for i, count in enumerate(counts) if count != 1), None)
        if odd is not None:
            raise TrajectoryRejected(
                f"point {odd}: velocities = {counts[odd]}; expected 1 at every point or none"
            )
        twists = [[*_xyz(p.velocities[0].linear), *_xyz(p.velocities[0].angular)] for p in points]
    return times, poses, twists, to_seconds(message.header.stamp) or None


def pose_message(position: Vector, rotation: Matrix) -> Pose:
    """Return a pose as a message."""
    message = Pose()
    p, o = message.position, message.orientation
    p.x, p.y, p.z = position.tolist()
    o.x, o.y, o.z, o.w = quaternion_from_rotation(rotation).tolist()
    return message


def placed(name: str, position: Any, orientation: Any) -> Placed:
    """Return position (3,) [m] and rotation (3, 3) of the parts of a pose called ``name``."""
    xyzw = [orientation.x, orientation.y, orientation.z, orientation.w]
    return _xyz(position), rotation_from_quaternion(f"{name}: quaternion", xyzw)


def _xyz(message: Any) -> list[float]:
    return [message.x, message.y, message.z]


def _check_frame(frames: Frames, header: Header, where: str = "") -> None:
    if header.frame_id != frames.base:
        raise InvalidValue(f"{where}frame_id = '{header.frame_id}'; expected '{frames.base}'")
