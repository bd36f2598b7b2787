"""Simulator and controller in one process, under one control loop.

The topics are the same, but the controller alone moves the arm: commands of others are not read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rclpy.node import Node

from arm_dynamics.drivers.simulated import Simulated
from arm_dynamics.ros.joint_controller import JointControllerNode
from arm_dynamics.ros.mirror import Mirror
from arm_dynamics.ros.process import run
from arm_dynamics.ros.simulator import SimulatorNode
from arm_dynamics.ros.stop import Stop


def main() -> None:
    """Run both nodes until SIGINT or SIGTERM."""

    def build() -> tuple[list[Node], Callable[[Stop], None]]:
        simulator = SimulatorNode(take_commands=False)
        simulation = simulator.simulation
        driver = Mirror(Simulated(simulation.arm, simulation), simulator)
        controller = JointControllerNode(driver)

        def advance() -> bool:
            controller.tick()  # time passes with or without a command
            return True

        return [simulator, controller], lambda stop: simulator.run(stop, advance)

    sys.exit(run(build))


if __name__ == "__main__":
    main()
