"""joint_commands, as effort or position per named joint.

Commands as one-point trajectories, for an arm that another controller moves.

Where a controller's commands go: joint_commands, or another controller's trajectories.
"""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.state import Command
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import to_double_array, to_duration
from arm_dynamics.ros.joint_state_serialization import JointStateWriter
from arm_dynamics.ros.ros_parameters import declare_fixed


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


MAX_COMMAND_GAP = 0.25
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
        if last is not None and 0 < period <= MAX_COMMAND_GAP:
            self._publisher.publish(self._message(command.value, last.value, period))

    def _message(self, q: Vector, before: Vector, period: float) -> JointTrajectory:
        point = JointTrajectoryPoint(
            positions=to_double_array(q),
            velocities=to_double_array((q - before) / period),
            time_from_start=to_duration(period),
        )
        return JointTrajectory(joint_names=self._names, points=[point])


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
