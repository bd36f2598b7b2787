"""Clients of the controllers: their reference, trajectories, joint targets and tool targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import dist
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.trajectories.demo_trajectory import move_time
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
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
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary, Throttle

TRAJECTORY = "joint_controller/joint_trajectory"
TRACKING = "joint_controller/tracking"
INTERRUPTED = (
    "control_restarted",
    "states_missing",
    "trajectory_rejected",
    "path_tolerance_violated",
    "goal_tolerance_violated",
)
"""Events of the controller that end the current trajectory early."""


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


def record_references(node: Node, arm: ArmModel, references: References) -> TrackingSubscription:
    """Add the references of ``joint_controller`` to a recording."""
    zero = as_readonly(np.zeros(arm.nv))
    return TrackingSubscription(
        node,
        arm,
        lambda tracked: references.add(
            tracked.stamp, Reference(tracked.reference, tracked.velocity, zero)
        ),
    )


STOP_TIME = 0.5
"""Time [s] in which the arm comes to rest when the demo motion is stopped."""


def stop_waypoint(arm: ArmModel, q: Vector, v: Vector) -> Waypoint:
    """Return the stop of joints from ``q`` with velocity ``v`` (nv,) within their limits."""
    inside = np.clip(q + STOP_TIME / 3 * v, arm.lower, arm.upper)
    return Waypoint(STOP_TIME, as_readonly(inside), as_readonly(np.zeros(q.size)))


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


SETTLING_TIME = 0.15
"""Time [s] without another change after which a target is sent."""
MAX_DRAG_DELAY = 0.5
"""Maximum time [s] for which a moving slider delays a target."""
DISCOVERY_TIMEOUT = 5.0
"""Time [s] for which a target waits for the discovery of the controller."""
JOINT_TOLERANCE = 1e-6
"""Distance of the reference [rad or m] below which a joint target is reached."""


class Feedback(Protocol):
    """Shows the result of a user's action."""

    def done(self, text: str) -> None:
        """Report a completed action."""

    def rejected(self, reason: object) -> None:
        """Report a rejected action."""

    def note(self, text: str) -> None:
        """Report anything else, such as the progress of an action."""


class JointTargets:
    """Joint targets from any thread; ``update`` sends the newest and reports its result.

    ``clear`` is called repeatedly before a target is sent until it returns True: another motion
    has ended. ``sent`` is called when a target is sent or discarded.
    """

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        status: DiagnosticsSummary,
        clear: Callable[[], bool],
        feedback: Feedback,
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        self._node, self._arm, self._status = node, arm, status
        self._clear, self._feedback, self._sent = clear, feedback, sent
        self._publisher = node.create_publisher(JointTrajectory, TRAJECTORY, 1)
        self._lock = Lock()  # of the pending target
        self._pending: tuple[Vector, float, float] | None = None
        """Target, time [s] of its first change, and of its last one."""
        self._target: Vector | None = None
        self._interrupted: tuple[float, ...] = ()

    @property
    def under_way(self) -> bool:
        """Whether a target is neither reached nor rejected."""
        return self._pending is not None or self._target is not None

    def go(self, target: Sequence[float]) -> None:
        """Move the arm to ``target`` (nv,) [rad or m] once it no longer changes."""
        now = time.monotonic()
        with self._lock:
            first = now if self._pending is None else self._pending[1]
            self._pending = as_readonly(target), first, now

    def reset(self) -> None:
        """Discard the target."""
        self._pending = self._target = None

    def stop(self, q: Vector, v: Vector) -> None:
        """Stop the joints from the reference ``q`` with velocity ``v`` (nv,)."""
        self.reset()
        end = stop_waypoint(self._arm, q, v)
        self._publisher.publish(trajectory_message(self._arm.joint_names, [end]))

    def update(self, reference: Vector | None) -> None:
        """Send a due target; report the current one's result from the reference."""
        self._send(reference)
        if self._target is None:
            return
        before, self._interrupted = self._interrupted, self._counts()
        if reference is not None and np.abs(reference - self._target).max() <= JOINT_TOLERANCE:
            self._target = None
            self._feedback.done("joint targets reached")
        elif before != self._interrupted:
            events = zip(INTERRUPTED, before, self._interrupted, strict=True)
            event = next(name for name, old, new in events if old != new)
            self._target = None
            self._feedback.rejected(self._status.values.get(f"last {event}", event))

    def _send(self, reference: Vector | None) -> None:
        """Send the pending target once it no longer changes and the controller is discovered."""
        pending, now = self._pending, time.monotonic()
        if pending is None or (
            now - pending[2] < SETTLING_TIME and now - pending[1] < MAX_DRAG_DELAY
        ):
            return
        if not self._clear():
            return
        missing = reference is None or not self._publisher.get_subscription_count()
        if missing and now - pending[2] < DISCOVERY_TIMEOUT:
            return
        with self._lock:
            if self._pending is not pending:
                return  # a newer target was given during this time
            self._pending = None
        self._sent()
        self._target = None
        if self._status.stopped:
            self._feedback.rejected(f"{self._status.emergency}; reset it before a target")
        elif reference is None or missing:
            self._feedback.rejected("joint controllers = 0; expected one that moves the arm")
        else:
            self._move(reference, pending[0])

    def _move(self, reference: Vector, target: Vector) -> None:
        """Publish the motion from the reference to a target (nv,)."""
        target = as_readonly(target + whole_turns(self._arm, target, reference))
        duration = move_time(self._arm, reference, target)
        self._interrupted, self._target = self._counts(), target
        zero = as_readonly(np.zeros(target.size))
        self._publisher.publish(
            trajectory_message(self._arm.joint_names, [Waypoint(duration, target, zero)])
        )
        self._feedback.note(f"moving to the joint targets, {duration:.1f} s")

    def _counts(self) -> tuple[float, ...]:
        return tuple(self._status.number(event) or 0.0 for event in INTERRUPTED)


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
