"""A driver whose commands are also published, so that others see them."""

from __future__ import annotations

from dataclasses import replace

from rclpy.node import Node

from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros import conversions
from arm_dynamics.ros.command_output import CommandPublisher


class PublishingDriver(Driver):
    """Passes everything to ``driver`` and publishes each command on ``joint_commands``."""

    def __init__(self, driver: Driver, node: Node) -> None:
        super().__init__(driver.arm)
        self._driver = driver
        self._commands = CommandPublisher(node, driver.arm)

    def read(self) -> State:
        """The driver's newest state, at the time that its stamp tells another process."""
        state = self._driver.read()
        return replace(state, time=conversions.to_seconds(conversions.to_time(state.time)))

    def write(self, command: Command) -> None:
        """Write and publish one command."""
        self._driver.write(command)
        self._commands.publish(command)

    def idle(self) -> None:
        """No command this time."""
        self._driver.idle()

    def controlled_stop(self) -> None:
        """Bring the arm to rest."""
        self._driver.controlled_stop()
