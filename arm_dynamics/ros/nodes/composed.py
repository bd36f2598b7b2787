"""Simulator and joint controller in one process, under one control loop.

The topics are the same, but commands of other nodes are not read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy.node import Node

from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.ros.messages import conversions
from arm_dynamics.ros.nodes.joint_controller import JointControllerNode
from arm_dynamics.ros.nodes.simulator import SimulatorNode
from arm_dynamics.ros.runtime.process import run_nodes
from arm_dynamics.ros.topics.topic_driver import CommandPublisher


def run_composed(controller: Callable[[Driver], Any]) -> int:
    """Run a simulator and the node that ``controller`` returns; return the exit code."""

    def build() -> tuple[list[Node], Callable[[ShutdownFlag], None]]:
        simulator = SimulatorNode(take_commands=False)
        simulation = simulator.simulation
        driver = SimulationDriver(simulation.arm, simulation, simulator.control)
        node = controller(PublishingDriver(driver, simulator))

        def advance() -> bool:
            node.run_cycle()  # time passes with or without a command
            return True

        return [simulator, node], lambda stop: simulator.run(stop, advance, node.loop)

    return run_nodes(build)


def main() -> None:
    """Run the nodes until SIGINT or SIGTERM."""
    sys.exit(run_composed(JointControllerNode))


class PublishingDriver(Driver):
    """Forwards all calls to ``driver`` and publishes each command on ``joint_commands``."""

    def __init__(self, driver: Driver, simulator: SimulatorNode) -> None:
        super().__init__(driver.arm)
        self._driver = driver
        self._commands = CommandPublisher(simulator, driver.arm)

    @property
    def inactive(self) -> str:
        """Text of the driver, "" while commands are executed."""
        return self._driver.inactive

    def read(self) -> State:
        """Return the driver's newest state, with the time that its published stamp has."""
        state = self._driver.read()
        self.command_epoch = self._driver.command_epoch
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


if __name__ == "__main__":
    main()
