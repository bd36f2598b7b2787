"""joint_commands, as effort per named joint."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.wire import JointStateWriter
from arm_dynamics.state import Command


class CommandPublisher:
    """Publishes effort commands under the stamp of the state that they answer."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._publisher = node.create_publisher(JointState, "joint_commands", qos.STREAM)
        self._writer = JointStateWriter(arm.joint_names, ("effort",))

    def publish(self, command: Command) -> None:
        """Publish one command."""
        self._publisher.publish(self._writer.write(command.stamp, command.value))
