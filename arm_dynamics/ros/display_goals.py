"""Joint goals of a page or of RViz: each becomes a slow trajectory for the joint controller.

Tool goals of RViz: each becomes one message for the task-space controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import dist
from typing import Any, Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.control.trajectories.demo_trajectory import move_time
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import header
from arm_dynamics.ros.demo_motion import INTERRUPTED, TOPIC, message, stop_waypoint
from arm_dynamics.ros.diagnostics import DiagnosticsSummary
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.tool_messages import pose_message

SETTLED = 0.15
"""Time [s] without another change after which a goal is sent."""
DRAGGED = 0.5
"""Longest time [s] that a slider in motion keeps a goal back."""
DISCOVERY = 5.0
"""Time [s] for which a goal waits for the joint controller: a page may open before it is found."""
REACHED = 1e-6
"""Distance of the reference [rad or m] from a goal that is reached."""


class Feedback(Protocol):
    """Shows a user what came of an action."""

    def done(self, text: str) -> None:
        """Report an action that was carried out."""

    def rejected(self, reason: object) -> None:
        """Report an action that was rejected."""

    def note(self, text: str) -> None:
        """Report anything else, such as an action under way."""


class JointGoals:
    """Goals from any thread; ``look`` sends the newest and reports what came of it.

    ``clear`` is called before a goal is sent, again and again until it returns True: another
    motion has ended. ``sent`` is called when a goal is sent or given up.
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
        self._publisher = node.create_publisher(JointTrajectory, TOPIC, 1)
        self._asked: tuple[Vector, float, float] | None = None
        """Goal, time [s] of the first change, and of the last one."""
        self._goal: Vector | None = None
        self._interrupted: tuple[float, ...] = ()

    @property
    def under_way(self) -> bool:
        """Whether a goal of the page is neither reached nor rejected."""
        return self._asked is not None or self._goal is not None

    def ask(self, target: Sequence[float]) -> None:
        """Have the arm moved to ``target`` (nv,) [rad or m] once it no longer changes."""
        now = time.monotonic()
        first = now if self._asked is None else self._asked[1]
        self._asked = as_readonly(target), first, now

    def reset(self) -> None:
        """The arm was put elsewhere: what was asked for before no longer counts."""
        self._asked = self._goal = None

    def stop(self, q: Vector, v: Vector) -> None:
        """Bring the joints to rest from the reference ``q`` with velocity ``v`` (nv,)."""
        self.reset()
        end = stop_waypoint(self._arm, q, v)
        self._publisher.publish(message(self._arm.joint_names, [end]))

    def look(self, reference: Vector | None) -> None:
        """Send a goal that is due; report on the one under way, by the controller's reference."""
        self._send(reference)
        if self._goal is None:
            return
        before, self._interrupted = self._interrupted, self._counts()
        if reference is not None and np.abs(reference - self._goal).max() <= REACHED:
            self._goal = None
            self._feedback.done("joint targets reached")
        elif before != self._interrupted:
            self._goal = None
            self._feedback.rejected(self._reason(before))

    def _send(self, reference: Vector | None) -> None:
        asked, now = self._asked, time.monotonic()
        if asked is None or (now - asked[2] < SETTLED and now - asked[1] < DRAGGED):
            return
        if not self._clear():
            return
        missing = reference is None or not self._publisher.get_subscription_count()
        if missing and now - asked[2] < DISCOVERY:
            return
        self._asked = None
        self._sent()
        self._goal, goal = None, asked[0]
        if reference is None or missing:
            self._feedback.rejected("no joint controller moves the arm yet")
            return
        goal = as_readonly(goal + whole_turns(self._arm, goal, reference))
        duration = move_time(self._arm, reference, goal)
        self._interrupted, self._goal = self._counts(), goal
        still = as_readonly(np.zeros(goal.size))
        self._publisher.publish(message(self._arm.joint_names, [Waypoint(duration, goal, still)]))
        self._feedback.note(f"on the way to the joint targets, {duration:.1f} s")

    def _counts(self) -> tuple[float, ...]:
        return tuple(self._status.number(event) or 0.0 for event in INTERRUPTED)

    def _reason(self, before: tuple[float, ...]) -> str:
        events = zip(INTERRUPTED, before, self._interrupted, strict=True)
        event = next(name for name, old, new in events if old != new)
        return self._status.values.get(f"last {event}", event)


CONTROLLER = "task_space_controller"
PUBLISHER_LIFETIME = 1.0
"""Time [s] for which a publisher stays after its message, which needs it to arrive."""
TOOL_GOALS_REACHED = 1e-3
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

    def reset(self) -> None:
        """Give up what is not sent yet."""
        self._message = self._goal = None

    def look(self, reference: Vector | None) -> None:
        """Send a goal that is due; report on the one under way, by the reference's position."""
        now = time.monotonic()
        if self._message is not None:
            self._send(now)
        elif self._publisher is not None and now - self._since > PUBLISHER_LIFETIME:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
        if self._goal is None or self._message is not None or reference is None:
            return
        if dist(reference, self._goal) < TOOL_GOALS_REACHED:
            self._goal = None
            self._feedback.done("tool target reached")
            return
        if dist(reference, self._last) > TOOL_GOALS_REACHED / 10:
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
