"""Commands as one-point trajectories, for an arm that another controller moves."""

from __future__ import annotations

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import doubles, to_duration
from arm_dynamics.state import Command

LONGEST = 0.25
"""Time [s] between two commands beyond which the second one is a new beginning."""


class TrajectoryPublisher:
    """Each position command as a point due one period later, at the speed of the last change.

    q = the command, v = (q - q_before) / period, time_from_start = period, the time between the
    two states that the commands answer. The first one, without a period, is not sent.
    """

    def __init__(self, node: Node, arm: ArmModel, topic: str) -> None:
        self._publisher = node.create_publisher(JointTrajectory, topic, qos.STREAM)
        self._names = list(arm.joint_names)
        self._last: Command | None = None

    def publish(self, command: Command) -> None:
        """Publish one position command."""
        last, self._last = self._last, command
        period = 0.0 if last is None else command.stamp - last.stamp
        if last is not None and 0 < period <= LONGEST:
            self._publisher.publish(self._message(command.value, last.value, period))

    def _message(self, q: Vector, before: Vector, period: float) -> JointTrajectory:
        point = JointTrajectoryPoint(
            positions=doubles(q),
            velocities=doubles((q - before) / period),
            time_from_start=to_duration(period),
        )
        return JointTrajectory(joint_names=self._names, points=[point])
