"""A driver whose commands are also published, so that others see them."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.drivers.base import Driver
from arm_dynamics.ros import conversions, qos
from arm_dynamics.state import Command, State


class Mirror(Driver):
    """Passes everything to ``driver`` and publishes each command on ``joint_commands``."""

    def __init__(self, driver: Driver, node: Node) -> None:
        super().__init__(driver.arm)
        self._driver = driver
        self._commands = node.create_publisher(JointState, "joint_commands", qos.STREAM)
        self._message = JointState(name=list(driver.arm.joint_names))

    def read(self) -> State:
        """The driver's newest state."""
        return self._driver.read()

    def write(self, command: Command) -> None:
        """Write and publish one command."""
        self._driver.write(command)
        self._commands.publish(conversions.write_effort(self._message, command))
