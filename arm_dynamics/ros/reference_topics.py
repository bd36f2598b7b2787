"""What a controller is asked to follow: ``~/joint_trajectory`` and ``~/reference``."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from arm_dynamics.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.loop import ControlLoop
from arm_dynamics.ros import conversions, qos


class ReferenceTopics:
    """Hands checked references to the loop; a refusal is logged, and the old one goes on."""

    def __init__(self, node: Node, loop: ControlLoop) -> None:
        self._loop, self._node = loop, node
        node.create_subscription(
            JointTrajectoryMessage, "~/joint_trajectory", self._follow, qos.STREAM
        )
        node.create_subscription(JointState, "~/reference", self._hold, qos.STREAM)

    def _follow(self, message: JointTrajectoryMessage) -> None:
        state = self._loop.state
        try:
            now = 0.0 if state is None else state.time
            self._loop.follow(conversions.read_trajectory(self._loop.arm, message, now))
        except ArmDynamicsError as error:
            self._loop.events.report("trajectory_refused", str(error))

    def _hold(self, message: JointState) -> None:
        names, positions = message.name, message.position
        try:
            if len(names) != len(positions) or not names:
                raise InvalidValue(f"reference: {len(positions)} positions for {len(names)} names")
            self._loop.hold(dict(zip(names, positions, strict=True)))
        except ArmDynamicsError as error:
            self._loop.events.report("reference_refused", str(error))
