"""Driver whose commands are also published."""

from __future__ import annotations

from dataclasses import replace

from rclpy.node import Node

from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros import conversions
from arm_dynamics.ros.command_output import CommandPublisher


class PublishingDriver(Driver):
    """Forwards all calls to ``driver`` and publishes each command on ``joint_commands``."""

    def __init__(self, driver: Driver, node: Node) -> None:
        super().__init__(driver.arm)
        self._driver = driver
        self._commands = CommandPublisher(node, driver.arm)

    def read(self) -> State:
        """Return the driver's newest state, with the time that its published stamp has."""
        state = self._driver.read()
        return replace(state, time=conversions.to_seconds(conversions.to_time(state.time)))

    def write(self, command: Command) -> None:
        """Write and publish a command."""
        self._driver.write(command)
        self._commands.publish(command)

    def idle(self) -> None:
        """Write no command in this cycle."""
        self._driver.idle()

    def controlled_stop(self) -> None:
        """Stop the arm with torque enabled."""
        self._driver.controlled_stop()
