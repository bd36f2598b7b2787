"""Messages about the tool and the package's values; a frame other than the base's is refused."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Pose, PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from std_msgs.msg import Header
from trajectory_msgs.msg import MultiDOFJointTrajectory

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.rotations import quaternion_from_rotation, rotation_from_quaternion
from arm_dynamics.ros.conversions import to_seconds
from arm_dynamics.ros.frames import Frames

Placed = tuple[list[float], Vector]
"""Position (3,) [m] and rotation (3, 3)."""


def read_pose(frames: Frames, message: PoseStamped) -> Placed:
    """The pose in the base's frame; raises InvalidValue for another frame or a bad quaternion."""
    _check_frame(frames, message.header)
    return _placed("pose", message.pose.position, message.pose.orientation)


def read_twist(frames: Frames, message: TwistStamped) -> list[float]:
    """The twist (6,) [m/s, rad/s] in the base's axes; raises InvalidValue for another frame."""
    _check_frame(frames, message.header)
    return [*_xyz(message.twist.linear), *_xyz(message.twist.angular)]


def read_wrench(frames: Frames, message: WrenchStamped) -> list[float]:
    """The wrench (6,) [N, N·m] in the base's axes; raises InvalidValue for another frame."""
    _check_frame(frames, message.header)
    return [*_xyz(message.wrench.force), *_xyz(message.wrench.torque)]


def read_path(frames: Frames, message: Path) -> list[Placed]:
    """Poses of a path; an empty frame of one of them is that of the path."""
    _check_frame(frames, message.header)
    found = []
    for i, stamped in enumerate(message.poses):
        if stamped.header.frame_id:
            _check_frame(frames, stamped.header, f"pose {i}: ")
        pose = stamped.pose
        found.append(_placed(f"pose {i}", pose.position, pose.orientation))
    return found


def read_timed_poses(
    frames: Frames, message: MultiDOFJointTrajectory
) -> tuple[list[float], list[Placed], list[list[float]] | None, float | None]:
    """Times [s] from the start, poses, twists (6,) where given, and the start [s]; None: now.

    Raises TrajectoryRefused for another joint than the tool's and for points that are no single
    pose, InvalidValue for a wrong frame or quaternion.
    """
    _check_frame(frames, message.header)
    names = list(message.joint_names)
    if names != [frames.tool]:
        raise TrajectoryRejected(f"joint_names {names}: the tool's frame alone is expected"
                                f" (['{frames.tool}'])")  # fmt: skip
    points = message.points
    for i, point in enumerate(points):
        if len(point.transforms) != 1:
            raise TrajectoryRejected(f"point {i}: {len(point.transforms)} transforms, 1 expected")
    poses = [
        _placed(f"point {i}", p.transforms[0].translation, p.transforms[0].rotation)
        for i, p in enumerate(points)
    ]
    times = [p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in points]
    return times, poses, _twists(points), to_seconds(message.header.stamp) or None


def pose_message(position: Vector, rotation: Vector) -> Pose:
    """A pose as a message."""
    message = Pose()
    at, turned = message.position, message.orientation
    at.x, at.y, at.z = position.tolist()
    turned.x, turned.y, turned.z, turned.w = quaternion_from_rotation(rotation).tolist()
    return message


def _twists(points: list[Any]) -> list[list[float]] | None:
    """Twists of the points; None where none has any. Raises TrajectoryRefused where some lack."""
    given = [len(point.velocities) for point in points]
    if not any(given):
        return None
    for i, count in enumerate(given):
        if count != 1:
            raise TrajectoryRejected(f"point {i}: {count} velocities; 1 for every point or none")
    return [[*_xyz(p.velocities[0].linear), *_xyz(p.velocities[0].angular)] for p in points]


def _placed(name: str, at: Any, turned: Any) -> Placed:
    xyzw = [turned.x, turned.y, turned.z, turned.w]
    return _xyz(at), rotation_from_quaternion(f"{name}: quaternion", xyzw)


def _xyz(message: Any) -> list[float]:
    return [message.x, message.y, message.z]


def _check_frame(frames: Frames, header: Header, where: str = "") -> None:
    if header.frame_id != frames.base:
        raise InvalidValue(f"{where}frame_id '{header.frame_id}': '{frames.base}' is expected")
