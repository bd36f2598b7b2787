"""Simulator and controller in one process, under one control loop.

The topics are the same, but the controller alone moves the arm: commands of others are not read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.ros.joint_controller import JointControllerNode
from arm_dynamics.ros.process import run_nodes
from arm_dynamics.ros.publishing_driver import PublishingDriver
from arm_dynamics.ros.shutdown_flag import ShutdownFlag
from arm_dynamics.ros.simulator import SimulatorNode


def run_composed(controller: Callable[[Driver], Any]) -> int:
    """Run a simulator and the node that ``controller`` makes; the exit code."""

    def build() -> tuple[list[Node], Callable[[ShutdownFlag], None]]:
        simulator = SimulatorNode(take_commands=False)
        simulation = simulator.simulation
        node = controller(PublishingDriver(SimulationDriver(simulation.arm, simulation), simulator))

        def advance() -> bool:
            node.tick()  # time passes with or without a command
            return True

        return [simulator, node], lambda stop: simulator.run(stop, advance)

    return run_nodes(build)


def main() -> None:
    """Run the nodes until SIGINT or SIGTERM."""
    sys.exit(run_composed(JointControllerNode))


if __name__ == "__main__":
    main()
