"""joint_commands, as effort or position per named joint."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.wire import JointStateWriter
from arm_dynamics.state import Command


class CommandPublisher:
    """Publishes commands under the stamp of the state that they answer."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._publisher = node.create_publisher(JointState, "joint_commands", qos.STREAM)
        self._writers = {
            interface: JointStateWriter(arm.joint_names, (interface,))
            for interface in ("effort", "position")
        }

    def publish(self, command: Command) -> None:
        """Publish one command."""
        writer = self._writers[command.interface]
        self._publisher.publish(writer.write(command.stamp, command.value))
