"""Clients of the controllers: their reference, trajectories and tool targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import dist
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.joint_motions import DISCOVERY_TIMEOUT, Feedback
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.recorder import References
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import (
    Frames,
    header,
    pose_message,
    to_double_array,
    to_duration,
    to_seconds,
)
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.topics.diagnostics import Throttle

TRAJECTORY = "joint_controller/joint_trajectory"
TRACKING = "joint_controller/tracking"


class Tracked(NamedTuple):
    """Reference and its velocity, and measured configuration, (nv,) each.

    ``stamp`` is that of their state, ``received`` the time of reception [s].
    """

    reference: Vector
    velocity: Vector
    feedback: Vector
    received: float
    stamp: float = 0.0


TRACKING_AGE = 1.0
"""Time [s] after which the tracking error of an ended controller is no longer shown."""


class TrackingSubscription:
    """Newest message on the topic tracking of ``joint_controller``.

    ``on_message`` is called with each one.
    """

    def __init__(
        self, node: Node, arm: ArmModel, on_message: Callable[[Tracked], object] | None = None
    ) -> None:
        self.newest: Tracked | None = None

        def take(message: JointTrajectory) -> None:
            if len(message.points) < 2:
                return
            reference, feedback = message.points[:2]
            rows = [reference.positions, reference.velocities, feedback.positions]
            if all(len(row) == arm.nv and np.isfinite(row).all() for row in rows):
                q, v, measured = map(as_readonly, rows)
                stamp = to_seconds(message.header.stamp)
                self.newest = tracked = Tracked(q, v, measured, time.monotonic(), stamp)
                if on_message is not None:
                    on_message(tracked)

        reject = partial(Throttle(node.get_logger()).warn, TRACKING)
        listen(node, JointTrajectory, TRACKING, take, qos.VIEW, reject)

    @property
    def error(self) -> Vector | None:
        """Reference minus measured position (nv,) of the same time [rad or m].

        None without a message in the last TRACKING_AGE.
        """
        newest = self.newest
        if newest is None or time.monotonic() - newest.received > TRACKING_AGE:
            return None
        return newest.reference - newest.feedback


def record_references(
    node: Node, arm: ArmModel, present: Callable[[], References | None]
) -> TrackingSubscription:
    """Add the references of ``joint_controller`` to the ``present`` recording, if any."""
    zero = as_readonly(np.zeros(arm.nv))

    def add(tracked: Tracked) -> None:
        references = present()
        if references is not None:
            references.add(tracked.stamp, Reference(tracked.reference, tracked.velocity, zero))

    return TrackingSubscription(node, arm, add)


def trajectory_message(names: Sequence[str], points: Sequence[Waypoint]) -> JointTrajectory:
    """Return waypoints with velocities, and accelerations if any, that start on reception."""
    trajectory = JointTrajectory(joint_names=list(names))
    for waypoint in points:
        assert waypoint.v is not None
        point = JointTrajectoryPoint(
            positions=to_double_array(waypoint.q), velocities=to_double_array(waypoint.v)
        )
        if waypoint.a is not None:
            point.accelerations = to_double_array(waypoint.a)
        point.time_from_start = to_duration(waypoint.time)
        trajectory.points.append(point)
    return trajectory


class TrajectoryPublisher:
    """Sends motions through waypoints to ``joint_controller``."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._names = arm.joint_names
        self._publisher = node.create_publisher(JointTrajectory, TRAJECTORY, 1)

    @property
    def ready(self) -> bool:
        """Whether the controller is discovered."""
        return bool(self._publisher.get_subscription_count())

    def send(self, points: Sequence[Waypoint]) -> None:
        """Publish waypoints with velocities; the motion starts on reception."""
        self._publisher.publish(trajectory_message(self._names, points))


TASK_SPACE = "task_space_controller"
PUBLISHER_LIFETIME = 1.0
"""Time [s] for which a publisher exists after its message, so that the message is delivered."""
TOOL_TOLERANCE = 1e-3
"""Distance [m] of the reference below which a tool target is reached."""
STALL_TIME = 1.0
"""Time [s] without motion of the reference after which a target is no longer tracked."""


class ToolTargets:
    """Targets of the tool; ``update`` sends the newest and reports its result.

    The controller ignores a topic with several publishers. Therefore a publisher exists only from a
    target until the delivery of its message, and a target is rejected while another node publishes.
    """

    def __init__(self, node: Node, frames: Frames, feedback: Feedback) -> None:
        self._node, self._frames, self._feedback = node, frames, feedback
        self._message: Any = None
        self._topic = ""
        self._publisher: Any = None
        self._since = self._moved = 0.0
        self._target: Vector | None = None
        self._last = np.zeros(3)

    @property
    def under_way(self) -> bool:
        """Whether a target is neither reached nor rejected."""
        return self._message is not None or self._target is not None

    def go(self, position: Vector, rotation: Matrix) -> None:
        """Move the tool to ``position`` (3,) [m] and ``rotation`` (3, 3)."""
        head = header(self._frames.base, 0.0)
        pose = PoseStamped(header=head, pose=pose_message(position, rotation))
        self._begin(pose, "target_pose")
        self._target, self._last = position, np.full(3, np.inf)

    def stop(self) -> None:
        """Stop the tool."""
        self._begin(TwistStamped(header=header(self._frames.base, 0.0)), "target_twist")
        self._target = None

    def reset(self) -> None:
        """Discard a target that is not sent yet."""
        self._message = self._target = None

    def update(self, reference: Vector | None) -> None:
        """Send a due target; report the result of the current one from the reference's position."""
        now = time.monotonic()
        if self._message is not None:
            self._send(now)
        elif self._publisher is not None and now - self._since > PUBLISHER_LIFETIME:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        if self._target is None or self._message is not None or reference is None:
            return
        if dist(reference, self._target) < TOOL_TOLERANCE:
            self._target = None
            self._feedback.done("tool target reached")
            return
        if dist(reference, self._last) > TOOL_TOLERANCE / 10:
            self._moved, self._last = now, reference
        if now - self._moved > STALL_TIME:
            self._target = None
            self._feedback.note(
                "the tool stopped before its target: see the controller's diagnostics"
            )

    def _begin(self, message: Any, topic: str) -> None:
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
        self._message, self._topic = message, f"{TASK_SPACE}/{topic}"
        self._publisher = self._node.create_publisher(type(message), self._topic, qos.STREAM)
        self._since = self._moved = time.monotonic()

    def _send(self, now: float) -> None:
        """Publish once the controller's subscription is known."""
        resolved = self._publisher.topic_name
        subscriptions = self._node.get_subscriptions_info_by_topic(resolved)
        is_known = any(end.node_name == TASK_SPACE for end in subscriptions)
        matched = self._publisher.get_subscription_count() >= len(subscriptions) > 0
        if is_known and matched and self._node.count_publishers(resolved) == 1:
            self._publisher.publish(self._message)
            self._message, self._since = None, now
        elif now - self._since > DISCOVERY_TIMEOUT:
            self._message = self._target = None
            several = self._node.count_publishers(resolved) > 1
            self._feedback.rejected(
                f"publishers of {self._topic} > 1; expected only this one"
                if several
                else "task-space controllers = 0; expected one that moves the arm"
            )
