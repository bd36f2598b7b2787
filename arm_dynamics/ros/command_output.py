"""Where a controller's commands go: joint_commands, or another controller's trajectories."""

from __future__ import annotations

from rclpy.node import Node

from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.command_publisher import CommandPublisher
from arm_dynamics.ros.parameters import declare_fixed
from arm_dynamics.ros.trajectory_publisher import TrajectoryPublisher

OUTPUTS = ("joint_commands", "joint_trajectory")
OTHERS = "joint_trajectory_controller/joint_trajectory"


def declare_output(
    node: Node, arm: ArmModel, law: Controller
) -> CommandPublisher | TrajectoryPublisher:
    """The publisher that the parameters ``output`` and ``output_topic`` ask for.

    Raises ConfigError for another output, and for trajectories of a law that commands no
    positions.
    """
    output = declare_fixed(node, "output", OUTPUTS[0], f"one of {', '.join(OUTPUTS)}")
    topic = declare_fixed(
        node, "output_topic", OTHERS, "topic of output joint_trajectory: another controller's"
    )
    if output not in OUTPUTS:
        raise ConfigError(f"output '{output}': one of {', '.join(OUTPUTS)} is expected")
    if output == OUTPUTS[0]:
        return CommandPublisher(node, arm)
    if law.interface != "position":
        raise ConfigError(
            f"output joint_trajectory: {type(law).__name__} commands {law.interface}, and a"
            " trajectory holds positions; controller position works here, or output joint_commands"
        )
    return TrajectoryPublisher(node, arm, topic)
