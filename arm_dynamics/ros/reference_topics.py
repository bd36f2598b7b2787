"""References of a controller: ``~/joint_trajectory``, ``~/commands`` and ``~/reference``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from arm_dynamics.errors import InvalidValue
from arm_dynamics.goals.streams import Streams
from arm_dynamics.loop import ControlLoop
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.listen import listen
from arm_dynamics.ros.stream_parameters import FROM_DESIRED, INTEGRATE, StreamParameters


class ReferenceTopics:
    """Hands checked references to the loop; a rejection is logged, and the old one continues."""

    def __init__(self, node: Node, loop: ControlLoop) -> None:
        self._loop, self._streams = loop, Streams(loop)
        self.parameters = StreamParameters(node)
        self.configure({})
        report = loop.events.report
        for kind, topic, take, event in (
            (JointTrajectoryMessage, "joint_trajectory", self._follow, "trajectory_refused"),
            (Float64MultiArray, "commands", self._command, "command_refused"),
            (JointState, "reference", self._hold, "reference_refused"),
        ):
            listen(node, kind, f"~/{topic}", take, qos.STREAM, partial(report, event))

    def configure(self, values: Mapping[str, Any]) -> None:
        """Take changed parameters; raises InvalidValue for one out of its range."""
        self._streams.commands = self.parameters.changed(values)
        given = self.parameters.values
        self._streams.timeout = given["cmd_timeout"]
        self._loop.following.from_desired = given[FROM_DESIRED]

    def observe(self) -> None:
        """Look at the stream after a control cycle."""
        self._streams.observe()

    def _follow(self, message: JointTrajectoryMessage) -> None:
        loop, integrate = self._loop, self.parameters.values[INTEGRATE]
        options = loop.options(integrate=integrate, end_in_motion=True)
        trajectory = conversions.read_trajectory(loop.arm, message, options.now, options)
        velocities = any(len(point.velocities) for point in message.points)
        positions = any(len(point.positions) for point in message.points)
        self._streams.take(trajectory, integrated=velocities and not positions)

    def _command(self, message: Float64MultiArray) -> None:
        self._streams.command(message.data)

    def _hold(self, message: JointState) -> None:
        names, positions = message.name, message.position
        if len(names) != len(positions) or not names:
            raise InvalidValue(f"reference: {len(positions)} positions for {len(names)} names")
        self._loop.hold(dict(zip(names, positions, strict=True)))
