"""How well a controller follows: ``~/controller_state`` and the worst error of a second."""

from __future__ import annotations

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.loop import ControlLoop
from arm_dynamics.ros.conversions import doubles, to_time
from arm_dynamics.state import Command
from arm_dynamics.tracking import WorstError

PERIOD = 0.02


class ControllerState:
    """Publishes four points: reference, feedback, error (positions, velocities), output."""

    def __init__(self, node: Node, loop: ControlLoop) -> None:
        self._loop = loop
        self._worst = WorstError(loop.arm.joint_names)
        self._publisher = node.create_publisher(JointTrajectory, "~/controller_state", 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._publish, clock=steady)

    def observe(self) -> None:
        """Note the error of the tick that just ended."""
        if self._loop.state is not None and self._loop.reference is not None:
            self._worst.observe(self._loop.reference.q, self._loop.state.q)

    def worst_error(self) -> tuple[float, str]:
        """Largest |reference - position| [rad] since the last call, and its joint."""
        return self._worst.read()

    def _publish(self) -> None:
        if self._loop.latest is None or self._publisher.get_subscription_count() == 0:
            return
        state, reference, command = self._loop.latest
        message = JointTrajectory(joint_names=list(self._loop.arm.joint_names))
        message.header.stamp = to_time(state.time)
        message.points = [
            JointTrajectoryPoint(positions=doubles(reference.q), velocities=doubles(reference.v)),
            JointTrajectoryPoint(positions=doubles(state.q), velocities=doubles(state.v)),
            JointTrajectoryPoint(
                positions=doubles(reference.q - state.q), velocities=doubles(reference.v - state.v)
            ),
            _output(command),
        ]
        self._publisher.publish(message)


def _output(command: Command) -> JointTrajectoryPoint:
    field = "positions" if command.interface == "position" else "effort"
    return JointTrajectoryPoint(**{field: doubles(command.value)})
