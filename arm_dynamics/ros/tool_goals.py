"""Tool goals of RViz: each becomes one message for the task-space controller."""

from __future__ import annotations

import time
from math import dist
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node

from arm_dynamics.arrays import Vector
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import header
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.joint_goals import DISCOVERY, Feedback
from arm_dynamics.ros.tool_messages import pose_message

CONTROLLER = "task_space_controller"
KEPT = 1.0
"""Time [s] for which a publisher stays after its message, which needs it to arrive."""
REACHED = 1e-3
"""Distance [m] of the reference from a goal that is reached."""
STILL = 1.0
"""Time [s] without motion of the reference after which a goal counts as given up."""


class ToolGoals:
    """Goals of the tool; ``look`` sends the newest and reports what came of it.

    The controller ignores a topic with several publishers. So a publisher exists only from a goal
    until its message has arrived, and a goal is rejected while another node publishes.
    """

    def __init__(self, node: Node, frames: Frames, feedback: Feedback) -> None:
        self._node, self._frames, self._feedback = node, frames, feedback
        self._message: Any = None
        self._topic = ""
        self._publisher: Any = None
        self._since = self._moved = 0.0
        self._goal: Vector | None = None
        self._last = np.zeros(3)

    @property
    def under_way(self) -> bool:
        """Whether a goal is neither reached nor rejected."""
        return self._message is not None or self._goal is not None

    def go(self, position: Vector, rotation: Vector) -> None:
        """Have the tool moved to ``position`` (3,) [m] and ``rotation`` (3, 3)."""
        head = header(self._frames.base, 0.0)
        goal = PoseStamped(header=head, pose=pose_message(position, rotation))
        self._begin(goal, "target_pose")
        self._goal, self._last = position, np.full(3, np.inf)

    def stop(self) -> None:
        """Have the tool brought to rest."""
        self._begin(TwistStamped(header=header(self._frames.base, 0.0)), "target_twist")
        self._goal = None

    def forget(self) -> None:
        """Give up what is not sent yet."""
        self._message = self._goal = None

    def look(self, reference: Vector | None) -> None:
        """Send a goal that is due; report on the one under way, by the reference's position."""
        now = time.monotonic()
        if self._message is not None:
            self._send(now)
        elif self._publisher is not None and now - self._since > KEPT:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        if self._goal is None or self._message is not None or reference is None:
            return
        if dist(reference, self._goal) < REACHED:
            self._goal = None
            self._feedback.done("tool target reached")
            return
        if dist(reference, self._last) > REACHED / 10:
            self._moved, self._last = now, reference
        if now - self._moved > STILL:
            self._goal = None
            self._feedback.note("the tool rests before its target: see the controller's status")

    def _begin(self, message: Any, topic: str) -> None:
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
        self._message, self._topic = message, f"{CONTROLLER}/{topic}"
        self._publisher = self._node.create_publisher(type(message), self._topic, qos.STREAM)
        self._since = self._moved = time.monotonic()

    def _send(self, now: float) -> None:
        """Publish once the controller's subscription is known."""
        known = self._node.get_subscriptions_info_by_topic(self._topic)
        there = any(end.node_name == CONTROLLER for end in known)
        met = self._publisher.get_subscription_count() >= len(known) > 0
        if there and met and self._node.count_publishers(self._topic) == 1:
            self._publisher.publish(self._message)
            self._message, self._since = None, now
        elif now - self._since > DISCOVERY:
            self._message = self._goal = None
            others = self._node.count_publishers(self._topic) > 1
            self._feedback.rejected(
                f"another node publishes {self._topic}"
                if others
                else "no task-space controller moves the arm yet"
            )
