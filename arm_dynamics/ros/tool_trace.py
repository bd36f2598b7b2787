"""The way the tool went, as RViz's Path display shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from arm_dynamics.kinematics import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.conversions import header
from arm_dynamics.ros.frames import Frames
from arm_dynamics.state import State

LENGTH = 200
PERIOD = 0.1


class ToolTrace:
    """Publishes the last LENGTH tool positions, PERIOD [s] apart, while somebody listens."""

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        state: Callable[[], State],
        stamp: Callable[[], float],
    ) -> None:
        self._arm, self._frame, self._state, self._stamp = arm, frames.base, state, stamp
        self._publisher = node.create_publisher(Path, "tool_trace", 1)
        self._poses: deque[PoseStamped] = deque(maxlen=LENGTH)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._publish, clock=steady)

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            return
        message = Path(header=header(self._frame, self._stamp()))
        pose = PoseStamped(header=message.header)
        position = pose.pose.position
        position.x, position.y, position.z = tool_position(self._arm, self._state().q).tolist()
        self._poses.append(pose)
        message.poses = list(self._poses)
        self._publisher.publish(message)
