"""What a controller is asked to follow: ``~/joint_trajectory`` and ``~/reference``."""

from __future__ import annotations

from functools import partial

from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from arm_dynamics.errors import InvalidValue
from arm_dynamics.loop import ControlLoop
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.listen import listen


class ReferenceTopics:
    """Hands checked references to the loop; a refusal is logged, and the old one goes on."""

    def __init__(self, node: Node, loop: ControlLoop) -> None:
        self._loop = loop
        report = loop.events.report
        for kind, topic, take, event in (
            (JointTrajectoryMessage, "joint_trajectory", self._follow, "trajectory_refused"),
            (JointState, "reference", self._hold, "reference_refused"),
        ):
            listen(node, kind, f"~/{topic}", take, qos.STREAM, partial(report, event))

    def _follow(self, message: JointTrajectoryMessage) -> None:
        state = self._loop.state
        now = 0.0 if state is None else state.time
        self._loop.follow(conversions.read_trajectory(self._loop.arm, message, now))

    def _hold(self, message: JointState) -> None:
        names, positions = message.name, message.position
        if len(names) != len(positions) or not names:
            raise InvalidValue(f"reference: {len(positions)} positions for {len(names)} names")
        self._loop.hold(dict(zip(names, positions, strict=True)))
